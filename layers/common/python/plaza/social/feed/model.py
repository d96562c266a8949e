"""Entries, timelines, pages and messages of the feed. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from plaza.infra.runtime.codec import ID
from plaza.social.content.model import ContentView, ListCursor

MAX_TIMELINES = 100
# Followees that one page below the floor looks up in MySQL.
MAX_SEEKS = 1_700
MIN_FLOOR_US = 1  # the floor of a complete timeline
MAX_FLOOR_US = 2**53 - 1  # the floor of a timeline that is not built
INBOX: Literal["inbox"] = "inbox"
POSTS: Literal["posts"] = "posts"
OLDEST = ListCursor(0, 0)
_POSTS_PER_AUTHOR_DAY = 0.2
_DAY_US = 86_400_000_000


class FeedEntry(NamedTuple):
    """A post in a timeline. Sorts by cursor."""

    created_us: int
    id: int
    author_id: int

    @property
    def cursor(self) -> ListCursor:
        return ListCursor(self.created_us, self.id)


class Timeline(NamedTuple):
    """A user's inbox, or the newest posts by the user (kept for celebrities only)."""

    kind: Literal["inbox", "posts"]
    user_id: ID

    @property
    def cap(self) -> int:
        return 1_000 if self.kind == INBOX else 200


class Followee(NamedTuple):
    user_id: int
    celebrity: bool


class OlderPart(NamedTuple):
    """Posts below the floor of an inbox, by one of the ``of`` parts of the followees: all that are
    past ``top``, down to ``bottom``.

    ``window_us``: the time that the next statement should cover. ``generation``: which follows the
    reader had; see ``redis_store.mark_follows``.
    """

    of: int
    generation: str
    top: ListCursor
    bottom: ListCursor
    window_us: int
    entries: list[FeedEntry]


class OlderPage(NamedTuple):
    """Posts below the floor, and the cursor past which the next page begins."""

    entries: list[FeedEntry]
    last: ListCursor
    is_ended: bool = False


class FeedPage(NamedTuple):
    """A page, and the cursor after which the next page begins (None: the end)."""

    items: list[ContentView]
    last: ListCursor | None


def merge(
    pages: Iterable[Sequence[FeedEntry]], floor_us: int, after: ListCursor | None, count: int
) -> list[FeedEntry]:
    """Return the newest ``count`` entries above the floor and past ``after``, each once."""
    entries = {
        entry.id: entry
        for entries in pages
        for entry in entries
        if entry.created_us > floor_us and (after is None or entry.cursor < after)
    }
    return sorted(entries.values(), reverse=True)[:count]


def merge_parts(parts: Sequence[OlderPart], top: ListCursor, count: int) -> OlderPage:
    """Return up to ``count`` posts past ``top`` of parts that all begin above it, down to the first
    of their bottoms."""
    bottom = min(top, max(part.bottom for part in parts))
    entries = sorted(
        (e for part in parts for e in part.entries if bottom <= e.cursor < top), reverse=True
    )[:count]
    if len(entries) == count:
        return OlderPage(entries, entries[-1].cursor)
    return OlderPage(entries, bottom, is_ended=bottom == OLDEST)


def first_window_us(authors: int, count: int, span_us: int = 0) -> int:
    """Return the time in which so many authors write about ``count`` posts. ``span_us``: in which
    all followees wrote the posts of the inbox; 0: not known."""
    window_us = int(count / (_POSTS_PER_AUTHOR_DAY * max(1, authors)) * _DAY_US)
    return min(window_us, 4 * span_us) if span_us else window_us


def floor_of(newest: Sequence[FeedEntry], count: int) -> int:
    """Return the time above which ``newest`` is complete, given that ``count`` were requested."""
    return newest[-1].created_us if len(newest) == count else MIN_FLOOR_US


def group_by_author(entries: Iterable[FeedEntry]) -> Mapping[int, list[FeedEntry]]:
    """Return the entries of each author, in the given order."""
    by_author: dict[int, list[FeedEntry]] = {}
    for entry in entries:
        by_author.setdefault(entry.author_id, []).append(entry)
    return by_author
