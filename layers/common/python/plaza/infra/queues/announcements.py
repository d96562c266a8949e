"""Announcements: a context announces what it decided for a user after the commit, and another wing
may send it to the user's devices.

A manifest names the module that does as ``announces``, and each kind of notices as ``pushes``, a
``NoticeKind``. Without such a wing nothing is announced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from plaza.infra.contexts import offers


class Notice(NamedTuple):
    """Something that was decided for a user, and that is read when it is sent: an order, a voucher
    with an offer for the user, a report."""

    kind: str
    user_id: int
    subject_id: int


class NoticeText(NamedTuple):
    """What happened, and the title of the subject; None for one without a title."""

    what: str
    title: str | None = None


class NoticeKind(NamedTuple):
    """A kind of notices, and the type of their subjects. ``read`` returns the texts of the notices
    that still hold."""

    name: str
    subject_type: str
    read: Callable[[Collection[Notice]], Mapping[Notice, NoticeText]]


def is_on() -> bool:
    """Return whether this deployment announces anything."""
    return any(module.is_on() for _, module in offers("announces"))


def announce_notified(user_ids: Collection[int]) -> None:
    """Announce that there may be something new for users, changed or not. One statement; one more
    and a message for 100 users if some of them have a device. Raises MysqlDown."""
    for _, module in offers("announces"):
        module.announce_notified(user_ids)


def announce_notices(notices: Iterable[Notice]) -> None:
    """Announce notices to their users who have a device. One statement, and a message for 100 of
    them. Raises MysqlDown."""
    unique = list(dict.fromkeys(notices))
    for _, module in offers("announces"):
        module.announce_notices(unique)
