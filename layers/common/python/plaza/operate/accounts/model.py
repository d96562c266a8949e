"""Erasures of accounts and rows of exports. No I/O."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from plaza.infra.runtime.codec import Codec

RETURN_S = 7 * 86_400
"""How long a sign-in opens a closed account again."""

SETTLE_S = 120
"""Longer than a request, and than a session in Redis is used without a look at MySQL."""

KEPT_OPEN_S = 15 * 86_400
"""Longer than a message stays on a queue (14 days)."""


class Erasure(NamedTuple):
    """The erasure of a user. Passes erase from ``begins_at`` on.

    ``erased_at`` is when a pass found nothing more. Messages that were on their way may still bring
    a row back, so later passes follow, until ``closed_at``. ``account_closed_at``: None if it began
    at once. ``is_waiting``: the account is closed, and may open again.
    """

    user_id: int
    begins_at: datetime
    account_closed_at: datetime | None
    erased_at: datetime | None
    closed_at: datetime | None
    is_waiting: bool

    @property
    def requested_at(self) -> datetime:
        """When the user or an admin asked for it."""
        return self.account_closed_at or self.begins_at

    @property
    def erases_at(self) -> datetime | None:
        """Until when a sign-in opens the account again; None if none could."""
        return self.account_closed_at and self.account_closed_at + timedelta(seconds=RETURN_S)

    @property
    def state(self) -> Literal["account-closed", "erasing", "erased", "closed"]:
        """How far it is."""
        if self.is_waiting:
            return "account-closed"
        if self.closed_at:
            return "closed"
        return "erased" if self.erased_at else "erasing"


class ExportCursor(NamedTuple):
    """A cursor in an export: the name of a section in cursors, and the key of a row in it, empty
    before the first row."""

    section: str
    key: tuple[str, ...]


def _parse_cursor(text: str) -> ExportCursor:
    section, *key = text.split(" ")
    return ExportCursor(section, tuple(key))


EXPORT_CURSORS: Codec[ExportCursor] = Codec(
    "export_positions",
    lambda cursor: " ".join([cursor.section, *cursor.key]),
    _parse_cursor,
)
