"""Publishing: a post that was made is sent to those who push it to followers.

It is sent right after the commit. Whoever died before that had announced the write: its refresh
sends it. When the queue is away, a list in Redis remembers it, and a schedule sends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from plaza.content import redis_store
from plaza.content.queues import FANOUTS, FanOut
from plaza.infra import clock
from plaza.infra.clock import Deadline
from plaza.infra.observability import error_fields, record
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown

_MAX_CONCURRENT_POSTS = 1_000
_MAX_RUN_S = 40


def publish(post_ids: Sequence[int]) -> None:
    """Send the posts to those who push them. It never fails: what can't be sent now is noted."""
    if not post_ids:
        return
    try:
        _send(post_ids)
    except QueueDown as error:
        record(
            "publication_delayed", {"publications_delayed": len(post_ids)}, **error_fields(error)
        )
        with suppress(RedisDown):  # then the daily rebuild of each inbox finds it
            redis_store.add_unsent(post_ids, int(clock.now_s()))
        return
    with suppress(RedisDown):  # then it may be sent twice, which does no harm
        redis_store.mark_published(post_ids)


def publish_missing(post_ids: Sequence[int]) -> None:
    """Publish those of the posts that nobody has published. Raises RedisDown."""
    if post_ids:
        publish(redis_store.find_unpublished(post_ids))


def publish_unsent() -> int:
    """Publish what could not be sent before; how many posts. Raises RedisDown, QueueDown."""
    sent, deadline = 0, Deadline.in_s(_MAX_RUN_S)
    while not deadline.has_passed:
        unsent = redis_store.read_unsent(_MAX_CONCURRENT_POSTS)
        if not unsent:
            break
        _send(unsent)
        redis_store.mark_published(unsent)
        sent += len(unsent)
    record("unsent_published", {"unsent_published": sent})
    return sent


def _send(post_ids: Sequence[int]) -> None:
    if FANOUTS.send_all(FanOut(post_id) for post_id in post_ids) < len(post_ids):
        raise QueueDown("SQS did not take all posts")
