"""The feed: fan-out beside raw ZADD, a page, and the cost of a rebuild."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import quantiles
from unittest import mock

from bench.api import Event, call, load_handler
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness, insert_rows
from bench.meters import count_statements, cpu_ms, time_s
from bench.round_trips import count_round_trips
from cli.paths import CommandError
from local.stack.functions import make_api_event
from plaza.infra.queues import sqs
from plaza.infra.redis import connections, redis
from plaza.infra.runtime.clock import Deadline
from plaza.social.content.queues import FANOUTS, FanOut
from plaza.social.feed import fan_out, rebuild, redis_store
from plaza.social.feed.model import INBOX, Timeline
from plaza.social.feed.settings import feed_settings

AUTHOR = 30_000_000
FOLLOWERS = range(31_000_000, 31_010_000)
READER = 32_000_000
FIRST_POST = 33_000_000
BASE_US = 1_790_000_000_000_000
POSTS_FANNED_OUT = 5
PAGES = 300
REBUILDS = 20
FOLLOWEES = (10, 100, 1000)
_AT_ONCE = 1000

_sent: list[str] = []
Write = Callable[[], str]


def _write_letter() -> str:
    return "b"


def measure(harness: Harness) -> list[Figure]:
    harness.clear()
    os.environ["PLAZA_FAN_OUT_LIMIT"] = "1000000"
    feed_settings.cache_clear()
    with without_queues():
        return [*_fan_out(harness), *_page(harness), *_rebuild(harness)]


@contextmanager
def without_queues() -> Iterator[None]:
    """Send nothing in the block, except that fan-outs are kept for this process."""
    with mock.patch.multiple(sqs, send_all=_keep, send=lambda queue, body, delay_s=0: None):
        yield


def _fan_out(harness: Harness) -> list[Figure]:
    followers = FOLLOWERS[: harness.scale(len(FOLLOWERS))]
    _insert_follows([(follower_id, AUTHOR) for follower_id in followers])
    inboxes = [Timeline(INBOX, reader_id) for reader_id in followers]
    for start in range(0, len(inboxes), _AT_ONCE):
        some = inboxes[start : start + _AT_ONCE]
        redis_store.read_pages(some, None, 1)
    ours_s = raw_s = absent_s = 0.0
    for number in range(POSTS_FANNED_OUT):
        raw_s += time_s(partial(_zadd_raw, inboxes, number))
        _insert_posts([(FIRST_POST + number, AUTHOR, BASE_US + number)])
        ours_s += time_s(partial(_push, FIRST_POST + number))
    _check_all_have(inboxes, POSTS_FANNED_OUT)
    harness.clear()
    for number in range(POSTS_FANNED_OUT):
        absent_s += time_s(partial(_push, FIRST_POST + number))
    count = len(followers) * POSTS_FANNED_OUT
    raw = Peer("raw pipelined ZADD", count / raw_s)
    return [
        Figure(
            "fan-out, one worker",
            count / ours_s,
            "followers/s",
            raw,
            Goal("at least", 0.5, "ratio"),
        ),
        Figure("  followers without an inbox", count / absent_s, "followers/s", raw),
    ]


def _push(post_id: int) -> None:
    _sent.append(FANOUTS.encode(FanOut(post_id)))
    while _sent:
        fan_out.fan_out([FANOUTS.decode(_sent.pop())])


def _zadd_raw(inboxes: Sequence[Timeline], number: int) -> None:
    """Do the minimum: the keys are known, nothing is read."""
    keys = [f"raw:{redis_store.key(inbox)}" for inbox in inboxes]
    client = connections.client()
    for start in range(0, len(keys), _AT_ONCE):
        pipe = client.pipeline(transaction=False)
        member = f"{FIRST_POST + number:019d}:{AUTHOR}"
        for key in keys[start : start + _AT_ONCE]:
            pipe.zadd(key, {member: BASE_US + number})
        pipe.execute()


def _page(harness: Harness) -> list[Figure]:
    fill_inbox(harness, READER)
    fetch = partial(call, load_handler("feed"), page_event(READER))
    fetch()
    with count_round_trips() as counter:
        fetch()
    statements = count_statements(fetch)
    took_ms = sorted(cpu_ms(fetch) for _ in range(max(harness.scale(PAGES), 100)))
    cuts = quantiles(took_ms, n=100)
    return [
        Figure("feed page of 20, CPU, p50", cuts[49], "ms"),
        Figure("  p99", cuts[98], "ms"),
        Figure("Redis round trips, feed page of 20", counter.sent, "", goal=Goal("at most", 6)),
        Figure("  statements", statements, "", goal=Goal("at most", 0)),
    ]


def page_event(reader: int) -> Event:
    return make_api_event("GET /feed", reader)


def fill_inbox(harness: Harness, reader: int, write: Write = _write_letter) -> list[int]:
    """Let ``reader`` follow 100 authors, and build the inbox; return the ids of its posts, whose
    texts ``write`` returns."""
    posts = _follow_and_post(harness, reader, 100, write)
    call(load_handler("feed"), page_event(reader))
    rebuild.rebuild([[Timeline(INBOX, reader)]])
    return posts


def _rebuild(harness: Harness) -> list[Figure]:
    figures: list[Figure] = []
    for followees in FOLLOWEES:
        user = READER + followees
        _follow_and_post(harness, user, followees)
        inbox = Timeline(INBOX, user)
        taken_s = []
        for _ in range(max(harness.scale(REBUILDS), 5)):
            redis.execute("DEL", redis_store.key(inbox))
            taken_s.append(time_s(lambda inbox=inbox: rebuild.rebuild([[inbox]])))  # type: ignore[misc]
        best_ms = min(taken_s) * 1000
        peer = Peer(f"{FOLLOWEES[0]} followees", figures[0].value) if figures else None
        figures.append(Figure(f"rebuild of an inbox, {followees} followees", best_ms, "ms", peer))
    return figures


def _follow_and_post(
    harness: Harness, user: int, followees: int, write: Write = _write_letter
) -> list[int]:
    """Let ``user`` follow ``followees`` authors, each with ten posts in a hundred days; return the
    ids of the posts."""
    authors = range(user * 2, user * 2 + followees)
    harness.add_users(authors)
    _insert_follows([(user, author) for author in authors])
    day_us = 86_400_000_000
    now_us = int(time.time() * 1_000_000)
    posts = [
        (author * 10 + n, author, now_us - n * 10 * day_us - author % 10_000)
        for author in authors
        for n in range(10)
    ]
    _insert_posts(posts, write)
    return [post_id for post_id, _, _ in posts]


def _insert_follows(pairs: Iterable[tuple[int, int]]) -> None:
    insert_rows(
        "reaction (target_type, target_id, kind, actor_id, state, version)",
        (f"('user',{followee},'follow',{follower},1,{BASE_US})" for follower, followee in pairs),
    )


def _insert_posts(posts: Iterable[tuple[int, int, int]], write: Write = _write_letter) -> None:
    at = "'1970-01-01' + INTERVAL {} MICROSECOND"
    insert_rows(
        "content (content_type, content_id, author_id, created_at, kind, title, body)",
        (
            f"('post',{post},{author},{at.format(at_us)},'note','t','{write()}')"
            for post, author, at_us in posts
        ),
    )


def _check_all_have(inboxes: Sequence[Timeline], posts: int) -> None:
    counts = redis.pipeline([("ZCOUNT", redis_store.key(i), "(0", "+inf") for i in inboxes])
    if set(counts) != {posts}:
        raise CommandError(f"inboxes have {sorted(set(counts))} posts, not {posts}")


def _keep(
    queue: str, messages: Sequence[str | sqs.Outgoing], deadline: Deadline | None = None
) -> int:
    """Deliver messages of fan-outs to ``_sent``, and drop all others."""
    if queue == "fanouts":
        _sent.extend(message for message in messages if isinstance(message, str))
    return len(messages)
