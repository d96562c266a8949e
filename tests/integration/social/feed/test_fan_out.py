"""Fan-out: pages of followers, crashes between any two steps, celebrities, posts that SQS
refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from plaza.core.reactions import FOLLOW, Target, react
from plaza.core.targets import refresh as targets_refresh
from plaza.core.targets.queues import REFRESHES
from plaza.infra.mysql import mysql
from plaza.infra.queues import sqs
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import connections, redis
from plaza.social.content import commands, publish
from plaza.social.content import redis_store as content_store
from plaza.social.content.model import Draft
from plaza.social.content.queues import FANOUTS, FanOut
from plaza.social.feed import fan_out as feed_fan_out
from plaza.social.feed import queries, rebuild, redis_store
from plaza.social.feed.model import INBOX, POSTS, Timeline
from tests.support.content_api import as_another_process, counting_work
from tests.support.feeds import BASE_US, expected_feed, ids, insert_follows, insert_posts, scroll
from tests.support.plaza import World
from tests.support.stores import add_users

SetUp = Callable[..., None]
ADA = 1
FOLLOWERS = range(101, 108)


class Killed(BaseException):
    """The process ends here."""


@contextlib.contextmanager
def killed_at(step: int) -> Iterator[None]:
    """End the process before or after a call to Redis, MySQL or SQS; ``step`` counts both."""
    calls = count()

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            for when in ("before", "after"):
                if when == "before":
                    if next(calls) == step:
                        raise Killed
                    reply = call(*args, **options)
                elif next(calls) == step:
                    raise Killed
            return reply

        return called

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (connections.REDIS, "call"),
            (mysql.MYSQL, "call"),
            (sqs, "send"),
            (sqs, "send_all"),
        ):
            patch.setattr(owner, name, dying(getattr(owner, name)))
        yield


def build(users: range) -> None:
    """Build the inboxes of users."""
    for user in users:
        redis_store.read_pages([Timeline(INBOX, user)], None, 1)
        rebuild.rebuild([[Timeline(INBOX, user)]])


def inbox(user: int) -> list[int]:
    [page] = redis_store.read_pages([Timeline(INBOX, user)], None, 100)
    return [entry.id for entry in page.newest]


def fan_out(*post_ids: int) -> None:
    feed_fan_out.fan_out([FanOut(post_id) for post_id in post_ids])


@pytest.fixture
def world(plaza: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Ada has seven followers with inboxes; a page has two."""
    monkeypatch.setattr(feed_fan_out, "PAGE", 2)
    add_users(ADA, *FOLLOWERS)
    insert_follows([(reader, ADA) for reader in FOLLOWERS])
    build(FOLLOWERS)
    return plaza


def test_a_post_reaches_all_followers_a_page_a_message(world: World) -> None:
    insert_posts([(11, ADA, BASE_US)])
    fan_out(11)
    assert [inbox(reader) for reader in FOLLOWERS] == [[11]] * 2 + [[]] * 5
    assert world.queues.messages[FANOUTS] == ['{"post_id":11,"after_id":102}']
    world.queues.drain()
    assert [inbox(reader) for reader in FOLLOWERS] == [[11]] * 7


def deliver(world: World, step: int | None) -> bool:
    """Deliver the oldest message; return True if its consumer was killed and it stays queued."""
    backlog = world.queues.messages[FANOUTS]
    body = backlog[0]
    try:
        with killed_at(step) if step is not None else contextlib.nullcontext():
            feed_fan_out.fan_out([FANOUTS.decode(str(body))])
    except Killed:
        return True
    backlog.remove(body)
    return False


@pytest.mark.parametrize("limit", [100, 3], ids=["pushed", "becoming a celebrity"])
def test_a_post_is_in_each_feed_once_after_a_crash_at_any_step(
    world: World, set_up: SetUp, limit: int
) -> None:
    set_up(fan_out_limit=limit)
    crashes = 0
    for step in count():
        post_id = 20 + step
        insert_posts([(post_id, ADA, BASE_US + step)])
        mysql.write("DELETE FROM celebrity")
        world.queues.send(FANOUTS, FANOUTS.encode(FanOut(post_id)))
        crashed = False
        while world.queues.messages[FANOUTS]:
            crashed |= deliver(world, None if crashed else step)
        crashes += crashed
        for reader in FOLLOWERS:
            assert ids(scroll(reader, 3)) == expected_feed(reader), f"killed at {step}"
        if limit == 3:
            assert mysql.fetch_all("SELECT announced FROM celebrity") == [(1,)]
        if not crashed:
            break
        world.queues.messages.clear()
    assert crashes >= 8


def test_a_page_whose_successor_sqs_refused_is_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_posts([(11, ADA, BASE_US)])
    with monkeypatch.context() as patch:
        patch.setattr(sqs, "send_all", lambda queue, bodies, until_s=None: 0)
        with pytest.raises(QueueDown):
            fan_out(11)
    fan_out(11)
    world.queues.drain()
    assert [inbox(reader) for reader in FOLLOWERS] == [[11]] * 7


def test_an_expired_inbox_gets_no_push_and_is_rebuilt_by_the_next_read(
    world: World,
) -> None:
    redis.execute("DEL", redis_store.key(Timeline(INBOX, 103)))  # expired after 30 days
    insert_posts([(11, ADA, BASE_US)])
    fan_out(11)
    world.queues.drain()
    assert not redis.execute("EXISTS", redis_store.key(Timeline(INBOX, 103)))
    assert ids(queries.read_feed(103, None, 5).items) == [11], "from MySQL"
    world.queues.drain()
    assert inbox(103) == [11]


def test_a_deleted_post_is_not_pushed(world: World) -> None:
    insert_posts([(11, ADA, BASE_US)])
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    fan_out(11, 12)
    assert not world.queues.messages[FANOUTS]
    assert inbox(101) == []


@pytest.mark.parametrize("posts", [1, 10])
def test_a_batch_takes_two_statements_and_a_round_trip_a_page(
    world: World, posts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_fan_out, "PAGE", 1000)
    insert_posts([(n, ADA, BASE_US) for n in range(posts + 1)])
    fan_out(0)  # Redis has the script from here on
    with counting_work() as work:
        fan_out(*range(1, posts + 1))
    assert work.statements == 2
    assert work.round_trips == posts


# ---------------------------------------------------------------- celebrities


def test_a_celebrity_is_announced_with_a_post_and_then_pulled(world: World, set_up: SetUp) -> None:
    set_up(fan_out_limit=6)
    insert_posts([(11, ADA, BASE_US)])
    fan_out(11)
    assert mysql.fetch_all("SELECT user_id, announced FROM celebrity") == [(ADA, 0)]
    insert_posts([(12, ADA, BASE_US + 1)])
    fan_out(12)
    world.queues.drain()
    assert mysql.fetch_all("SELECT user_id, announced FROM celebrity") == [(ADA, 1)]
    insert_posts([(13, ADA, BASE_US + 2)])
    fan_out(13)
    assert not world.queues.messages[FANOUTS]
    assert [inbox(reader) for reader in FOLLOWERS] == [[12, 11]] * 7
    assert ids(scroll(101, 2)) == [13, 12, 11]
    world.queues.drain()
    [page] = redis_store.read_pages([Timeline(POSTS, ADA)], None, 10)
    assert [entry.id for entry in page.newest] == [13, 12, 11]
    insert_posts([(14, ADA, BASE_US + 2)])
    fan_out(14)
    assert ids(scroll(101, 10)) == [14, 13, 12, 11]
    as_another_process()
    with counting_work() as work:
        assert ids(scroll(101, 10)) == [14, 13, 12, 11]
    assert (work.statements, work.round_trips) == (0, 6)


def test_a_celebrity_stays_one_after_losing_followers(world: World, set_up: SetUp) -> None:
    set_up(fan_out_limit=6)
    insert_posts([(11, ADA, BASE_US)])
    fan_out(11)
    world.queues.drain()
    for reader in FOLLOWERS[2:]:
        react.react(FOLLOW, Target("user", ADA), reader, False)
    world.queues.drain()
    insert_posts([(12, ADA, BASE_US + 1)])
    fan_out(12)
    assert ids(scroll(101, 10)) == [12, 11]
    assert [ids(scroll(reader, 10)) for reader in FOLLOWERS[2:]] == [[]] * 5
    world.queues.drain()
    assert [inbox(reader) for reader in FOLLOWERS[2:]] == [[]] * 5


def test_a_new_follower_of_a_celebrity_sees_its_posts(world: World, set_up: SetUp) -> None:
    set_up(fan_out_limit=6)
    add_users(200)
    build(range(200, 201))
    insert_posts([(n, ADA, BASE_US + n) for n in range(1, 150)])
    fan_out(149)
    world.queues.drain()
    react.react(FOLLOW, Target("user", ADA), 200, True)
    world.queues.drain()
    assert ids(scroll(200, 7)) == expected_feed(200)
    assert inbox(200) == []
    world.queues.drain()
    assert ids(scroll(200, 7)) == expected_feed(200)


# ---------------------------------------------------------------- from a post to the queue


def write() -> int:
    draft = Draft(type="post", author_id=ADA, body="b", kind="note", title="t")
    return commands.create(draft).text.id


def test_a_post_is_queued_when_created_and_not_again_by_its_refresh(world: World) -> None:
    post_id = write()
    assert world.queues.take(FANOUTS) == [FANOUTS.encode(FanOut(post_id))]
    targets_refresh.refresh([REFRESHES.decode(str(body)) for body in world.queues.take(REFRESHES)])
    assert world.queues.messages[FANOUTS] == []


def test_a_refresh_queues_the_post_of_a_process_killed_after_the_commit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(post_ids: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("plaza.social.content.publish.publish", die)
        with pytest.raises(Killed):
            write()
    world.queues.drain()
    assert len(inbox(101)) == 1


def test_a_post_that_sqs_refused_is_queued_later(world: World) -> None:
    world.queues.away = True
    post_id = write()
    with pytest.raises(QueueDown):
        publish.publish_unsent()
    world.queues.away = False
    assert publish.publish_unsent() == 1
    assert publish.publish_unsent() == 0
    world.queues.drain()
    assert [inbox(reader) for reader in FOLLOWERS] == [[post_id]] * 7


def test_all_unsent_posts_are_queued_step_by_step(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.social.content.publish._MAX_POSTS_PER_STEP", 3)
    content_store.add_unsent(range(1, 11), 1)
    assert publish.publish_unsent() == 10
    assert len(world.queues.take(FANOUTS)) == 10
