"""Follows, posts and celebrities in MySQL, as the feed reads them.

Ids are rendered into the statements as numbers, because lists have up to 5,000 of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from plaza.infra.mysql import mysql, sql
from plaza.social.content.model import ListCursor
from plaza.social.feed.model import INBOX, POSTS, FeedEntry, Followee, Timeline

# MariaDB turns a longer list into a join, which cannot use the time in the index.
_AUTHORS_PER_ARM = 500
# Timelines exceed their cap by a quarter; one more is a difference in any case.
_MAX_INBOX = Timeline(INBOX, 0).cap * 5 // 4 + 1
_MAX_CELEBRITY_POSTS = Timeline(POSTS, 0).cap * 5 // 4 + 1
_BY_AUTHOR = """
    SELECT created_at, content_id, author_id
    FROM content FORCE INDEX (by_author)
    WHERE content_type = 'post'
      AND deleted_at IS NULL
    """
_NEWEST_FIRST = "ORDER BY created_at DESC, content_id DESC"


class PublishedPost(NamedTuple):
    """A live post and its author. ``announced``: None unless the author is a celebrity."""

    entry: FeedEntry
    followers_total: int
    announced: bool | None


class RecordedInbox(NamedTuple):
    """What an inbox must have: ``posts`` of followed users, and ``celebrities``. ``left_out``:
    authors whose follow, or who as a celebrity, changed so recently that the inbox may not have it
    yet."""

    posts: list[FeedEntry]
    celebrities: set[int]
    left_out: set[int]


class FollowState(NamedTuple):
    """Whether a reader follows an author, and whether the author is a celebrity."""

    on: bool
    celebrity: bool


def read_published(post_ids: Collection[int]) -> dict[int, PublishedPost]:
    """Return id -> the posts that are live. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT c.created_at, c.content_id, c.author_id, COALESCE(u.followers_total, 0),
               s.announced
        FROM content AS c
        LEFT JOIN user_counter AS u ON u.user_id = c.author_id
        LEFT JOIN celebrity AS s ON s.user_id = c.author_id
        WHERE c.content_type = 'post'
          AND c.content_id IN ({sql.render_ids(post_ids)})
          AND c.deleted_at IS NULL
        """
    )
    return {
        entry.id: PublishedPost(entry, followers, None if announced is None else announced == 1)
        for *row, followers, announced in rows
        for entry in [_entry(*row)]
    }


def add_celebrities(user_ids: Collection[int]) -> None:
    """Make users celebrities, permanently. One statement. Raises MysqlDown."""
    rows = ",".join(f"({user_id:d})" for user_id in sorted(user_ids))
    mysql.write(f"INSERT IGNORE INTO celebrity (user_id) VALUES {rows}")


def mark_announced(user_ids: Collection[int]) -> None:
    """Record that all followers' inboxes have these celebrities. One statement. Raises
    MysqlDown."""
    mysql.write(f"UPDATE celebrity SET announced = 1 WHERE user_id IN ({sql.render_ids(user_ids)})")


def read_followers(authors: Sequence[tuple[int, int]], count: int) -> list[list[int]]:
    """Return a page of follower ids, sorted, for each (user_id, after_id). Raises MysqlDown.

    One statement with one JSON row a page: 1,000 rows would take the driver half as long as pushing
    to 1,000 inboxes.
    """
    arms = [
        f"""
        SELECT {index}, JSON_ARRAYAGG(actor_id)
        FROM (
            SELECT actor_id
            FROM reaction FORCE INDEX (PRIMARY)
            WHERE target_type = 'user'
              AND target_id = {user_id:d}
              AND kind = 'follow'
              AND actor_id > {after_id:d}
              AND state = 1
            ORDER BY actor_id LIMIT {count:d}
        ) AS page
        """
        for index, (user_id, after_id) in enumerate(authors)
    ]
    pages: list[list[int]] = [[] for _ in authors]
    for index, page in mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ():
        pages[index] = sorted(json.loads(page)) if page else []
    return pages


def read_followees(user_id: int) -> list[Followee]:
    """Return all users that a user follows. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT r.target_id, s.user_id IS NOT NULL
        FROM reaction AS r FORCE INDEX (by_actor)
        LEFT JOIN celebrity AS s ON s.user_id = r.target_id
        WHERE r.actor_id = %s
          AND r.kind = 'follow'
          AND r.state = 1
        """,
        (user_id,),
    )
    return [Followee(followee_id, celebrity == 1) for followee_id, celebrity in rows]


def read_follow_states(pairs: Iterable[tuple[int, int]]) -> dict[tuple[int, int], FollowState]:
    """Return the state of each pair (reader, author). One statement. Raises MysqlDown."""
    unique = sorted(set(pairs))
    rows = mysql.fetch_all(
        """
        SELECT k.actor_id, k.user_id, COALESCE(r.state, 0), s.user_id IS NOT NULL
        FROM JSON_TABLE(%s, '$[*]' COLUMNS (actor_id BIGINT PATH '$[0]',
            user_id BIGINT PATH '$[1]')) AS k
        LEFT JOIN reaction AS r FORCE INDEX (PRIMARY) ON r.target_type = 'user'
            AND r.target_id = k.user_id
            AND r.kind = 'follow'
            AND r.actor_id = k.actor_id
        LEFT JOIN celebrity AS s ON s.user_id = k.user_id
        """,
        (json.dumps(unique),),
    )
    return {
        (reader_id, author_id): FollowState(state == 1, celebrity == 1)
        for reader_id, author_id, state, celebrity in rows
    }


def read_inboxes(floors_us: Mapping[int, int], until_us: int) -> dict[int, RecordedInbox]:
    """Return reader -> the posts above the reader's floor, celebrities, and what changed after
    ``until_us``. One statement. Raises MysqlDown."""
    arms = []
    for reader_id, floor_us in floors_us.items():
        followed = f"r.actor_id = {reader_id:d} AND r.kind = 'follow'"
        arms += [
            f"""
            (
                SELECT 'post', r.actor_id, c.author_id, c.content_id, c.created_at
                FROM reaction AS r FORCE INDEX (by_actor)
                STRAIGHT_JOIN content AS c FORCE INDEX (by_author)
                    ON c.content_type = 'post'
                    AND c.author_id = r.target_id
                    AND c.deleted_at IS NULL
                    AND c.created_at > '{sql.from_us(floor_us):%Y-%m-%d %H:%M:%S.%f}'
                LEFT JOIN celebrity AS s ON s.user_id = r.target_id
                WHERE {followed}
                  AND r.state = 1
                  AND s.user_id IS NULL
                ORDER BY c.created_at DESC LIMIT {_MAX_INBOX:d}
            )
            """,
            f"""
            SELECT IF(s.announced = 1, 'celebrity', 'new'), r.actor_id, r.target_id, 0, NULL
            FROM reaction AS r FORCE INDEX (by_actor)
            STRAIGHT_JOIN celebrity AS s ON s.user_id = r.target_id
            WHERE {followed}
              AND r.state = 1
            """,
            f"""
            SELECT 'new', r.actor_id, r.target_id, 0, NULL
            FROM reaction AS r FORCE INDEX (by_actor)
            WHERE {followed}
              AND r.state IN (0, 1)
              AND r.version > {until_us:d}
            """,
        ]
    inboxes = {reader_id: RecordedInbox([], set(), set()) for reader_id in floors_us}
    for what, reader_id, author_id, post_id, created_at in (
        mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ()
    ):
        inbox = inboxes[reader_id]
        match what:
            case "post":
                inbox.posts.append(_entry(created_at, post_id, author_id))
            case "celebrity":
                inbox.celebrities.add(author_id)
            case "new":
                inbox.left_out.add(author_id)
    return {
        reader_id: RecordedInbox(
            [post for post in inbox.posts if post.author_id not in inbox.left_out],
            inbox.celebrities - inbox.left_out,
            inbox.left_out,
        )
        for reader_id, inbox in inboxes.items()
    }


def read_posts_above(floors_us: Mapping[int, int]) -> dict[int, list[FeedEntry]]:
    """Return author -> the newest posts above the author's floor. One statement. Raises
    MysqlDown."""
    arms = [
        f"""
        (
            {_BY_AUTHOR}
              AND author_id = {author_id:d}
              AND created_at > '{sql.from_us(floor_us):%Y-%m-%d %H:%M:%S.%f}'
            {_NEWEST_FIRST} LIMIT {_MAX_CELEBRITY_POSTS:d}
        )
        """
        for author_id, floor_us in floors_us.items()
    ]
    posts: dict[int, list[FeedEntry]] = {author_id: [] for author_id in floors_us}
    for row in mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ():
        entry = _entry(*row)
        posts[entry.author_id].append(entry)
    return posts


def read_newest(author_ids: Collection[int], count: int) -> dict[int, list[FeedEntry]]:
    """Return each author's ``count`` newest posts, newest first. One statement. Raises
    MysqlDown."""
    arms = [
        f"({_BY_AUTHOR} AND author_id = {author_id:d} {_NEWEST_FIRST} LIMIT {count:d})"
        for author_id in author_ids
    ]
    newest: dict[int, list[FeedEntry]] = {author_id: [] for author_id in author_ids}
    for row in mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ():
        entry = _entry(*row)
        newest[entry.author_id].append(entry)
    return {author_id: sorted(entries, reverse=True) for author_id, entries in newest.items()}


def read_window(
    author_ids: Collection[int], before: ListCursor, begin_us: int, count: int
) -> list[FeedEntry]:
    """Return the authors' newest ``count`` posts before a cursor and after ``begin_us``, newest
    first. One statement. Raises MysqlDown."""
    to = sql.from_us(before.created_us)
    where, args = "AND created_at <= %s", [to]
    if begin_us:
        where += " AND created_at > %s"
        args.append(sql.from_us(begin_us))
    # As a row, so that the optimizer makes one range an author of the times, and not two.
    where += f" AND (created_at, content_id) < (%s, {before.id:d})"
    args.append(to)
    newest = f"{_NEWEST_FIRST} LIMIT {count:d}"
    arms = [
        f"{_BY_AUTHOR} AND author_id IN ({sql.render_ids(part)}) {where} {newest}"
        for part in _split(author_ids)
    ]
    if len(arms) == 1:
        rows = mysql.fetch_all(arms[0], args)
    else:
        union = " UNION ALL ".join(f"({arm})" for arm in arms)
        rows = mysql.fetch_all(f"{union} {newest}", args * len(arms))
    return [_entry(*row) for row in rows]


def _split(author_ids: Collection[int]) -> Iterator[list[int]]:
    rest = iter(author_ids)
    while part := list(islice(rest, _AUTHORS_PER_ARM)):
        yield part


def _entry(created_at: datetime, post_id: int, author_id: int) -> FeedEntry:
    return FeedEntry(sql.to_us(created_at), post_id, author_id)
