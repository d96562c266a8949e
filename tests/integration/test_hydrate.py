"""hydrate.lua and forget.lua, code by code, and the hydration around them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plaza import reactions
from plaza.infra import redis
from plaza.reactions import COLLECT, LIKE, ReactionEvent, Target, reacting, redis_reactions
from plaza.reactions.mysql_reactions import Snapshot
from plaza.reactions.reactions import Key
from tests.integration.looking import (
    POST,
    gate,
    hydrate,
    insert_rows,
    keys,
    meta,
    outbox,
    put,
    recent,
    rows,
    settle,
)
from tests.keyspace import find_keys
from tests.plaza import World

SetUp = Callable[..., None]


def fact(actor: int, on: bool, ver_us: int) -> ReactionEvent:
    return ReactionEvent(Key(*POST, "like", actor), on, ver_us, None)


def test_a_target_comes_back_with_what_mysql_said(plaza: World) -> None:
    assert put(total=2, n=5, newest=[(8, 20), (7, 10)], last_ver_us=30) == "HYDRATED"
    assert recent() == [7, 8]
    assert meta() == {
        "total": 2,
        "ver": 30,
        "dbver": 5,
        "dbtotal": 2,
        "complete": 1,
        "bloom": 0,
        "waiting": 0,
    }


def test_who_comes_second_finds_the_target_there_and_changes_nothing(plaza: World) -> None:
    put(total=2, n=5, newest=[(8, 20), (7, 10)])
    gate(9)
    before = meta(), recent(), outbox()
    assert put(total=99, n=99, newest=[(1, 1)]) == "PRESENT"
    assert (meta(), recent(), outbox()) == before


def test_what_is_older_than_the_fence_is_refused(plaza: World) -> None:
    assert settle(3, 8, [(7, 10, True)]).code == "COLD"
    assert put(total=2, n=7) == "FENCED"
    assert meta() == {}
    assert put(total=3, n=8) == "HYDRATED"


def test_the_fence_is_short_lived_and_only_rises(plaza: World) -> None:
    settle(3, 8, [])
    settle(2, 5, [])
    assert redis.execute("GET", keys().fence) == "8"
    assert 0 < redis.execute("TTL", keys().fence) <= redis_reactions.FENCE_TTL_S
    settle(4, 9, [])
    assert redis.execute("GET", keys().fence) == "9"


def test_left_overs_of_a_target_are_removed(plaza: World) -> None:
    """Keys of one target can expire some milliseconds apart."""
    redis.execute("SETBIT", keys().bloom, 5, 1)
    redis.execute("SETBIT", keys().filling, 5, 1)
    redis.execute("ZADD", keys().recent, 1, 99)
    put(total=1, newest=[(7, 10)])
    assert recent() == [7]
    assert redis.execute("EXISTS", keys().bloom, keys().filling) == 0


def test_a_thousand_actors_and_more_come_back(plaza: World) -> None:
    newest = [(actor, 10_000 + actor) for actor in range(1, 2_302)]
    put(total=2_301, newest=newest)
    assert recent() == [actor for actor, _ in newest]


def test_a_target_whose_outbox_outlived_it_does_not_expire(plaza: World) -> None:
    redis.execute("HSET", keys().outbox, 7, "1:10:1")
    put(total=0)
    assert redis.execute("TTL", keys().meta) == -1
    assert gate(7).code == "UNCHANGED", "what is pending is still known"


def test_an_outbox_that_outlived_its_target_is_believed_until_it_is_empty(plaza: World) -> None:
    """Part of Redis was lost: what MySQL said has no place for what is in the outbox."""
    redis.execute("HSET", keys().outbox, 7, "1:10:1", 8, "1:20:2")
    put(total=5, n=3, newest=[(1, 5)])
    assert (meta()["waiting"], meta()["stale"]) == (2, 1)
    assert settle(6, 4, [(7, 10, True)]).code == "PENDING"
    assert settle(7, 5, [(8, 20, True)]).code == "FORGOTTEN"
    assert redis.execute("EXISTS", keys().meta, keys().outbox, keys().recent) == 0


# ---------------------------------------------------------------- forget


def test_a_quiet_target_is_forgotten_whole(plaza: World) -> None:
    put(total=1, newest=[(7, 10)], complete=False)
    redis_reactions.begin_bloom(LIKE, POST, "b", 1)
    redis_reactions.drop_all([(LIKE, POST, None)])
    assert redis.execute("DBSIZE") == 0


def test_a_target_with_something_pending_is_marked_and_forgotten_when_it_is_quiet(
    plaza: World,
) -> None:
    put()
    ver = gate(7).ver_us
    redis_reactions.drop_all([(LIKE, POST, None)])
    assert meta()["stale"] == 1
    assert outbox() == {7: (1, ver, 1)}
    assert gate(8).code == "CHANGED"
    saved = [(actor, entry[1], True) for actor, entry in outbox().items()]
    assert settle(2, 2, saved).code == "FORGOTTEN"
    assert find_keys("*") == [keys().fence]


def test_who_read_before_a_settle_that_forgot_is_refused(plaza: World) -> None:
    """Two bring it back; the slower one dies before it could see that it was too late."""
    put(total=1, n=1, newest=[(7, 10)])
    assert settle(2, 2, [(8, 20, True)]).code == "FORGOTTEN"
    assert put(total=1, n=1, newest=[(7, 10)]) == "FENCED"
    assert 0 < redis.execute("TTL", keys().fence) <= redis_reactions.FENCE_TTL_S
    assert put(total=2, n=2, newest=[(7, 10), (8, 20)]) == "HYDRATED"


def test_forgetting_what_is_not_there_is_nothing(plaza: World) -> None:
    redis_reactions.forget_all([(LIKE, POST), (COLLECT, POST)])
    assert redis.execute("DBSIZE") == 0


# ---------------------------------------------------------------- from MySQL


def test_a_target_with_few_rows_is_whole_and_one_with_many_is_not(
    plaza: World, set_up: SetUp
) -> None:
    set_up(recent_cap=50)
    few, many = Target("post", 1), Target("post", 2)
    insert_rows([(few, actor, 1, 1000 + actor) for actor in range(1, 50)])
    insert_rows([(many, actor, 1, 1000 + actor) for actor in range(1, 81)])
    reacting.load([(LIKE, few), (LIKE, many), (COLLECT, few)])
    assert (meta(few)["complete"], meta(few)["total"], len(recent(few))) == (1, 49, 49)
    assert (meta(many)["complete"], meta(many)["total"]) == (0, 80)
    assert recent(many) == list(range(31, 81)), "the newest"
    assert meta(few, COLLECT)["complete"] == 1
    assert meta(few, COLLECT)["total"] == 0


def test_rows_that_are_off_count_for_the_version_and_nothing_else(plaza: World) -> None:
    insert_rows([(POST, 7, 1, 1000), (POST, 8, 0, 5000)])
    hydrate()
    assert recent() == [7]
    assert (meta()["total"], meta()["ver"]) == (1, 5000)


def test_a_target_that_moved_while_it_was_read_is_read_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer commits and settles between the read and the write to Redis."""
    insert_rows([(POST, 7, 1, 1000)])
    hydrate_all = redis_reactions.hydrate_all
    tries = []

    def slow(found: list[tuple[object, Target, Snapshot]]) -> list[str]:
        tries.append(found)
        if len(tries) == 1:
            insert_rows([(POST, 8, 1, 2000)])
        return hydrate_all(found)  # type: ignore[arg-type]

    monkeypatch.setattr(redis_reactions, "hydrate_all", slow)
    hydrate()
    assert len(tries) == 2
    assert recent() == [7, 8]
    assert meta()["total"] == 2


def test_a_target_that_never_stands_still_is_left_out_of_redis(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_rows([(POST, 7, 1, 1000)])
    hydrate_all = redis_reactions.hydrate_all
    actors = iter(range(8, 100))

    def slow(found: list[tuple[object, Target, Snapshot]]) -> list[str]:
        insert_rows([(POST, next(actors), 1, 2000)])
        return hydrate_all(found)  # type: ignore[arg-type]

    monkeypatch.setattr(redis_reactions, "hydrate_all", slow)
    hydrate()
    assert meta() == {}


@pytest.mark.parametrize(
    "moves",
    [
        [(7, 0, 2000), (8, 1, 2000)],  # one left, one came: the total is what it was
        [(7, 1, 3000)],  # left and came back: they are newer than they were
    ],
    ids=["one for another", "left and back"],
)
def test_what_changed_no_total_is_seen_by_who_read_before_it_too(
    plaza: World, monkeypatch: pytest.MonkeyPatch, moves: list[tuple[int, int, int]]
) -> None:
    """Facts taken while Redis was away are saved and settled between the read and the write."""
    plaza.add(POST)
    reactions.save([fact(7, True, 1000), fact(9, True, 1500)])
    hydrate_all = redis_reactions.hydrate_all
    tries = []

    def slow(found: list[tuple[object, Target, Snapshot]]) -> list[str]:
        tries.append(found)
        if len(tries) == 1:
            reactions.save([fact(actor, on == 1, ver) for actor, on, ver in moves])
        return hydrate_all(found)  # type: ignore[arg-type]

    monkeypatch.setattr(redis_reactions, "hydrate_all", slow)
    hydrate()
    saved = sorted((ver, actor) for actor, (on, ver) in rows().items() if on)
    assert recent() == [actor for _, actor in saved]
    assert meta()["total"] == 2


def test_hydrating_nothing_asks_nobody(plaza: World) -> None:
    assert reacting.load([]) == []
