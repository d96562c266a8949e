"""settle.lua, code by code: what MySQL has need not be pending any more."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from plaza.infra import redis
from plaza.reactions import LIKE, redis_reactions, saving
from plaza.reactions.redis_reactions import Settled, Settlement
from plaza.reactions.saving import Saved
from tests.integration.looking import (
    POST,
    due,
    gate,
    keys,
    meta,
    outbox,
    put,
    recent,
    settle,
)
from tests.keyspace import find_keys
from tests.plaza import World

SetUp = Callable[..., None]


def lines(capsys: pytest.CaptureFixture[str], event: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in found if line["event"] == event]


def test_what_is_saved_is_not_pending_any_more(plaza: World) -> None:
    put()
    ver = gate(7).ver_us
    assert settle(1, 1, [(7, ver, True)]) == Settled("QUIET", 0)
    assert outbox() == {}
    assert due() is None
    assert (meta()["total"], meta()["dbver"], meta()["dbtotal"]) == (1, 1, 1)


def test_some_are_left(plaza: World) -> None:
    put()
    first, second = gate(7).ver_us, gate(8).ver_us
    assert settle(1, 1, [(7, first, True)]) == Settled("PENDING", 0)
    assert outbox() == {8: (1, second, 2)}
    assert due() is not None
    assert meta()["total"] == 2, "the total is Redis' own while something is pending"


def test_an_entry_newer_than_what_is_saved_stays(plaza: World) -> None:
    put()
    first = gate(7).ver_us
    second = gate(7, on=False).ver_us
    assert settle(1, 1, [(7, first, True)]).code == "PENDING"
    assert outbox() == {7: (0, second, 0)}
    assert settle(0, 2, [(7, second, False)]) == Settled("QUIET", 0)


def test_the_same_settle_twice_is_the_same_once(plaza: World) -> None:
    put()
    ver = gate(7).ver_us
    settle(1, 1, [(7, ver, True)])
    before = meta(), recent()
    assert settle(1, 1, [(7, ver, True)]) == Settled("QUIET", 0)
    assert (meta(), recent()) == before


def test_an_older_settle_after_a_newer_one_does_not_turn_the_total_back(plaza: World) -> None:
    put()
    first, second = gate(7).ver_us, gate(8).ver_us
    assert settle(2, 2, [(8, second, True)]).code == "PENDING"
    assert settle(1, 1, [(7, first, True)]) == Settled("QUIET", 0)
    assert (meta()["total"], meta()["dbver"], meta()["dbtotal"]) == (2, 2, 2)


def test_a_total_that_drifted_is_corrected_and_reported(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    put(total=5, n=5, newest=[(1, 10)], complete=False)
    redis.execute("HSET", keys().meta, "total", 9)
    ver = gate(7, expected=(False, 5)).ver_us
    capsys.readouterr()
    saving.settle(Saved([Settlement(LIKE, POST, 6, 6, [(7, ver, True)])], {}))
    assert meta()["total"] == 6
    [line] = lines(capsys, "total_corrected")
    assert (line["drift"], line["by"], line["target"]) == (4, -4, "post:11")


def test_no_drift_is_reported_when_there_is_none(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    put()
    ver = gate(7).ver_us
    capsys.readouterr()
    saving.settle(Saved([Settlement(LIKE, POST, 1, 1, [(7, ver, True)])], {}))
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------- while Redis was away


def test_away_leaves_a_fence_and_nothing_else(plaza: World) -> None:
    assert settle(1, 4, [(7, 10, True)]) == Settled("COLD", 0)
    assert find_keys("*") == [keys().fence]


def test_who_is_in_recent_but_off_in_mysql_makes_the_target_forgotten(plaza: World) -> None:
    put(total=2, n=1, newest=[(7, 10), (8, 20)])
    assert settle(1, 2, [(7, 30, False)]).code == "FORGOTTEN"
    assert redis.execute("EXISTS", keys().meta, keys().recent) == 0


def test_who_is_on_in_mysql_but_not_in_a_whole_recent_makes_the_target_forgotten(
    plaza: World,
) -> None:
    put(total=1, n=1, newest=[(7, 10)])
    assert settle(2, 2, [(8, 20, True)]).code == "FORGOTTEN"
    assert meta() == {}


def test_a_target_in_doubt_waits_until_nothing_is_pending(plaza: World) -> None:
    put(total=1, n=1, newest=[(7, 10)])
    ver = gate(9).ver_us
    assert settle(2, 2, [(8, 20, True)]).code == "PENDING"
    assert meta()["stale"] == 1
    assert settle(3, 3, [(9, ver, True)]).code == "FORGOTTEN"


def test_who_left_and_came_back_is_as_new_as_mysql_says(plaza: World) -> None:
    put(total=2, n=1, newest=[(7, 10), (8, 20)])
    assert settle(2, 3, [(7, 30, True)]).code == "QUIET"
    assert recent() == [8, 7]
    assert meta()["ver"] == 30


def test_a_late_settle_of_an_unlike_does_not_doubt_who_came_back_since(plaza: World) -> None:
    put(total=2, n=3, newest=[(7, 30), (8, 20)])
    assert settle(1, 2, [(7, 25, False)]).code == "QUIET"
    assert recent() == [8, 7]


def test_a_newcomer_joins_a_recent_that_is_not_whole_if_new_enough(
    plaza: World, set_up: SetUp
) -> None:
    set_up(recent_cap=3)
    put(total=9, n=1, newest=[(7, 30), (8, 40), (6, 20)], complete=False)
    assert settle(10, 2, [(9, 35, True)]).code == "QUIET"
    assert recent() == [7, 9, 8], "the oldest fell out"
    assert settle(11, 3, [(5, 10, True)]).code == "QUIET"
    assert recent() == [7, 9, 8], "older than all of recent"
    assert meta()["total"] == 11


def test_a_newcomer_is_added_to_the_filter_in_use_and_to_the_one_being_built(
    plaza: World,
) -> None:
    put(total=9, n=1, newest=[(7, 30)], complete=False)
    redis_reactions.begin_bloom(LIKE, POST, "b1", 9)
    redis_reactions.fill_bloom(LIKE, POST, "b1", [7], True)
    redis_reactions.begin_bloom(LIKE, POST, "b2", 9)
    assert gate(5, on=False).code == "UNCHANGED", "the filter says no"
    settle(10, 2, [(5, 10, True)])
    assert gate(5, on=False).code == "UNKNOWN"
    assert redis_reactions.fill_bloom(LIKE, POST, "b2", [7], True) == "FINISHED"
    assert gate(5, on=False).code == "UNKNOWN"


def test_who_fell_out_of_recent_before_a_scan_could_see_them_joins_the_new_filter(
    plaza: World, set_up: SetUp
) -> None:
    """Accepted, pushed out into the old filter; then the scan for a new one passed, too early."""
    set_up(recent_cap=1)
    put()
    ver = gate(7).ver_us
    gate(8)
    assert recent() == [8]
    redis_reactions.begin_bloom(LIKE, POST, "b1", 9)
    redis_reactions.fill_bloom(LIKE, POST, "b1", [], False)
    settle(1, 1, [(7, ver, True)])
    assert redis_reactions.fill_bloom(LIKE, POST, "b1", [], True) == "FINISHED"
    assert gate(7, on=False).code == "UNKNOWN", "the new filter must not say no"
    assert gate(9, on=False).code == "UNCHANGED"


def test_who_changed_their_mind_while_they_waited_is_one_who_waits(plaza: World) -> None:
    put()
    vers = [gate(7, on).ver_us for on in (True, False, True)]
    assert meta()["waiting"] == 1
    assert settle(1, 1, [(7, vers[-1], True)]) == Settled("QUIET", 0)


# ---------------------------------------------------------------- many at once


def test_targets_are_settled_in_one_go_each_by_itself(plaza: World) -> None:
    from plaza.reactions import COLLECT

    put()
    put(kind=COLLECT)
    like, collect = gate(7).ver_us, gate(7, kind=COLLECT).ver_us
    found = redis_reactions.settle_all(
        [
            Settlement(LIKE, POST, 1, 1, [(7, like, True)]),
            Settlement(COLLECT, POST, 5, 1, [(7, collect, True)]),
        ]
    )
    assert found == [Settled("QUIET", 0), Settled("QUIET", 4)]
    assert (meta()["total"], meta(kind=COLLECT)["total"]) == (1, 5)


def test_the_lists_of_those_who_reacted_are_dropped_and_no_others(plaza: World) -> None:
    for actor in (7, 8):
        lease = redis_reactions.take_lease(LIKE, actor)
        redis_reactions.fill_list(LIKE, actor, lease, [], 0)
    settle(1, 1, [(7, 10, True)])
    assert redis_reactions.read_list(LIKE, 7) is None
    assert redis_reactions.read_list(LIKE, 8) == (0, [])


def test_a_thousand_rows_of_one_target_are_settled(plaza: World) -> None:
    put()
    for actor in range(1, 1_001):
        gate(actor)
    found = [(actor, ver, True) for actor, (_, ver, _) in outbox().items()]
    assert len(found) == 1_000
    assert settle(1_000, 1, found) == Settled("QUIET", 0)


# ---------------------------------------------------------------- my lists


def test_a_list_is_filled_by_who_holds_the_lease(plaza: World) -> None:
    from plaza.reactions import Reacted

    lease = redis_reactions.take_lease(LIKE, 7)
    redis_reactions.fill_list(LIKE, 7, lease, [Reacted(POST, 10)], 5)
    assert redis_reactions.read_list(LIKE, 7) == (5, [Reacted(POST, 10)])


def test_a_list_is_refused_when_a_reaction_was_saved_since_the_lease(plaza: World) -> None:
    lease = redis_reactions.take_lease(LIKE, 7)
    settle(1, 1, [(7, 10, True)])
    redis_reactions.fill_list(LIKE, 7, lease, [], 0)
    assert redis_reactions.read_list(LIKE, 7) is None


def test_a_list_is_refused_from_a_reader_that_another_overtook(plaza: World) -> None:
    early = redis_reactions.take_lease(LIKE, 7)
    late = redis_reactions.take_lease(LIKE, 7)
    redis_reactions.fill_list(LIKE, 7, early, [], 1)
    assert redis_reactions.read_list(LIKE, 7) is None
    redis_reactions.fill_list(LIKE, 7, late, [], 2)
    assert redis_reactions.read_list(LIKE, 7) == (2, [])
    redis_reactions.fill_list(LIKE, 7, late, [], 3)
    assert redis_reactions.read_list(LIKE, 7) == (2, []), "a lease is used up"


def test_a_lease_and_a_list_do_not_stay_for_ever(plaza: World) -> None:
    lease = redis_reactions.take_lease(LIKE, 7)
    newest_key, lease_key = redis_reactions._list_keys("like", 7)
    assert 0 < redis.execute("TTL", lease_key) <= redis_reactions.LEASE_TTL_S
    redis_reactions.fill_list(LIKE, 7, lease, [], 0)
    assert 0 < redis.execute("TTL", newest_key) <= redis_reactions.LIST_TTL_S
