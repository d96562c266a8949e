"""Follows: the rules, the limit under failures and races, and the lists."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from cli.paths import ROOT
from plaza.core.counters.redis_store import MAX_CLOCK_SKEW_US
from plaza.core.reactions import FOLLOW, Target, persist, queries, react, redis_commits
from plaza.core.reactions.model import TargetMissing
from plaza.core.reactions.queues import REACTIONS
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.mysql import mysql
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.people import follows
from plaza.people.follows import FollowCursor, FollowLimit, Person, follow_user
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.failures import failing
from tests.support.functions import ask, event, handler
from tests.support.keyspace import find_keys, redis_us
from tests.support.plaza import World
from tests.support.stores import ORDER_TOKEN, counter, explain, insert_rows, wait_for

ME, ADA, MISSING_USER = 7, 8, 404
BASE_US = 1_700_000_000_000_000
USERS = range(1, 61)


def user(user_id: int) -> Target:
    return Target("user", user_id)


def add_users(user_ids: Iterable[int]) -> None:
    rows = ",".join(f"({i},'user {i}')" for i in user_ids)
    mysql.write(f"INSERT IGNORE INTO user (id, nickname) VALUES {rows}")


@pytest.fixture
def world(plaza: World) -> World:
    add_users(USERS)
    return plaza


@pytest.fixture
def limit_5(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A user follows at most five users."""
    monkeypatch.setattr(follow_user, "FOLLOW_LIMIT", 5)
    return world


def followed(actor_id: int = ME) -> set[int]:
    """Return the users that a user follows, by the rows."""
    rows = mysql.fetch_all(
        "SELECT target_id FROM reaction WHERE actor_id = %s AND kind = 'follow' AND state = 1",
        (actor_id,),
    )
    return {target_id for (target_id,) in rows}


def total(actor_id: int = ME) -> int:
    """Return the number of users that a user follows, by the counter."""
    rows = mysql.fetch_all(
        "SELECT following_total FROM user_counter WHERE user_id = %s", (actor_id,)
    )
    return rows[0][0] if rows else 0


def holds(actor_id: int = ME) -> list[str]:
    keys = find_keys(f"*:user:{actor_id}:holds")
    return sorted(redis.execute("ZRANGE", keys[0], 0, -1)) if keys else []


# ---------------------------------------------------------------- the routes


def test_a_follow_is_counted_and_an_unfollow_uncounts_it(world: World) -> None:
    on = {"following": True, "followers": 1, "followers_at": ORDER_TOKEN, "changed": True}
    assert ask("follows.follow_user", "api/follows") == (200, on)
    assert ask("follows.follow_user", "api/follows") == (200, on | {"changed": False})
    world.queues.drain()
    assert (followed(), total(), counter(user(ADA), FOLLOW), holds()) == ({ADA}, 1, 1, [])
    off = {"following": False, "followers": 0, "followers_at": ORDER_TOKEN, "changed": True}
    assert ask("follows.unfollow_user", "api/follows") == (200, off)
    assert ask("follows.unfollow_user", "api/follows") == (200, off | {"changed": False})
    world.queues.drain()
    assert (followed(), total(), counter(user(ADA), FOLLOW), holds()) == (set(), 0, 0, [])


def test_following_yourself_is_a_409(world: World) -> None:
    status, problem = ask("follows.follow_user_self", "api/follows")
    assert (status, problem["type"].rpartition("/")[2]) == (409, "self-follow")
    assert follows.unfollow(ME, ME).changed is False
    world.queues.drain()
    assert followed() == set()


@pytest.mark.parametrize(
    "user_id", [str(MISSING_USER), "0", "9223372036854775808", "me", "1.0", "é"]
)
@pytest.mark.parametrize(
    "name",
    ["follow_user", "unfollow_user", "list_followers", "list_following", "list_common_follows"],
)
def test_a_missing_user_is_a_404_on_every_route(world: World, name: str, user_id: str) -> None:
    request = event(f"follows.{name}")
    request["pathParameters"] = {"user_id": user_id}
    path = request["rawPath"].replace("/8/", f"/{user_id}/")
    request["rawPath"] = request["requestContext"]["http"]["path"] = path
    assert handler("api/follows")(request, None)["statusCode"] == 404
    assert holds() == []


@pytest.mark.parametrize("name", ["follow_user", "unfollow_user", "list_common_follows"])
def test_routes_about_the_caller_require_a_session(world: World, name: str) -> None:
    request = event(f"follows.{name}")
    del request["headers"]["authorization"]
    assert handler("api/follows")(request, None)["statusCode"] == 401


def test_a_cached_follow_takes_four_round_trips_and_no_statement(world: World) -> None:
    follows.follow(ADA, 9)
    follows.follow(10, ME)
    before = statements()
    with count_round_trips() as sent:
        follows.follow(ADA, ME)
    assert (sent.sent, statements() - before) == (4, 1)


def test_without_redis_a_follow_is_provisional_and_stored_later(
    world: World, redis_away: Away
) -> None:
    with redis_away():
        provisional = {
            "following": True,
            "followers": None,
            "followers_at": None,
            "changed": None,
        }
        assert ask("follows.follow_user", "api/follows") == (202, provisional)
    world.queues.drain()
    assert (followed(), total(), holds()) == ({ADA}, 1, [])


def test_without_mysql_a_cached_follow_is_accepted(world: World, mysql_away: Away) -> None:
    follows.follow(ADA, 9)
    follows.follow(10, ME)
    with mysql_away():
        assert follows.follow(ADA, ME).total == 2


# ---------------------------------------------------------------- the limit


def follow_many(user_ids: Iterable[int], actor_id: int = ME) -> list[int]:
    """Follow ``user_ids``; return those that the limit allowed."""
    allowed = []
    for user_id in user_ids:
        try:
            assert follows.follow(user_id, actor_id).on
        except FollowLimit:
            continue
        allowed.append(user_id)
    return allowed


def test_a_user_follows_at_most_the_limit(limit_5: World) -> None:
    assert follow_many(range(11, 21)) == [11, 12, 13, 14, 15]
    limit_5.queues.drain()
    assert follow_many(range(21, 31)) == []
    limit_5.queues.drain()
    assert (followed(), total(), holds()) == ({11, 12, 13, 14, 15}, 5, [])


def test_the_limit_is_a_409_with_its_own_type(limit_5: World) -> None:
    follow_many(range(11, 16))
    status, problem = ask("follows.follow_user", "api/follows")
    assert (status, problem["type"].rpartition("/")[2]) == (409, "follow-limit")


@pytest.mark.parametrize("saved", [True, False], ids=["stored", "in the outbox"])
def test_at_the_limit_an_existing_follow_can_be_repeated(limit_5: World, saved: bool) -> None:
    follow_many(range(11, 16))
    if saved:
        limit_5.queues.drain()
    for _ in range(3):
        repeated = follows.follow(11, ME)
        assert (repeated.on, repeated.changed, repeated.total) == (True, False, 1)
    assert follow_many([16]) == []
    with pytest.raises(TargetMissing):
        follows.follow(MISSING_USER, ME)


def test_a_repeated_follow_at_the_limit_wins_over_a_provisional_unfollow(
    limit_5: World, redis_away: Away
) -> None:
    follow_many(range(11, 16))
    limit_5.queues.drain()
    with redis_away():
        assert not follows.unfollow(11, ME).exact
    repeated = follows.follow(11, ME)
    assert (repeated.exact, repeated.changed, repeated.total) == (True, False, 1)
    assert len(limit_5.queues.messages[REACTIONS]) == 2
    limit_5.queues.drain()
    assert (followed(), total(), holds()) == ({11, 12, 13, 14, 15}, 5, [])


def test_a_follow_at_the_limit_that_is_unfollowed_meanwhile_is_refused(
    limit_5: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow_many(range(11, 16))
    limit_5.queues.drain()
    read_counts = queries.read_counts

    def read_then_replace(*args: Any) -> Any:
        counts = read_counts(*args)
        monkeypatch.setattr(queries, "read_counts", read_counts)
        follows.unfollow(11, ME)
        limit_5.queues.drain()
        assert follow_many([16]) == [16]
        return counts

    monkeypatch.setattr(queries, "read_counts", read_then_replace)
    assert follow_many([11]) == []
    limit_5.queues.drain()
    assert (followed(), total(), holds()) == ({12, 13, 14, 15, 16}, 5, [])


def test_a_repeated_follow_does_not_release_its_hold(limit_5: World) -> None:
    """The second follow is unchanged; the hold of the first must stay."""
    for user_id in range(11, 21):
        follow_many([user_id, user_id])
    assert len(holds()) == 5
    limit_5.queues.drain()
    assert (len(followed()), total()) == (5, 5)


def test_an_unfollow_makes_room_once_it_is_stored(limit_5: World) -> None:
    follow_many(range(11, 16))
    limit_5.queues.drain()
    follows.unfollow(11, ME)
    assert follow_many([16]) == [], "not yet"
    limit_5.queues.drain()
    assert follow_many([16, 17]) == [16]
    limit_5.queues.drain()
    assert (followed(), total()) == ({12, 13, 14, 15, 16}, 5)


def is_after(until_us: int) -> Callable[[], bool]:
    return lambda: redis_us() > until_us


def test_a_follow_repeated_after_an_unfollow_keeps_its_hold(limit_5: World) -> None:
    """Storing the first event while the third is queued must not release the hold."""
    follow_many(range(11, 15))
    limit_5.queues.drain()
    for on in (True, False, True):
        (follows.follow if on else follows.unfollow)(15, ME)
        wait_for(is_after(redis_us() + 2 * MAX_CLOCK_SKEW_US), "the clock skew is over")
    first, second, third = limit_5.queues.take(REACTIONS)
    for body in (first, second):
        persist.save([REACTIONS.decode(str(body))])
        assert follow_many([16]) == []
    persist.save([REACTIONS.decode(str(third))])
    assert follow_many([16]) == []
    assert (len(followed()), total(), holds()) == (5, 5, [])


def test_repeated_and_late_events_do_not_release_holds_early(limit_5: World) -> None:
    follow_many(range(11, 16))
    events = [REACTIONS.decode(str(body)) for body in limit_5.queues.take(REACTIONS)]
    for batch in (events[:2], events[:2], events[3:], events[1:], events):
        persist.save(batch)
        assert follow_many(range(16, 20)) == []
    assert (len(followed()), total(), holds()) == (5, 5, [])


def test_a_failed_acknowledgement_keeps_the_holds_until_it_is_repeated(
    limit_5: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow_many(range(11, 16))
    with monkeypatch.context() as patch:
        patch.setattr(redis_commits, "apply_all", failing(RedisDown("by the test")))
        persist.save([REACTIONS.decode(str(f)) for f in limit_5.queues.take(REACTIONS)])
    assert len(holds()) == 5
    assert follow_many([16]) == []
    limit_5.queues.drain()
    assert (total(), holds()) == (5, [])
    assert follow_many([16]) == []


@pytest.mark.parametrize("before", [0, 3, 5])
def test_an_emptied_redis_reads_the_total_for_the_limit_from_mysql(
    limit_5: World, before: int
) -> None:
    assert len(follow_many(range(11, 11 + before))) == before
    limit_5.queues.drain()
    redis.execute("FLUSHALL")
    assert len(follow_many(range(21, 31))) == 5 - before
    limit_5.queues.drain()
    assert (len(followed()), total()) == (5, 5)


def test_without_redis_the_limit_uses_the_total_in_mysql(limit_5: World, redis_away: Away) -> None:
    follow_many(range(11, 16))
    limit_5.queues.drain()
    with redis_away():
        assert follow_many([16]) == []
        assert follow_many([11]) == [11]


@pytest.mark.parametrize(
    "error", [QueueDown("no queue"), RuntimeError("a bug")], ids=lambda e: type(e).__name__
)
def test_a_failed_follow_releases_its_hold(
    limit_5: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(react, "react", failing(error))
        for user_id in range(11, 18):
            with pytest.raises(type(error)):
                follows.follow(user_id, ME)
    assert holds() == []
    assert len(follow_many(range(20, 30))) == 5


def test_concurrent_processes_stay_within_the_limit(world: World) -> None:
    """Given 4,995 follows of 5,000, four processes request the same 20."""
    add_users(range(1001, 5996))
    insert_rows([(user(i), ME, 1, BASE_US + i) for i in range(1001, 5996)], FOLLOW)
    mysql.write(
        "INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 4995, 4995)"
    )
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'layers/common/python'}"}
    expected = [i for i in USERS if i != ME][:20]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.follower_process", str(ME)]
            + [str(i) for i in random.Random(seed).sample(expected, 20)],
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(4)
    ]
    try:
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        outputs = [process.communicate(timeout=60)[0].splitlines() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    bodies = [body for _, *sent in outputs for body in sent]
    assert len({REACTIONS.decode(str(body)).key for body in bodies}) == 5, "each may repeat"
    for body in bodies:
        world.queues.send(REACTIONS, body)
    world.queues.drain()
    assert (len(followed()), total(), holds()) == (5000, 5000, [])
    taken = followed() & set(expected)
    assert all(int(allowed) <= 5 for allowed, *_ in outputs)
    assert follow_many(expected) == [i for i in expected if i in taken]


# ---------------------------------------------------------------- lists

Read = Callable[[FollowCursor | None, int], tuple[list[Person], FollowCursor | None]]


def read_all(read: Read, size: int) -> list[int]:
    """Return the ids of all pages of a list."""
    listed: list[int] = []
    after = None
    for _ in range(300):
        page, after = read(after, size)
        assert len(page) <= size
        listed += [person.user_id for person in page]
        if after is None:
            return listed
    raise AssertionError("the list does not end")


def followers(latest: bool = True) -> Read:
    return lambda after, size: follows.list_followers(ADA, ME, after, latest, size)


def of_ada(after: FollowCursor | None, size: int) -> tuple[list[Person], FollowCursor | None]:
    return follows.list_following(ADA, ME, after, size)


def common(after: FollowCursor | None, size: int) -> tuple[list[Person], FollowCursor | None]:
    return follows.list_common(ADA, ME, after, size)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("ticks", [1, 4, 1000], ids=lambda t: f"{t} at a time")
def test_followers_of_one_microsecond_are_listed_once_each(
    world: World, size: int, ticks: int
) -> None:
    actors = [i for i in USERS if i != ADA]
    insert_rows([(user(ADA), i, 1, BASE_US + i // ticks) for i in actors], FOLLOW)
    in_order = sorted(actors, key=lambda i: (i // ticks, i))
    assert read_all(followers(latest=False), size) == in_order
    assert read_all(followers(latest=True), size) == in_order[::-1]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("ticks", [1, 1000], ids=lambda t: f"{t} at a time")
def test_following_and_common_follows_are_listed_newest_first(
    world: World, size: int, ticks: int
) -> None:
    adas = [i for i in USERS if i % 2 and i not in (ME, ADA)]
    mine = [i for i in USERS if i % 3 == 0 and i not in (ME, ADA)]
    insert_rows([(user(i), ADA, 1, BASE_US + i // ticks) for i in adas], FOLLOW)
    insert_rows([(user(i), ME, 1, BASE_US + 99 - i // ticks) for i in mine], FOLLOW)
    insert_rows([(user(i), ADA, 0, BASE_US) for i in mine if i not in adas], FOLLOW)
    assert read_all(of_ada, size) == sorted(adas, key=lambda i: (i // ticks, i), reverse=True)
    both = set(adas) & set(mine)
    assert read_all(common, size) == sorted(both, key=lambda i: (-(i // ticks), i), reverse=True)


def test_pages_are_stable_during_follows_and_unfollows(world: World) -> None:
    insert_rows([(user(ADA), i, 1, BASE_US + i) for i in range(11, 21)], FOLLOW)
    first, after = followers()(None, 4)
    assert [p.user_id for p in first] == [20, 19, 18, 17]
    follows.follow(ADA, 30)
    follows.unfollow(ADA, 18)
    follows.unfollow(ADA, 17)
    second, _ = followers()(after, 4)
    assert [p.user_id for p in second] == [16, 15, 14, 13]


def test_pages_of_common_follows_are_stable_during_new_follows(world: World) -> None:
    for actor in (ADA, ME):
        insert_rows([(user(i), actor, 1, BASE_US + i) for i in range(11, 21)], FOLLOW)
    first, after = common(None, 4)
    assert [p.user_id for p in first] == [20, 19, 18, 17]
    insert_rows([(user(30), actor, 1, BASE_US + 30) for actor in (ADA, ME)], FOLLOW)
    assert [p.user_id for p in common(after, 4)[0]] == [16, 15, 14, 13]


def test_items_have_a_card_a_time_and_the_state_of_the_caller(world: World) -> None:
    insert_rows([(user(ADA), 11, 1, BASE_US + 5), (user(ADA), 999, 1, BASE_US + 6)], FOLLOW)
    follows.follow(11, ME)
    status, page = ask("follows.list_followers", "api/follows")
    assert status == 200
    assert page == {
        "items": [
            {
                "user": {"id": "11", "nickname": "user 11", "avatar": None},
                "at": "2023-11-14T22:13:20.000005Z",
                "mine": {"following": True},
            },
            {
                "user": {"id": "999", "nickname": "unknown user", "avatar": None},
                "at": "2023-11-14T22:13:20.000006Z",
                "mine": {"following": False},
            },
        ],
        "next": None,
    }
    request = event("follows.list_followers")
    del request["headers"]["authorization"]
    assert '"mine":null' in handler("api/follows")(request, None)["body"].replace(" ", "")


def test_a_follow_is_listed_once_it_is_stored(world: World) -> None:
    insert_rows([(user(11), ADA, 1, BASE_US)], FOLLOW)
    follows.follow(ADA, ME)
    follows.follow(11, ME)
    assert read_all(followers(), 10) == []
    world.queues.drain()
    assert read_all(followers(), 10) == [ME]
    assert ask("follows.list_following", "api/follows")[1]["items"][0]["user"]["id"] == "11"
    items = ask("follows.list_common_follows", "api/follows")[1]["items"]
    assert [(i["user"]["id"], i["mine"]) for i in items] == [("11", {"following": True})]


@pytest.mark.parametrize("size", [3, 50])
@pytest.mark.parametrize(
    "listing", [followers(), of_ada, common], ids=["followers", "following", "common"]
)
def test_a_longer_page_takes_no_more_round_trips(world: World, listing: Read, size: int) -> None:
    others = [i for i in USERS if i not in (ME, ADA)]
    insert_rows([(user(ADA), i, 1, BASE_US + i) for i in others], FOLLOW)
    for actor in (ADA, ME):
        insert_rows([(user(i), actor, 1, BASE_US + i) for i in others], FOLLOW)
    listing(None, size)
    before = statements()
    with count_round_trips() as sent:
        page, _ = listing(None, size)
    assert len(page) == size
    assert sent.sent <= 3
    assert statements() - before <= 2


def test_lists_are_read_without_redis(world: World, redis_away: Away) -> None:
    for actor in (ADA, ME):
        insert_rows([(user(i), actor, 1, BASE_US + i) for i in (11, 12)], FOLLOW)
    insert_rows([(user(ADA), 11, 1, BASE_US)], FOLLOW)
    with redis_away():
        assert read_all(followers(), 10) == [11]
        assert read_all(of_ada, 10) == [12, 11]
        assert read_all(common, 1) == [12, 11]


@pytest.mark.parametrize("name", ["list_followers", "list_following", "list_common_follows"])
@pytest.mark.parametrize(
    "cursor",
    [
        "x", "bnVsbA", pack_cursor(1), pack_cursor(1, 2, 3), pack_cursor(1, "a"),
        pack_cursor("user", 1), pack_cursor(2**63, 1), pack_cursor(1, -(2**70)),
    ],
)  # fmt: skip
def test_a_forged_cursor_is_a_400(world: World, name: str, cursor: str) -> None:
    request = event(f"follows.{name}")
    request["queryStringParameters"] = {"cursor": cursor}
    assert handler("api/follows")(request, None)["statusCode"] == 400


@pytest.mark.parametrize("name", ["list_followers", "list_following", "list_common_follows"])
@pytest.mark.parametrize("cursor", [(0, 0), (-1, -1), (2**63 - 1, 2**63 - 1), (-(2**63 - 1), 5)])
def test_a_cursor_of_any_position_is_accepted(
    world: World, name: str, cursor: tuple[int, int]
) -> None:
    insert_rows([(user(ADA), 11, 1, BASE_US), (user(11), ADA, 1, BASE_US)], FOLLOW)
    request = event(f"follows.{name}")
    request["queryStringParameters"] = {"cursor": pack_cursor(*cursor)}
    assert handler("api/follows")(request, None)["statusCode"] == 200


def test_common_follows_are_read_by_the_index_and_the_primary_key(world: World) -> None:
    """Given 5,000 follows of each user, the statement neither sorts nor uses a temporary table."""
    for actor, followees in ((ME, range(10_000, 15_000)), (ADA, range(12_000, 17_000))):
        insert_rows([(user(i), actor, 1, BASE_US + i) for i in followees], FOLLOW)
    plan: list[dict[str, Any]] = []
    fetch = mysql.fetch_all

    def explain_and_fetch(sql: str, args: Sequence[Any] = ()) -> list[Any]:
        plan.extend(explain(sql, args))
        return fetch(sql, args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mysql, "fetch_all", explain_and_fetch)
        page = follows.mysql_store.read_common(ADA, ME, None, 101)
    assert [cursor.user_id for cursor in page[:2]] == [14_999, 14_998]
    own, other = plan
    assert own["key"] == "by_actor"
    assert "filesort" not in own["Extra"]
    assert "temporary" not in own["Extra"]
    assert (other["type"], other["key"]) == ("eq_ref", "PRIMARY")
