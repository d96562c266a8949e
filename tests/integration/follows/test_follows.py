"""Following: the rules, the limit under everything that goes wrong, and the lists."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from local.paths import ROOT
from plaza import follows
from plaza.counters.redis_store import MAX_CLOCK_SKEW_US
from plaza.follows import FollowLimit, FollowPosition, Person, follow_user
from plaza.infra import mysql, redis
from plaza.infra.http import pack_cursor
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.reactions import FOLLOW, Target, persist, react, redis_commits
from plaza.reactions.model import ReactionEvent, TargetMissing
from plaza.reactions.queues import REACTIONS
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.functions import ask, event, handler
from tests.support.keyspace import find_keys, redis_us
from tests.support.plaza import World
from tests.support.stores import counter, explain, insert_rows, wait_for

ME, ADA, NOBODY = 7, 8, 404
BASE_US = 1_700_000_000_000_000
PEOPLE = range(1, 61)


def user(user_id: int) -> Target:
    return Target("user", user_id)


def add_users(user_ids: Iterable[int]) -> None:
    rows = ",".join(f"({i},'user {i}')" for i in user_ids)
    mysql.write(f"INSERT IGNORE INTO user (id, nickname) VALUES {rows}")


@pytest.fixture
def people(plaza: World) -> World:
    add_users(PEOPLE)
    return plaza


@pytest.fixture
def limit_5(people: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A user follows five at most."""
    monkeypatch.setattr(follow_user, "FOLLOW_LIMIT", 5)
    return people


def followed(actor_id: int = ME) -> set[int]:
    """Whom a user follows, by the rows."""
    found = mysql.fetch_all(
        "SELECT target_id FROM reaction WHERE actor_id = %s AND kind = 'follow' AND state = 1",
        (actor_id,),
    )
    return {target_id for (target_id,) in found}


def total(actor_id: int = ME) -> int:
    """How many a user follows, by MySQL's counter."""
    found = mysql.fetch_all(
        "SELECT following_total FROM user_counter WHERE user_id = %s", (actor_id,)
    )
    return found[0][0] if found else 0


def claims(actor_id: int = ME) -> list[str]:
    found = find_keys(f"*:user:{actor_id}:claims")
    return sorted(redis.execute("ZRANGE", found[0], 0, -1)) if found else []


# ---------------------------------------------------------------- following


def test_a_follow_is_taken_counted_and_taken_back(people: World) -> None:
    taken = {"following": True, "followers": 1, "changed": True}
    assert ask("follows.follow", "api/follows") == (200, taken)
    assert ask("follows.follow", "api/follows") == (200, taken | {"changed": False})
    people.queues.drain()
    assert (followed(), total(), counter(user(ADA), FOLLOW), claims()) == ({ADA}, 1, 1, [])
    back = {"following": False, "followers": 0, "changed": True}
    assert ask("follows.unfollow", "api/follows") == (200, back)
    assert ask("follows.unfollow", "api/follows") == (200, back | {"changed": False})
    people.queues.drain()
    assert (followed(), total(), counter(user(ADA), FOLLOW), claims()) == (set(), 0, 0, [])


def test_nobody_follows_themselves(people: World) -> None:
    status, problem = ask("follows.follow_me", "api/follows")
    assert (status, problem["type"].rpartition("/")[2]) == (409, "self-follow")
    assert follows.unfollow(ME, ME).changed is False
    people.queues.drain()
    assert followed() == set()


@pytest.mark.parametrize("user_id", [str(NOBODY), "0", "9223372036854775808", "me", "1.0", "é"])
@pytest.mark.parametrize(
    "name", ["follow", "unfollow", "list_followers", "list_following", "list_common_follows"]
)
def test_who_is_not_there_is_a_404_everywhere(people: World, name: str, user_id: str) -> None:
    asked = event(f"follows.{name}")
    asked["pathParameters"] = {"user_id": user_id}
    path = asked["rawPath"].replace("/8/", f"/{user_id}/")
    asked["rawPath"] = asked["requestContext"]["http"]["path"] = path
    assert handler("api/follows")(asked, None)["statusCode"] == 404
    assert claims() == []


@pytest.mark.parametrize("name", ["follow", "unfollow", "list_common_follows"])
def test_what_is_done_in_ones_own_name_needs_a_session(people: World, name: str) -> None:
    asked = event(f"follows.{name}")
    asked["requestContext"]["authorizer"]["lambda"] = {}
    assert handler("api/follows")(asked, None)["statusCode"] == 401


def test_a_warm_follow_is_two_round_trips_and_nothing_of_mysql(people: World) -> None:
    follows.follow(ADA, 9)
    follows.follow(10, ME)
    before = statements()
    with count_round_trips() as sent:
        follows.follow(ADA, ME)
    assert (sent.sent, statements() - before) == (2, 1)


def test_while_redis_is_away_a_follow_is_a_wish_that_comes_true(
    people: World, redis_away: Away
) -> None:
    with redis_away():
        wish = {"following": True, "followers": None, "changed": None}
        assert ask("follows.follow", "api/follows") == (202, wish)
    people.queues.drain()
    assert (followed(), total(), claims()) == ({ADA}, 1, [])


def test_while_mysql_is_away_a_warm_follow_is_taken(people: World, mysql_away: Away) -> None:
    follows.follow(ADA, 9)
    follows.follow(10, ME)
    with mysql_away():
        assert follows.follow(ADA, ME).total == 2


# ---------------------------------------------------------------- the limit


def follow_many(user_ids: Iterable[int], actor_id: int = ME) -> list[int]:
    """Whom of ``user_ids`` the actor may follow."""
    allowed = []
    for user_id in user_ids:
        try:
            assert follows.follow(user_id, actor_id).on
        except FollowLimit:
            continue
        allowed.append(user_id)
    return allowed


def test_a_user_follows_so_many_and_no_more(limit_5: World) -> None:
    assert follow_many(range(11, 21)) == [11, 12, 13, 14, 15]
    limit_5.queues.drain()
    assert follow_many(range(21, 31)) == []
    limit_5.queues.drain()
    assert (followed(), total(), claims()) == ({11, 12, 13, 14, 15}, 5, [])


def test_the_limit_is_a_409_with_a_type_of_its_own(limit_5: World) -> None:
    follow_many(range(11, 16))
    status, problem = ask("follows.follow", "api/follows")
    assert (status, problem["type"].rpartition("/")[2]) == (409, "follow-limit")


@pytest.mark.parametrize("saved", [True, False], ids=["saved", "on their way"])
def test_at_the_limit_what_one_has_can_be_asked_for_again(limit_5: World, saved: bool) -> None:
    follow_many(range(11, 16))
    if saved:
        limit_5.queues.drain()
    for _ in range(3):
        again = follows.follow(11, ME)
        assert (again.on, again.changed, again.total) == (True, False, 1)
    assert follow_many([16]) == []
    with pytest.raises(TargetMissing):
        follows.follow(NOBODY, ME)


def test_asking_twice_does_not_make_room(limit_5: World) -> None:
    """The second answer is UNCHANGED; the claim of the first follow has to outlive it."""
    for user_id in range(11, 21):
        follow_many([user_id, user_id])
    assert len(claims()) == 5
    limit_5.queues.drain()
    assert (len(followed()), total()) == (5, 5)


def test_taking_one_back_makes_room_once_it_is_saved(limit_5: World) -> None:
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


def test_a_follow_that_is_taken_back_and_given_again_keeps_its_claim(limit_5: World) -> None:
    """Its first fact is saved while the third is on its way: that must not release the claim."""
    follow_many(range(11, 15))
    limit_5.queues.drain()
    for on in (True, False, True):
        (follows.follow if on else follows.unfollow)(15, ME)
        wait_for(is_after(redis_us() + 2 * MAX_CLOCK_SKEW_US), "clocks can tell them apart")
    first, second, third = limit_5.queues.take(REACTIONS)
    for fact in (first, second):
        persist.save([ReactionEvent.from_json(fact)])
        assert follow_many([16]) == []
    persist.save([ReactionEvent.from_json(third)])
    assert follow_many([16]) == []
    assert (len(followed()), total(), claims()) == (5, 5, [])


def test_facts_that_come_twice_and_late_release_nothing_too_early(limit_5: World) -> None:
    follow_many(range(11, 16))
    facts = [ReactionEvent.from_json(fact) for fact in limit_5.queues.take(REACTIONS)]
    for batch in (facts[:2], facts[:2], facts[3:], facts[1:], facts):
        persist.save(batch)
        assert follow_many(range(16, 20)) == []
    assert (len(followed()), total(), claims()) == (5, 5, [])


def test_a_settle_that_failed_keeps_the_claims_until_it_is_done_again(
    limit_5: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RedisDown("now")

    follow_many(range(11, 16))
    with monkeypatch.context() as patch:
        patch.setattr(redis_commits, "apply_all", fail)
        persist.save([ReactionEvent.from_json(f) for f in limit_5.queues.take(REACTIONS)])
    assert len(claims()) == 5
    assert follow_many([16]) == []
    limit_5.queues.drain()
    assert (total(), claims()) == (5, [])
    assert follow_many([16]) == []


@pytest.mark.parametrize("before", [0, 3, 5])
def test_an_emptied_redis_knows_the_limit_by_mysql(limit_5: World, before: int) -> None:
    assert len(follow_many(range(11, 11 + before))) == before
    limit_5.queues.drain()
    redis.execute("FLUSHALL")
    assert len(follow_many(range(21, 31))) == 5 - before
    limit_5.queues.drain()
    assert (len(followed()), total()) == (5, 5)


def test_while_redis_is_away_the_limit_is_mysqls(limit_5: World, redis_away: Away) -> None:
    follow_many(range(11, 16))
    limit_5.queues.drain()
    with redis_away():
        assert follow_many([16]) == []
        assert follow_many([11]) == [11]


@pytest.mark.parametrize(
    "error", [QueueDown("no queue"), RuntimeError("a bug")], ids=lambda e: type(e).__name__
)
def test_a_follow_that_failed_takes_no_room(
    limit_5: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(react, "react", fail)
        for user_id in range(11, 18):
            with pytest.raises(type(error)):
                follows.follow(user_id, ME)
    assert claims() == []
    assert len(follow_many(range(20, 30))) == 5


def test_many_processes_at_once_stay_within_the_limit(people: World) -> None:
    """5,000 is the limit; 4,995 are there. Four processes ask for the same twenty."""
    add_users(range(1001, 5996))
    insert_rows([(user(i), ME, 1, BASE_US + i) for i in range(1001, 5996)], FOLLOW)
    mysql.write(
        "INSERT INTO user_counter (user_id, following_total, version) VALUES (7, 4995, 4995)"
    )
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'layers/common/python'}"}
    wanted = [i for i in PEOPLE if i != ME][:20]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.follower_process", str(ME)]
            + [str(i) for i in random.Random(seed).sample(wanted, 20)],
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
        said = [process.communicate(timeout=60)[0].splitlines() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    facts = [fact for _, *sent in said for fact in sent]
    assert len({ReactionEvent.from_json(fact).key for fact in facts}) == 5, "each may come again"
    for fact in facts:
        people.queues.send(REACTIONS, fact)
    people.queues.drain()
    assert (len(followed()), total(), claims()) == (5000, 5000, [])
    taken = followed() & set(wanted)
    assert all(int(may) <= 5 for may, *_ in said)
    assert follow_many(wanted) == [i for i in wanted if i in taken]


# ---------------------------------------------------------------- lists

Read = Callable[[FollowPosition | None, int], tuple[list[Person], FollowPosition | None]]


def whole(read: Read, size: int) -> list[int]:
    """A list, followed to its end."""
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


def of_ada(after: FollowPosition | None, size: int) -> tuple[list[Person], FollowPosition | None]:
    return follows.list_following(ADA, ME, after, size)


def common(after: FollowPosition | None, size: int) -> tuple[list[Person], FollowPosition | None]:
    return follows.list_common(ADA, ME, after, size)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("ticks", [1, 4, 1000], ids=lambda t: f"{t} at a time")
def test_followers_of_one_instant_are_each_listed_once(
    people: World, size: int, ticks: int
) -> None:
    actors = [i for i in PEOPLE if i != ADA]
    insert_rows([(user(ADA), i, 1, BASE_US + i // ticks) for i in actors], FOLLOW)
    in_order = sorted(actors, key=lambda i: (i // ticks, i))
    assert whole(followers(latest=False), size) == in_order
    assert whole(followers(latest=True), size) == in_order[::-1]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("ticks", [1, 1000], ids=lambda t: f"{t} at a time")
def test_whom_somebody_follows_and_whom_both_follow_are_listed_newest_first(
    people: World, size: int, ticks: int
) -> None:
    adas = [i for i in PEOPLE if i % 2 and i not in (ME, ADA)]
    mine = [i for i in PEOPLE if i % 3 == 0 and i not in (ME, ADA)]
    insert_rows([(user(i), ADA, 1, BASE_US + i // ticks) for i in adas], FOLLOW)
    insert_rows([(user(i), ME, 1, BASE_US + 99 - i // ticks) for i in mine], FOLLOW)
    insert_rows([(user(i), ADA, 0, BASE_US) for i in mine if i not in adas], FOLLOW)
    assert whole(of_ada, size) == sorted(adas, key=lambda i: (i // ticks, i), reverse=True)
    both = set(adas) & set(mine)
    assert whole(common, size) == sorted(both, key=lambda i: (-(i // ticks), i), reverse=True)


def test_a_page_stays_what_it_is_when_people_come_and_go(people: World) -> None:
    insert_rows([(user(ADA), i, 1, BASE_US + i) for i in range(11, 21)], FOLLOW)
    first, after = followers()(None, 4)
    assert [p.user_id for p in first] == [20, 19, 18, 17]
    follows.follow(ADA, 30)
    follows.unfollow(ADA, 18)
    follows.unfollow(ADA, 17)
    second, _ = followers()(after, 4)
    assert [p.user_id for p in second] == [16, 15, 14, 13]


def test_common_follows_stay_what_they_are_when_i_follow_more(people: World) -> None:
    for actor in (ADA, ME):
        insert_rows([(user(i), actor, 1, BASE_US + i) for i in range(11, 21)], FOLLOW)
    first, after = common(None, 4)
    assert [p.user_id for p in first] == [20, 19, 18, 17]
    insert_rows([(user(30), actor, 1, BASE_US + 30) for actor in (ADA, ME)], FOLLOW)
    assert [p.user_id for p in common(after, 4)[0]] == [16, 15, 14, 13]


def test_a_list_says_who_they_are_since_when_and_if_i_follow_them(people: World) -> None:
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
                "user": {"id": "999", "nickname": "somebody", "avatar": None},
                "at": "2023-11-14T22:13:20.000006Z",
                "mine": {"following": False},
            },
        ],
        "next": None,
    }
    asked = event("follows.list_followers")
    asked["requestContext"]["authorizer"]["lambda"] = {}
    assert '"mine":null' in handler("api/follows")(asked, None)["body"].replace(" ", "")


def test_what_i_do_shows_in_lists_once_it_is_saved(people: World) -> None:
    insert_rows([(user(11), ADA, 1, BASE_US)], FOLLOW)
    follows.follow(ADA, ME)
    follows.follow(11, ME)
    assert whole(followers(), 10) == []
    people.queues.drain()
    assert whole(followers(), 10) == [ME]
    assert ask("follows.list_following", "api/follows")[1]["items"][0]["user"]["id"] == "11"
    items = ask("follows.list_common_follows", "api/follows")[1]["items"]
    assert [(i["user"]["id"], i["mine"]) for i in items] == [("11", {"following": True})]


@pytest.mark.parametrize("size", [3, 50])
@pytest.mark.parametrize(
    "listing", [followers(), of_ada, common], ids=["followers", "following", "common"]
)
def test_a_longer_page_takes_no_more_round_trips(people: World, listing: Read, size: int) -> None:
    everybody = [i for i in PEOPLE if i not in (ME, ADA)]
    insert_rows([(user(ADA), i, 1, BASE_US + i) for i in everybody], FOLLOW)
    for actor in (ADA, ME):
        insert_rows([(user(i), actor, 1, BASE_US + i) for i in everybody], FOLLOW)
    listing(None, size)
    before = statements()
    with count_round_trips() as sent:
        page, _ = listing(None, size)
    assert len(page) == size
    assert sent.sent <= 3
    assert statements() - before <= 2


def test_lists_work_while_redis_is_away(people: World, redis_away: Away) -> None:
    for actor in (ADA, ME):
        insert_rows([(user(i), actor, 1, BASE_US + i) for i in (11, 12)], FOLLOW)
    insert_rows([(user(ADA), 11, 1, BASE_US)], FOLLOW)
    with redis_away():
        assert whole(followers(), 10) == [11]
        assert whole(of_ada, 10) == [12, 11]
        assert whole(common, 1) == [12, 11]


@pytest.mark.parametrize("name", ["list_followers", "list_following", "list_common_follows"])
@pytest.mark.parametrize(
    "cursor",
    [
        "x", "bnVsbA", pack_cursor(1), pack_cursor(1, 2, 3), pack_cursor(1, "a"),
        pack_cursor("user", 1), pack_cursor(2**63, 1), pack_cursor(1, -(2**70)),
    ],
)  # fmt: skip
def test_a_cursor_that_we_did_not_give_is_a_400(people: World, name: str, cursor: str) -> None:
    asked = event(f"follows.{name}")
    asked["queryStringParameters"] = {"cursor": cursor}
    assert handler("api/follows")(asked, None)["statusCode"] == 400


@pytest.mark.parametrize("name", ["list_followers", "list_following", "list_common_follows"])
@pytest.mark.parametrize("ends", [(0, 0), (-1, -1), (2**63 - 1, 2**63 - 1), (-(2**63 - 1), 5)])
def test_a_cursor_that_somebody_made_is_a_page(
    people: World, name: str, ends: tuple[int, int]
) -> None:
    insert_rows([(user(ADA), 11, 1, BASE_US), (user(11), ADA, 1, BASE_US)], FOLLOW)
    asked = event(f"follows.{name}")
    asked["queryStringParameters"] = {"cursor": pack_cursor(*ends)}
    assert handler("api/follows")(asked, None)["statusCode"] == 200


def test_whom_both_follow_is_read_by_the_index_and_the_primary_key(people: World) -> None:
    """5,000 a side: as many look-ups as I follow, no sorting, no table of its own."""
    for actor, of in ((ME, range(10_000, 15_000)), (ADA, range(12_000, 17_000))):
        insert_rows([(user(i), actor, 1, BASE_US + i) for i in of], FOLLOW)
    seen: list[dict[str, Any]] = []
    fetch = mysql.fetch_all

    def watch(sql: str, args: Sequence[Any] = ()) -> list[Any]:
        seen.extend(explain(sql, args))
        return fetch(sql, args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mysql, "fetch_all", watch)
        page, last = follows.mysql_store.read_common(ADA, ME, None, 101), None
    assert [place.user_id for place in page[:2]] == [14_999, 14_998]
    assert last is None
    mine, theirs = seen
    assert mine["key"] == "by_actor"
    assert "filesort" not in mine["Extra"]
    assert "temporary" not in mine["Extra"]
    assert (theirs["type"], theirs["key"]) == ("eq_ref", "PRIMARY")
