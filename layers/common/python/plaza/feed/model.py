"""What the feed is made of: entries, timelines, and what is asked of its consumers. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from plaza.content import ContentView, ListPosition
from plaza.infra import messages
from plaza.infra.messages import ID, list_of, one_of, tuple_of

MAX_TIMELINES = 100
MIN_FLOOR_US = 1  # the floor of a timeline that is whole to its end
MAX_FLOOR_US = 2**53 - 1  # the floor of one that says nothing
INBOX = "inbox"
POSTS = "posts"
_TIMELINES = list_of(tuple_of(one_of((INBOX, POSTS)), ID), 1, MAX_TIMELINES)


class FeedEntry(NamedTuple):
    """A post in a timeline. Sorts as its place does."""

    created_us: int
    id: int
    author_id: int

    @property
    def position(self) -> ListPosition:
        """Where it stands."""
        return ListPosition(self.created_us, self.id)


class Timeline(NamedTuple):
    """A user's inbox (what those they follow posted), or the newest posts of their own."""

    kind: str
    user_id: int

    @property
    def cap(self) -> int:
        """How many entries it keeps."""
        return 1_000 if self.kind == INBOX else 200


class Followee(NamedTuple):
    """Somebody whom a user follows, and whether they are a star."""

    user_id: int
    star: bool


class FeedPage(NamedTuple):
    """A page, and where the next begins (None: the end)."""

    items: list[ContentView]
    last: ListPosition | None


def encode_timelines(timelines: Sequence[Timeline]) -> str:
    """Timelines that are to be rebuilt, as they stand on the queue."""
    return messages.encode(timelines)


def decode_timelines(body: str) -> Sequence[Timeline]:
    """What ``encode_timelines`` wrote. Raises InvalidMessage."""
    return [Timeline(*one) for one in messages.read_body(body, _TIMELINES)]


def merge(
    found: Iterable[Sequence[FeedEntry]], floor_us: int, after: ListPosition | None, count: int
) -> list[FeedEntry]:
    """The newest ``count`` entries of ``found`` above the floor and past ``after``, each once."""
    entries = {
        entry.id: entry
        for entries in found
        for entry in entries
        if entry.created_us > floor_us and (after is None or entry.position < after)
    }
    return sorted(entries.values(), reverse=True)[:count]


def floor_of(newest: Sequence[FeedEntry], count: int) -> int:
    """The time above which ``newest`` is whole, when ``count`` were asked for."""
    return newest[-1].created_us if len(newest) == count else MIN_FLOOR_US


def group_by_author(entries: Iterable[FeedEntry]) -> Mapping[int, list[FeedEntry]]:
    """The entries of each author, in the order in which they come."""
    found: dict[int, list[FeedEntry]] = {}
    for entry in entries:
        found.setdefault(entry.author_id, []).append(entry)
    return found
