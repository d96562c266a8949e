"""Publish posts: queue their fan-out to followers.

A post is queued right after the commit. If the process ends before that, the announced refresh
queues it. While the queue is unavailable, Redis stores the post and a schedule queues it later.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record
from plaza.social.content import redis_store
from plaza.social.content.queues import FANOUTS, FanOut

_MAX_POSTS_PER_STEP = 1_000
_MAX_RUN_S = 40


def publish(post_ids: Sequence[int]) -> None:
    """Queue the fan-out of the posts. Never fails: if SQS refuses, Redis stores them for later."""
    if not post_ids:
        return
    try:
        _send(post_ids)
    except QueueDown as error:
        FANOUTS.record_unsent(len(post_ids), error)
        with suppress(RedisDown):  # the daily rebuild of each inbox adds the posts
            redis_store.add_unsent(post_ids, int(clock.now_s()))
        return
    with suppress(RedisDown):  # without the marks a refresh queues the posts again: harmless
        redis_store.mark_published(post_ids)


def publish_missing(post_ids: Sequence[int]) -> None:
    """Publish the posts that have no mark. Raises RedisDown."""
    if post_ids:
        publish(redis_store.find_unpublished(post_ids))


def publish_unsent() -> int:
    """Publish the posts that SQS refused; return their number. Raises RedisDown, QueueDown."""
    sent, deadline = 0, Deadline.in_s(_MAX_RUN_S)
    while not deadline.has_passed:
        unsent = redis_store.read_unsent(_MAX_POSTS_PER_STEP)
        if not unsent:
            break
        _send(unsent)
        redis_store.mark_published(unsent)
        sent += len(unsent)
    record("unsent_published", {"unsent_published": sent})
    return sent


def _send(post_ids: Sequence[int]) -> None:
    if FANOUTS.send_all(FanOut(post_id) for post_id in post_ids) < len(post_ids):
        raise QueueDown("SQS did not accept all posts")
