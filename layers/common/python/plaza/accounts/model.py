"""Erasures of accounts and rows of exports. No I/O."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from plaza.infra.runtime.codec import Codec

SETTLE_S = 120
"""Longer than a request, and than a session in Redis is used without a look at MySQL."""

KEPT_OPEN_S = 15 * 86_400
"""Longer than a message stays on a queue (14 days)."""


class Erasure(NamedTuple):
    """The erasure of a user.

    ``erased_at`` is when a pass found nothing more. Messages that were on their way may still bring
    a row back, so later passes follow, until ``closed_at``.
    """

    user_id: int
    requested_at: datetime
    erased_at: datetime | None
    closed_at: datetime | None

    @property
    def state(self) -> Literal["erasing", "erased", "closed"]:
        """How far it is."""
        if self.closed_at:
            return "closed"
        return "erased" if self.erased_at else "erasing"


class ExportPosition(NamedTuple):
    """A position in an export: the name of a section in cursors, and the key of a row in it, empty
    before the first row."""

    section: str
    key: tuple[str, ...]


def _parse_position(text: str) -> ExportPosition:
    section, *key = text.split(" ")
    return ExportPosition(section, tuple(key))


EXPORT_POSITIONS: Codec[ExportPosition] = Codec(
    "export_positions",
    lambda position: " ".join([position.section, *position.key]),
    _parse_position,
)
