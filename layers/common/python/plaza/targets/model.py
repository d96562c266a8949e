"""The existence of targets. No I/O."""

from __future__ import annotations

from enum import Enum


class Existence(Enum):
    """Whether a target can be reacted to; the values are those of the marker in Redis."""

    LIVE = "live"
    MISSING = "missing"
    DELETED = "deleted"
