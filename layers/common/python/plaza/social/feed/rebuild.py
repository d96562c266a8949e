"""Rebuild missing and old timelines from MySQL.

A timeline accepts pushes from the start of its build, and MySQL is read after that. A post, a
follow or a celebrity that MySQL stores after the read therefore arrives by a push.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime.observability import record
from plaza.social.feed import mysql_store, older_posts, redis_store
from plaza.social.feed.model import INBOX, MAX_TIMELINES, Timeline, floor_of
from plaza.social.feed.queues import INBOXES
from plaza.social.feed.redis_store import Push

__all__ = ["INBOXES", "rebuild", "request_rebuild"]


def request_rebuild(timelines: Sequence[Timeline]) -> None:
    """Queue the rebuild of timelines. If SQS refuses, a reader requests it again after 10 s."""
    parts = [
        timelines[start : start + MAX_TIMELINES]
        for start in range(0, len(timelines), MAX_TIMELINES)
    ]
    try:
        INBOXES.send_all(parts)
    except QueueDown as error:
        INBOXES.record_unsent(len(parts), error)


@INBOXES.consumer
def rebuild(batches: Sequence[Sequence[Timeline]]) -> None:
    """Fill timelines from MySQL.

    Safe to repeat: a timeline built within the last minute is skipped. One statement for all
    timelines of celebrities; for an inbox one for the followees and one for each window of time.
    Raises MysqlDown, RedisDown.
    """
    builds = redis_store.begin_all(sorted({timeline for batch in batches for timeline in batch}))
    if not builds:
        return
    pushes = _read_celebrity_posts([timeline for timeline in builds if timeline.kind != INBOX])
    pushes += [_read_inbox(timeline) for timeline in builds if timeline.kind == INBOX]
    filled = redis_store.fill_all([(builds[push.timeline], push) for push in pushes])
    record("timelines_built", {"timelines_built": filled}, refused=len(pushes) - filled)


def _read_celebrity_posts(timelines: Sequence[Timeline]) -> list[Push]:
    if not timelines:
        return []
    cap = timelines[0].cap
    newest = mysql_store.read_newest([timeline.user_id for timeline in timelines], cap)
    return [
        Push(timeline, newest[timeline.user_id], floor_us=floor_of(newest[timeline.user_id], cap))
        for timeline in timelines
    ]


def _read_inbox(inbox: Timeline) -> Push:
    followees = mysql_store.read_followees(inbox.user_id)
    celebrities = [followee.user_id for followee in followees if followee.celebrity]
    others = [followee.user_id for followee in followees if not followee.celebrity]
    newest = older_posts.read_newest(others, inbox.cap)
    return Push(inbox, newest, celebrities, floor_of(newest, inbox.cap))
