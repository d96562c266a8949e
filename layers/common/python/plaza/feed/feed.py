"""What the feed is made of: entries, timelines, and what is asked of its consumers. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from plaza.content import Place, Whole
from plaza.infra import messages
from plaza.infra.messages import ID, list_of, one_of, row

MOST_TIMELINES = 100
BEGINNING_US = 1  # the floor of a timeline that is whole to its end
NOWHERE_US = 2**53 - 1  # the floor of one that says nothing
INBOX = "inbox"
POSTS = "posts"
_TIMELINES = list_of(row(one_of((INBOX, POSTS)), ID), 1, MOST_TIMELINES)


class Entry(NamedTuple):
    """A post in a timeline. Sorts as its place does."""

    created_us: int
    id: int
    author_id: int

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.created_us, self.id)


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


class Feed(NamedTuple):
    """A page, and where the next begins (None: the end)."""

    items: list[Whole]
    last: Place | None


def write_timelines(timelines: Sequence[Timeline]) -> str:
    """Timelines that are to be rebuilt, as they stand on the queue."""
    return messages.encode(timelines)


def read_timelines(body: str) -> Sequence[Timeline]:
    """What ``write_timelines`` wrote. Raises BadRecord."""
    return [Timeline(*one) for one in messages.read_body(body, _TIMELINES)]


def merge(
    found: Iterable[Sequence[Entry]], floor_us: int, after: Place | None, count: int
) -> list[Entry]:
    """The newest ``count`` entries of ``found`` above the floor and past ``after``, each once."""
    entries = {
        entry.id: entry
        for entries in found
        for entry in entries
        if entry.created_us > floor_us and (after is None or entry.place < after)
    }
    return sorted(entries.values(), reverse=True)[:count]


def floor_of(newest: Sequence[Entry], count: int) -> int:
    """The time above which ``newest`` is whole, when ``count`` were asked for."""
    return newest[-1].created_us if len(newest) == count else BEGINNING_US


def by_author(entries: Iterable[Entry]) -> Mapping[int, list[Entry]]:
    """The entries of each author, in the order in which they come."""
    found: dict[int, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.author_id, []).append(entry)
    return found
