"""Posts below the floor of an inbox: read from MySQL a part of the followees at a time, and kept in
Redis for the pages that follow.

To find the next posts, MySQL looks up each followee once. A page looks up MAX_SEEKS followees at
most, so it can be short, or empty, for a reader of more; the next page continues with the parts
that were kept (docs/decisions/0089-read-older-posts-in-parts.md).
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

from plaza.infra.http.callers import Charge, no_charge
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import MAX_ID
from plaza.infra.runtime.errors import TooManyRequests
from plaza.social.content.model import ListCursor
from plaza.social.feed import mysql_store, redis_store
from plaza.social.feed.model import (
    MAX_FLOOR_US,
    MAX_SEEKS,
    MIN_FLOOR_US,
    OLDEST,
    FeedEntry,
    OlderPage,
    OlderPart,
    first_window_us,
    merge_parts,
)

NEWEST = ListCursor(MAX_FLOOR_US, MAX_ID)
# Posts of a part that one statement returns.
POSTS_AT_ONCE = 400
_GROWTH = 4
_MIN_WINDOW_US = 60_000_000
_SEEKS_PER_TOKEN = 500


def read_newest(author_ids: Collection[int], count: int) -> list[FeedEntry]:
    """Return the newest ``count`` posts of the authors. A statement for each window of time, which
    grow fourfold. Raises MysqlDown."""
    part = _begin_part(1, "", NEWEST, first_window_us(len(author_ids), POSTS_AT_ONCE))
    while len(part.entries) < count and part.bottom != OLDEST:
        part = _extend(part, author_ids, NEWEST, count - len(part.entries))
    return part.entries


@dataclass
class OlderPosts:
    """The older posts of a reader, for one request. ``is_kept``: parts are kept in Redis; without
    it, which is for outages of Redis, a page reads all followees."""

    user_id: int
    charge: Charge = no_charge
    is_kept: bool = True
    _seeks: int = 0
    _generation: str = ""
    _parts: dict[int, OlderPart] | None = None
    _authors: list[list[int]] | None = None
    _began_us: int = field(default_factory=clock.now_us)

    def read_page(self, after: ListCursor | None, floor_us: int, count: int) -> OlderPage:
        """Return up to ``count`` posts past ``after`` and at or below the floor.

        A statement for the followees of a request, and one for each window of a part, charged
        before; two round trips, and two a window. Raises RedisDown, MysqlDown, TooManyRequests.
        """
        top = min(after or NEWEST, ListCursor(floor_us, MAX_ID))
        if self._parts is None:
            self._parts = self._load(top) if self.is_kept else {}
        page = self._merge(top, count)
        try:
            while not page.is_ended and len(page.entries) < count and self._read_on(top, floor_us):
                page = self._merge(top, count)
        except (MysqlDown, TooManyRequests):
            if not page.entries:
                raise
        return page

    def forget_deleted(self) -> None:
        """Read again what is kept of few followees: most of it may be deleted by now."""
        if self._parts and len(self._parts) == 1:
            self._parts = {}

    def forget_redis(self) -> None:
        """Read all followees from here on, and keep nothing."""
        if self.is_kept:
            self.is_kept, self._parts, self._authors = False, {}, None

    def _load(self, top: ListCursor) -> dict[int, OlderPart]:
        self._generation, parts = redis_store.read_older(self.user_id)
        if top == NEWEST:
            return {}
        return {number: part for number, part in parts.items() if part.bottom <= top <= part.top}

    def _merge(self, top: ListCursor, count: int) -> OlderPage:
        parts = self._parts or {}
        of = parts[0].of if 0 in parts else 0
        complete = [parts[n] for n in range(of) if n in parts and parts[n].of == of]
        if not complete or len(complete) < of:
            return OlderPage([], min(top, ListCursor(self._began_us, MAX_ID)))
        return merge_parts(complete, top, count)

    def _read_on(self, top: ListCursor, floor_us: int) -> bool:
        """Read the next window of the part that ends first; return False if that would be too much
        for one page."""
        parts, authors = self._parts or {}, self._split()
        of = len(authors)
        unread = [n for n in range(of) if n not in parts or parts[n].of != of]
        number = unread[0] if unread else max(range(of), key=lambda n: parts[n].bottom)
        author_ids = authors[number]
        if self.is_kept and self._seeks and self._seeks + len(author_ids) > MAX_SEEKS:
            return False
        self._seeks += len(author_ids)
        if author_ids:
            self.charge(-(-len(author_ids) // _SEEKS_PER_TOKEN))
        part = parts.get(number)
        if part is None or number in unread:
            span_us = self._began_us - floor_us if MIN_FLOOR_US < floor_us < MAX_FLOOR_US else 0
            window_us = first_window_us(len(author_ids), POSTS_AT_ONCE, max(0, span_us))
            part = _begin_part(of, self._generation, top, window_us)
        parts[number] = _extend(part, author_ids, top, POSTS_AT_ONCE)
        self._parts = parts
        if self.is_kept:
            # Posts newer than the statement are not in the part.
            until = min(top, ListCursor(self._began_us, MAX_ID))
            with suppress(RedisDown):
                redis_store.store_older(self.user_id, number, parts[number]._replace(top=until))
        return True

    def _split(self) -> list[list[int]]:
        """Return the followees of each part: those whose id has the number of the part as its
        remainder, so that a follow changes one part only."""
        if self._authors is None:
            followees = mysql_store.read_followees(self.user_id)
            count = max(1, -(-len(followees) // MAX_SEEKS)) if self.is_kept else 1
            self._authors = [[] for _ in range(count)]
            for followee in followees:
                self._authors[followee.user_id % count].append(followee.user_id)
        return self._authors


def _begin_part(of: int, generation: str, top: ListCursor, window_us: int) -> OlderPart:
    return OlderPart(of, generation, top, top, window_us, [])


def _extend(part: OlderPart, author_ids: Collection[int], top: ListCursor, count: int) -> OlderPart:
    """Return the part with ``count`` posts below its bottom, fewer if the window has fewer, without
    the posts above ``top``. One statement, none without authors."""
    kept = [entry for entry in part.entries if entry.cursor < top]
    if not author_ids:
        return part._replace(top=top, bottom=OLDEST, entries=kept)
    end_us = min(part.bottom.created_us, clock.now_us())
    begin_us = max(0, end_us - part.window_us)
    entries = mysql_store.read_window(author_ids, part.bottom, begin_us, count)
    if len(entries) == count:
        bottom = entries[-1].cursor
        window_us = max(_MIN_WINDOW_US, 2 * (end_us - bottom.created_us))
    else:
        bottom = ListCursor(begin_us, MAX_ID) if begin_us else OLDEST
        window_us = part.window_us * (_GROWTH if len(entries) * _GROWTH < count else 1)
    return part._replace(top=top, bottom=bottom, window_us=window_us, entries=kept + entries)
