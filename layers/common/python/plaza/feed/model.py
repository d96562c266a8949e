"""Entries, timelines, pages and messages of the feed. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from plaza.content import ContentView, ListPosition
from plaza.infra.runtime.codec import ID

MAX_TIMELINES = 100
MAX_FIRST_WINDOW = 3
MIN_FLOOR_US = 1  # the floor of a complete timeline
MAX_FLOOR_US = 2**53 - 1  # the floor of a timeline that is not built
INBOX: Literal["inbox"] = "inbox"
POSTS: Literal["posts"] = "posts"


class FeedEntry(NamedTuple):
    """A post in a timeline. Sorts by position."""

    created_us: int
    id: int
    author_id: int

    @property
    def position(self) -> ListPosition:
        return ListPosition(self.created_us, self.id)


class Timeline(NamedTuple):
    """A user's inbox, or the newest posts by the user (kept for stars only)."""

    kind: Literal["inbox", "posts"]
    user_id: ID

    @property
    def cap(self) -> int:
        return 1_000 if self.kind == INBOX else 200


class Followee(NamedTuple):
    user_id: int
    star: bool


class FeedDepth(NamedTuple):
    """What a page of old posts found: ``window`` was enough for a page that began at ``at_us``, and
    no post follows ``end`` (None: not known)."""

    window: int = 0
    at_us: int = 0
    end: ListPosition | None = None

    def first_window(self, after: ListPosition | None) -> int:
        """Return the window that a page past ``after`` begins with."""
        is_next = after is not None and after.created_us <= self.at_us
        return self.window if is_next else 0

    def ends_at(self, after: ListPosition | None) -> bool:
        """Return whether no post follows ``after``."""
        return after is not None and self.end is not None and after <= self.end


class FeedPage(NamedTuple):
    """A page, and the position after which the next page begins (None: the end)."""

    items: list[ContentView]
    last: ListPosition | None


def merge(
    pages: Iterable[Sequence[FeedEntry]], floor_us: int, after: ListPosition | None, count: int
) -> list[FeedEntry]:
    """Return the newest ``count`` entries above the floor and past ``after``, each once."""
    entries = {
        entry.id: entry
        for entries in pages
        for entry in entries
        if entry.created_us > floor_us and (after is None or entry.position < after)
    }
    return sorted(entries.values(), reverse=True)[:count]


def floor_of(newest: Sequence[FeedEntry], count: int) -> int:
    """Return the time above which ``newest`` is complete, given that ``count`` were requested."""
    return newest[-1].created_us if len(newest) == count else MIN_FLOOR_US


def group_by_author(entries: Iterable[FeedEntry]) -> Mapping[int, list[FeedEntry]]:
    """Return the entries of each author, in the given order."""
    by_author: dict[int, list[FeedEntry]] = {}
    for entry in entries:
        by_author.setdefault(entry.author_id, []).append(entry)
    return by_author
