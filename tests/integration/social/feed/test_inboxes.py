"""Inboxes in Redis: pushes, trims, builds, reads, and their races."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plaza.core.reactions import FOLLOW, Target, persist, react
from plaza.core.reactions.queues import FOLLOWS, REACTIONS
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.social.content.model import ListCursor
from plaza.social.content.queues import FanOut
from plaza.social.feed import apply_follows, fan_out, mysql_store, queries, rebuild, redis_store
from plaza.social.feed.model import INBOX, POSTS, FeedEntry, Timeline
from plaza.social.feed.queues import INBOXES
from plaza.social.feed.redis_store import Push
from tests.support.feeds import BASE_US, expected_feed, ids, insert_follows, insert_posts, scroll
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.stores import add_users

ME, ADA, BOB = 7, 8, 9
MINE = Timeline(INBOX, ME)


def entry(number: int, at: int | None = None, author: int = ADA) -> FeedEntry:
    return FeedEntry(BASE_US + (number if at is None else at), number, author)


def build(timeline: Timeline = MINE) -> None:
    """Build a timeline from MySQL."""
    redis_store.read_pages([timeline], None, 1)
    rebuild.rebuild([[timeline]])


def read_inbox(after: FeedEntry | None = None, count: int = 100) -> list[int]:
    [page] = redis_store.read_pages([MINE], ListCursor(*after[:2]) if after else None, count)
    return [item.id for item in page.newest]


def floor() -> int:
    [page] = redis_store.read_pages([MINE], None, 1)
    return page.floor_us


def publish(*posts: tuple[int, int, int]) -> None:
    """Insert and fan out posts: (id, author, at)."""
    insert_posts([(post, author, BASE_US + at) for post, author, at in posts])
    fan_out.fan_out([FanOut(post) for post, _, _ in posts])


def set_follow(author_id: int, on: bool) -> None:
    react.react(FOLLOW, Target("user", author_id), ME, on)


@pytest.fixture
def world(plaza: World) -> World:
    add_users(ME, ADA, BOB)
    insert_follows([(ME, ADA)])
    return plaza


# ---------------------------------------------------------------- pushes and trims


def test_a_missing_inbox_gets_no_push(world: World) -> None:
    assert redis_store.push_all([Push(MINE, [entry(1)])]) == 0
    assert find_keys("*") == []


def test_a_read_extends_the_ttl_of_an_inbox_and_a_push_does_not(world: World) -> None:
    build()
    key = redis_store.key(MINE)
    redis.execute("PEXPIRE", key, 60_000)
    assert redis_store.push_all([Push(MINE, [entry(1)])]) == 1
    assert redis.execute("PTTL", key) <= 60_000
    read_inbox()
    assert redis.execute("PTTL", key) > 29 * 86_400_000


@pytest.mark.parametrize("pushed", [40, 50, 51, 52, 60, 200])
def test_an_inbox_is_trimmed_to_its_cap_and_its_floor_rises(
    world: World, monkeypatch: pytest.MonkeyPatch, pushed: int
) -> None:
    monkeypatch.setattr(Timeline, "cap", 40)
    build()
    for number in range(pushed):
        redis_store.push_all([Push(MINE, [entry(number + 1)])])
    kept = read_inbox(count=300)
    assert len(kept) <= 50
    assert kept == list(range(pushed, pushed - len(kept), -1))
    removed = pushed - len(kept)
    assert floor() == (BASE_US + removed if removed else 1)


def test_a_trim_among_equal_times_removes_all_of_that_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Timeline, "cap", 4)
    build()
    redis_store.push_all([Push(MINE, [entry(n, at=n // 3) for n in range(1, 10)])])
    assert read_inbox() == [9, 8, 7, 6], "the cap splits time 1, so all of it is removed"
    assert floor() == BASE_US + 1
    redis_store.push_all([Push(MINE, [entry(50, at=1), entry(51, at=0)])])
    assert read_inbox() == [9, 8, 7, 6], "posts below the floor are read from MySQL"


def test_a_page_begins_after_its_position_among_equal_times(world: World) -> None:
    build()
    redis_store.push_all([Push(MINE, [entry(n, at=n // 20) for n in range(1, 101)])])
    listed, after = [], None
    while page := read_inbox(after, 3):
        listed += page
        after = entry(page[-1], at=page[-1] // 20)
    assert listed == list(range(100, 0, -1))


# ---------------------------------------------------------------- builds


def test_200_readers_of_a_missing_inbox_request_one_rebuild(world: World) -> None:
    insert_posts([(1, ADA, BASE_US)])
    for _ in range(200):
        assert ids(queries.read_feed(ME, None, 5).items) == [1]
    assert world.queues.messages[INBOXES] == ['[["inbox",7]]']
    world.queues.drain()
    assert read_inbox() == [1]
    queries.read_feed(ME, None, 5)
    assert world.queues.messages[INBOXES] == []


def test_a_request_that_sqs_refused_is_repeated_after_the_interval(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.queues.away = True
    queries.read_feed(ME, None, 5)
    world.queues.away = False
    queries.read_feed(ME, None, 5)
    assert not world.queues.messages[INBOXES]
    monkeypatch.setattr(redis_store, "REQUEST_INTERVAL_US", 0)
    queries.read_feed(ME, None, 5)
    assert world.queues.messages[INBOXES]


def test_an_old_inbox_is_read_and_rebuilt_which_closes_gaps(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    build()
    insert_posts([(1, ADA, BASE_US)])  # its push was lost
    assert ids(queries.read_feed(ME, None, 5).items) == []
    monkeypatch.setattr(redis_store, "REBUILD_AFTER_US", 0)
    monkeypatch.setattr(redis_store, "REQUEST_INTERVAL_US", 0)
    monkeypatch.setattr(redis_store, "MIN_REBUILD_AGE_US", 0)
    assert ids(queries.read_feed(ME, None, 5).items) == []
    world.queues.drain()
    assert read_inbox() == [1]


def while_reading(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, action: Callable[[], None]
) -> None:
    """Call ``action`` once, right after ``module.name`` has read."""
    read = getattr(module, name)

    def read_then(*args: object) -> object:
        result = read(*args)
        monkeypatch.setattr(module, name, read)
        action()
        return result

    monkeypatch.setattr(module, name, read_then)


@pytest.mark.parametrize("name", ["read_followees", "read_window"])
def test_a_post_during_the_reads_of_a_rebuild_is_not_lost(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    insert_posts([(1, ADA, BASE_US)])
    while_reading(monkeypatch, mysql_store, name, lambda: publish((2, ADA, 1)))
    rebuild.rebuild([[MINE]])
    assert read_inbox() == [2, 1]


def test_a_post_between_the_request_and_the_rebuild_is_not_lost(
    world: World,
) -> None:
    queries.read_feed(ME, None, 5)
    publish((2, ADA, 1))
    world.queues.drain()
    assert read_inbox() == [2]


def test_many_pushes_during_a_rebuild_raise_its_floor(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Timeline, "cap", 4)
    insert_posts([(n, ADA, BASE_US + n) for n in range(1, 4)])
    late = [(n, ADA, n) for n in range(4, 12)]
    while_reading(monkeypatch, mysql_store, "read_window", lambda: publish(*late))
    rebuild.rebuild([[MINE]])
    assert read_inbox() == [11, 10, 9, 8]
    assert floor() == BASE_US + 7
    assert ids(scroll(ME, 2)) == expected_feed(ME)


def test_follows_and_unfollows_during_a_rebuild_are_applied(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_posts([(1, ADA, BASE_US), (2, BOB, BASE_US + 1)])

    def change() -> None:
        set_follow(BOB, True)
        set_follow(ADA, False)
        world.queues.drain()

    while_reading(monkeypatch, mysql_store, "read_window", change)
    rebuild.rebuild([[MINE]])
    assert ids(scroll(ME, 1)) == [2]
    world.queues.drain()
    assert read_inbox() == [2], "the read requested the removal of the unfollowed author"


def test_a_rebuild_of_an_inbox_that_was_lost_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_posts([(1, ADA, BASE_US)])

    def lose() -> None:
        redis.execute("FLUSHALL")
        publish((2, ADA, 1))  # no inbox exists
        redis_store.read_pages([MINE], None, 1)  # another build begins

    while_reading(monkeypatch, mysql_store, "read_window", lose)
    rebuild.rebuild([[MINE]])
    assert read_inbox() == [], "it is not built"
    assert ids(scroll(ME, 1)) == [2, 1]
    rebuild.rebuild([[MINE]])
    assert read_inbox() == [2, 1]


def test_an_inbox_built_within_a_minute_is_not_rebuilt(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    build()
    monkeypatch.setattr(rebuild, "_read_inbox", None)
    rebuild.rebuild([[MINE], [MINE]])


def test_an_empty_inbox_is_complete(world: World) -> None:
    build()
    assert floor() == 1
    assert read_inbox() == []


# ---------------------------------------------------------------- follows


def test_a_follow_adds_posts_and_an_unfollow_removes_them(world: World) -> None:
    build()
    publish((1, ADA, 1), (2, BOB, 2), (3, BOB, 3))
    assert read_inbox() == [1]
    set_follow(BOB, True)
    world.queues.drain()
    assert read_inbox() == [3, 2, 1]
    set_follow(ADA, False)
    world.queues.drain()
    assert read_inbox() == [3, 2]


def test_following_an_author_with_many_posts_raises_the_floor(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    build()
    publish(*[(n, ADA, n) for n in range(1, 4)])
    insert_posts([(n, BOB, BASE_US + n) for n in range(10, 150)])
    set_follow(BOB, True)
    world.queues.drain()
    assert read_inbox(count=300) == list(range(149, 50, -1)), "99 of 100, and none of Ada's"
    assert floor() == BASE_US + 50
    assert ids(scroll(ME, 7)) == expected_feed(ME)
    set_follow(BOB, False)
    insert_posts([(n, BOB, BASE_US + n) for n in range(150, 160)])
    set_follow(BOB, True)
    world.queues.drain()
    assert ids(scroll(ME, 7)) == expected_feed(ME)


@pytest.mark.parametrize("stale", [True, False])
def test_a_late_consumer_does_not_undo_a_newer_state(
    world: World, monkeypatch: pytest.MonkeyPatch, stale: bool
) -> None:
    """Given a consumer that reads a state before another one applies a newer state."""
    build()
    insert_posts([(1, BOB, BASE_US)])
    set_follow(BOB, True)
    world.queues.drain()
    if not stale:
        set_follow(BOB, False)
        world.queues.drain()
    set_follow(BOB, not stale)
    for body in world.queues.take(REACTIONS):
        persist.save([REACTIONS.decode(str(body))])
    [late] = world.queues.take(FOLLOWS)

    def overtake() -> None:
        set_follow(BOB, stale)
        world.queues.drain()

    while_reading(monkeypatch, mysql_store, "read_follow_states", overtake)
    apply_follows.apply_follow_changes([FOLLOWS.decode(str(late))])
    assert read_inbox() == ([1] if stale else [])


def test_follows_that_change_on_every_attempt_are_retried_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    build()
    states = iter([mysql_store.FollowState(n % 2 == 0, False) for n in range(10)])
    monkeypatch.setattr(mysql_store, "read_follow_states", lambda pairs: {(ME, BOB): next(states)})
    with pytest.raises(apply_follows.FollowsKeepChanging):
        apply_follows.apply_follow_changes([[(ME, BOB)]])


def test_follows_of_readers_without_inboxes_take_no_statement(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_store, "read_follow_states", None)
    apply_follows.apply_follow_changes([[(reader_id, ADA) for reader_id in range(100, 400)]])


def test_the_posts_of_a_celebrity_are_trimmed_and_built_like_an_inbox(world: World) -> None:
    insert_posts([(n, BOB, BASE_US + n) for n in range(1, 251)])
    mysql.write("INSERT INTO celebrity (user_id, announced) VALUES (%s, 1)", (BOB,))
    celebrities = Timeline(POSTS, BOB)
    build(celebrities)
    [page] = redis_store.read_pages([celebrities], None, 300)
    assert (page.floor_us, page.newest[0].id, len(page.newest)) == (BASE_US + 51, 250, 199)
