"""Notifications as readers see them, and order tokens of unread counters. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from plaza.notifications.notifications.model import GroupCursor, ListedGroup, UnreadState
from plaza.people.users import Card

MAX_ACTORS = 3
MAX_TEXT = 80  # characters
_ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"  # in ASCII order
_FORMAT, _DIGITS = "1", 9


class GroupSubject(NamedTuple):
    """What a notification is about: its id as views have it; of a text its beginning; of a target
    of the app where it is shown."""

    id: str
    text: str | None = None
    url: str | None = None


class Notification(NamedTuple):
    """A group with what it displays: what it is about; how many like, comment or follow; the newest
    actors."""

    group: ListedGroup
    subject: GroupSubject
    total: int
    actors: list[Card]


class NotificationPage(NamedTuple):
    """A page, the unread counter of its instant, and the cursor after which the next page begins
    (None: the end)."""

    state: UnreadState
    items: list[Notification]
    last: GroupCursor | None


def encode_order(version: int) -> str:
    """Return the order token of a version: of two tokens, the greater text is the newer one."""
    digits = [_ALPHABET[version >> 6 * digit & 63] for digit in reversed(range(_DIGITS))]
    return _FORMAT + "".join(digits)


def decode_order(token: str) -> int:
    """Return the version of an order token; -1 for a text that this version of Plaza did not make,
    which orders nothing."""
    if len(token) != _DIGITS + 1 or token[0] != _FORMAT or not set(token) <= set(_ALPHABET):
        return -1
    version = 0
    for character in token[1:]:
        version = version * 64 + _ALPHABET.index(character)
    return version
