"""What a target is to the rest of Plaza: a type, an id, and whether it is there. No I/O."""

from __future__ import annotations

from enum import Enum


class Existence(Enum):
    """Whether something can be reacted to. The values are what its marker in Redis says."""

    LIVE = "live"
    MISSING = "missing"
    DELETED = "deleted"
