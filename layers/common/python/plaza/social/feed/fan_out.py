"""Fan-out: push a post to the inboxes of its author's followers, 1,000 a message.

An author with more followers than FAN_OUT_LIMIT is a celebrity, whose posts readers pull instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime.observability import record
from plaza.social.content.queues import FANOUTS, FanOut
from plaza.social.feed import mysql_store, redis_store
from plaza.social.feed.model import POSTS, Timeline
from plaza.social.feed.mysql_store import PublishedPost
from plaza.social.feed.redis_store import Push
from plaza.social.feed.settings import feed_settings

__all__ = ["FANOUTS", "PAGE", "fan_out"]

PAGE = 1_000


@FANOUTS.consumer
def fan_out(fan_outs: Sequence[FanOut]) -> None:
    """Push each post to a page of followers, and queue the next page.

    Safe to repeat: a post is in an inbox once. At most four statements for all of them, and a
    round trip to Redis for each page. Raises MysqlDown, RedisDown, QueueDown.
    """
    published = mysql_store.read_published({item.post_id for item in fan_outs})
    new_celebrities = {p.entry.author_id for p in published.values() if _is_new_celebrity(p)}
    if new_celebrities:
        # Before the followers are read: a follow that is stored later finds the celebrity in MySQL.
        mysql_store.add_celebrities(new_celebrities)
    celebrities = new_celebrities | {
        p.entry.author_id for p in published.values() if p.announced is not None
    }
    celebrity_entries = [p.entry for p in published.values() if p.entry.author_id in celebrities]
    redis_store.push_all(Push(Timeline(POSTS, e.author_id), [e]) for e in celebrity_entries)
    _push_pages([page for item in fan_outs for page in _page_of(item, published, celebrities)])


def _is_new_celebrity(post: PublishedPost) -> bool:
    return post.announced is None and post.followers_total > feed_settings().fan_out_limit


def _page_of(
    item: FanOut, published: dict[int, PublishedPost], celebrities: set[int]
) -> list[tuple[FanOut, PublishedPost]]:
    """Return the page to push, or nothing. The first page decides whether to announce a
    celebrity."""
    post = published.get(item.post_id)
    if post is None:
        return []
    if item.after_id == 0:
        if post.announced:
            return []
        item = FanOut(item.post_id, 0, announce=post.entry.author_id in celebrities)
    return [(item, post)]


def _push_pages(pages: Sequence[tuple[FanOut, PublishedPost]]) -> None:
    followers = mysql_store.read_followers(
        [(post.entry.author_id, item.after_id) for item, post in pages], PAGE
    )
    inboxes, next_pages, announced = 0, [], set()
    for (item, post), user_ids in zip(pages, followers, strict=True):
        inboxes += redis_store.push_to_inboxes(user_ids, post.entry, celebrity=item.announce)
        if len(user_ids) == PAGE:
            next_pages.append(FanOut(item.post_id, user_ids[-1], item.announce))
        elif item.announce:
            announced.add(post.entry.author_id)
    if next_pages and FANOUTS.send_all(next_pages) < len(next_pages):
        raise QueueDown("SQS did not accept the next page of a fan-out")
    if announced:
        mysql_store.mark_announced(announced)
    record(
        "posts_fanned_out",
        {"followers": sum(map(len, followers)), "inboxes": inboxes},
        posts=len(pages),
        next_pages=len(next_pages),
    )
