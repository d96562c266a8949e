"""gate.lua, code by code, on a real Redis."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plaza.infra import redis
from plaza.reactions import LIKE, Target, redis_reactions
from tests.integration.looking import (
    POST,
    dirty,
    gate,
    keys,
    meta,
    pending,
    put,
    recent,
    settle,
)
from tests.keyspace import redis_us
from tests.plaza import World

SetUp = Callable[..., None]
BIG = (2**63 - 1, 2**63 - 2, 2**53 + 1, 2**53)


# ---------------------------------------------------------------- deciding


def test_a_target_that_is_not_in_redis_is_cold_and_stays_away(plaza: World) -> None:
    assert gate(7).code == "COLD"
    assert redis.execute("DBSIZE") == 0


def test_a_target_that_was_deleted_is_gone_for_everybody(plaza: World) -> None:
    put(total=1, newest=[(7, 10)])
    redis.execute("HSET", keys().meta, "gone", 1)
    assert [gate(actor, on).code for actor in (7, 8) for on in (True, False)] == ["GONE"] * 4
    assert (pending(), recent()) == ({}, [7])


def test_a_like_is_written_to_the_outbox_with_its_version_and_total(plaza: World) -> None:
    put(total=3, dbver=5, newest=[(1, 10), (2, 20), (3, 30)])
    before_us = redis_us()
    decision = gate(7)
    assert (decision.code, decision.total, decision.rebuild) == ("CHANGED", 4, False)
    assert before_us <= decision.ver_us <= redis_us()
    assert pending() == {7: (1, decision.ver_us, 4)}
    assert recent() == [1, 2, 3, 7]
    assert dirty() == decision.ver_us
    assert meta()["total"] == 4
    assert meta()["ver"] == decision.ver_us


def test_the_same_again_changes_nothing(plaza: World) -> None:
    put()
    first = gate(7)
    again = gate(7)
    assert (again.code, again.total, again.ver_us) == ("UNCHANGED", 1, first.ver_us)
    assert pending() == {7: (1, first.ver_us, 1)}


def test_an_unlike_takes_the_like_back_and_waits_in_the_outbox_too(plaza: World) -> None:
    put()
    first = gate(7)
    second = gate(7, on=False)
    assert (second.code, second.total) == ("CHANGED", 0)
    assert second.ver_us > first.ver_us
    assert pending() == {7: (0, second.ver_us, 0)}
    assert recent() == []
    assert dirty() == first.ver_us, "the oldest pending version"


def test_an_unlike_of_what_was_not_liked_is_unchanged_when_recent_has_everybody(
    plaza: World,
) -> None:
    put(total=1, newest=[(1, 10)])
    assert gate(7, on=False).code == "UNCHANGED"
    assert gate(1, on=False).code == "CHANGED"


def test_what_is_pending_counts_before_recent_and_hint(plaza: World) -> None:
    put(total=1, newest=[(7, 10)], dbver=5)
    gate(7, on=False)
    assert gate(7, on=False, hint=(True, 99)).code == "UNCHANGED"


def test_without_everybody_in_recent_only_mysql_knows_a_stranger(plaza: World) -> None:
    put(total=9, dbver=5, newest=[(1, 10)], complete=False)
    assert gate(1, on=False).code == "CHANGED", "whoever is in recent is known"
    decision = gate(7)
    assert (decision.code, decision.total, decision.rebuild) == ("UNKNOWN", 8, True)
    assert not gate(7).rebuild, "the build was asked for"
    assert 7 not in pending()


@pytest.mark.parametrize(
    ("was_on", "wanted", "code"),
    [
        (True, True, "UNCHANGED"),
        (True, False, "CHANGED"),
        (False, True, "CHANGED"),
        (False, False, "UNCHANGED"),
    ],
)
def test_a_hint_decides_what_only_mysql_knew(
    plaza: World, was_on: bool, wanted: bool, code: str
) -> None:
    put(total=9, dbver=5, complete=False)
    assert gate(7, wanted, hint=(was_on, 5)).code == code


def test_a_hint_is_refused_when_settle_has_brought_a_newer_version_since(plaza: World) -> None:
    put(total=9, dbver=5, complete=False)
    # The row of 7 was read as off at dbver 5; then 7 liked elsewhere and that was settled.
    assert settle(10, 6, [(7, 50, True)]).code == "QUIET"
    assert gate(8, hint=(False, 5)).code == "UNKNOWN"
    assert gate(8, hint=(False, 6)).code == "CHANGED"


# ---------------------------------------------------------------- versions and ids


def test_a_version_grows_although_the_clock_is_behind(plaza: World) -> None:
    ahead_us = redis_us() + 3_600_000_000
    put(total=1, newest=[(1, ahead_us)])
    assert gate(7).ver_us == ahead_us + 1
    assert gate(8).ver_us == ahead_us + 2
    assert gate(7, on=False).ver_us == ahead_us + 3


def test_the_newest_version_of_a_row_that_is_off_counts_too(plaza: World) -> None:
    ahead_us = redis_us() + 3_600_000_000
    put(last_ver_us=ahead_us)
    assert gate(7).ver_us == ahead_us + 1


def test_versions_up_to_2_to_the_53_are_kept_exactly(plaza: World) -> None:
    put(last_ver_us=2**53 - 3)
    decision = gate(7)
    assert decision.ver_us == 2**53 - 2
    assert pending()[7][1] == meta()["ver"] == 2**53 - 2
    found = redis_reactions.read_page(LIKE, POST, None, False, 5)
    assert found is not None
    assert found[1] == [(7, 2**53 - 2)]


def test_ids_of_63_bits_are_told_apart(plaza: World) -> None:
    put()
    for n, actor in enumerate(BIG, 1):
        assert gate(actor).total == n
    assert set(pending()) == set(BIG)
    assert recent() == list(BIG)
    target = Target("comment", 2**63 - 1)
    put(target=target)
    assert gate(BIG[0], target=target).code == "CHANGED"
    assert {t for _, t in redis_reactions.find_dirty(redis_us(), 10)} == {POST, target}


# ---------------------------------------------------------------- the outbox has a limit


def test_a_full_outbox_takes_no_new_actor_but_lets_those_in_it_change(
    plaza: World, set_up: SetUp
) -> None:
    set_up(outbox_limit=2)
    put()
    gate(1)
    gate(2)
    assert gate(3).code == "FULL"
    assert set(pending()) == {1, 2}
    assert meta()["total"] == 2
    assert gate(2, on=False).code == "CHANGED"
    assert gate(1).code == "UNCHANGED", "who changes nothing needs no room"
    assert gate(3, on=False).code == "UNCHANGED"


# ---------------------------------------------------------------- eviction


def test_who_falls_out_of_recent_goes_into_the_bloom_filter(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=3)
    put()
    for actor in (1, 2, 3):
        gate(actor)
    assert (meta()["complete"], meta()["bloom"]) == (1, 0)
    assert redis.execute("EXISTS", keys().older) == 0
    gate(4)
    assert recent() == [2, 3, 4]
    assert meta()["complete"] == 0
    assert meta()["bloom"] == 131_072
    settle(4, 1, [(actor, pending()[actor][1], True) for actor in (1, 2, 3, 4)])
    assert gate(1).code == "UNKNOWN", "in the filter: perhaps"
    assert gate(9, on=False).code == "UNCHANGED", "a filter never lies about no"
    assert meta()["total"] == 4


def test_a_lower_cap_is_reached_two_by_two(plaza: World, set_up: SetUp) -> None:
    put()
    for actor in range(1, 9):
        gate(actor)
    set_up(recent_cap=3)
    gate(20)
    assert len(recent()) == 7
    gate(21)
    assert len(recent()) == 6
    for actor in range(22, 26):
        gate(actor)
    assert recent() == [23, 24, 25]


def test_an_unlike_evicts_nobody(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=3)
    put()
    for actor in (1, 2, 3):
        gate(actor)
    gate(2, on=False)
    gate(4)
    assert recent() == [1, 3, 4]
    assert meta()["complete"] == 1


@pytest.mark.slow
def test_the_filter_never_says_no_to_any_of_5000_members(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=10)
    put()
    members = [(n * 2_654_435_761) % (2**63 - 1) + 1 for n in range(1, 5_001)]
    calls = [gate_call(actor, on=True) for actor in members]
    assert {answer[0] for answer in redis.run_all(calls)} == {"CHANGED"}
    versions = {actor: entry[1] for actor, entry in pending().items()}
    for start in range(0, 5_000, 1_000):
        part = members[start : start + 1_000]
        settle(5_000, 1, [(actor, versions[actor], True) for actor in part])
    assert pending() == {}

    answers = redis_reactions.read_all([(LIKE, POST)] * 1, members[0])
    assert answers[0] is not None
    seen = redis.run_all([read_call(actor) for actor in members])
    assert {answer[1] for answer in seen} <= {1, -1}, "a member was told no"
    assert sum(answer[1] == 1 for answer in seen) == 10

    strangers = [actor + 2**62 for actor in range(1, 2_001)]
    seen = redis.run_all([read_call(actor) for actor in strangers])
    unsure = sum(answer[1] == -1 for answer in seen)
    assert unsure < 2_000 / 50, "a filter that knows nobody is no help"


def gate_call(actor: int, on: bool) -> redis.Call:
    k = keys()
    return redis.Call(
        redis_reactions.GATE,
        (k.meta, k.pending, k.recent, k.older, k.filling, k.dirty),
        (actor, int(on), "", 0, 10, 10**6, k.member, 10**9),
    )


def read_call(actor: int) -> redis.Call:
    k = keys()
    return redis.Call(
        redis_reactions.READ, (k.meta, k.pending, k.recent, k.older, k.filling), (actor, 10**9)
    )


# ---------------------------------------------------------------- how long a target stays


def expiries(target: Target = POST) -> dict[str, int]:
    """Key -> when it goes (ms), -1 never; of the keys of the target that are there."""
    k = keys(target)
    found = {name: redis.execute("PEXPIRETIME", getattr(k, name)) for name in k._fields[:5]}
    return {name: at_ms for name, at_ms in found.items() if at_ms != -2}


def quiet_with_all_keys(set_up: SetUp) -> None:
    """A target that has meta, recent, a filter in use and one being built, and is quiet."""
    set_up(recent_cap=2, idle_ttl_s=1_000)
    put()
    for actor in (1, 2, 3):
        gate(actor)
    assert redis_reactions.begin_bloom(LIKE, POST, "b1", 3) == "BEGUN"
    assert settle(3, 1, [(a, v, True) for a, (_, v, _) in pending().items()]).code == "QUIET"


def test_all_keys_of_a_quiet_target_go_at_one_instant(plaza: World, set_up: SetUp) -> None:
    quiet_with_all_keys(set_up)
    found = expiries()
    assert set(found) == {"meta", "recent", "older", "filling"}
    assert len(set(found.values())) == 1
    left_s = found["meta"] / 1000 - redis_us() / 1e6
    assert 890 <= left_s <= 1_110, "ten percent more or less: not all at once"


def test_nothing_goes_while_something_is_pending(plaza: World, set_up: SetUp) -> None:
    quiet_with_all_keys(set_up)
    gate(9)
    assert expiries() == dict.fromkeys(["meta", "pending", "recent", "older", "filling"], -1)
    assert redis.execute("TTL", keys().dirty) == -1


def test_a_key_made_later_goes_with_the_others(plaza: World, set_up: SetUp) -> None:
    set_up(idle_ttl_s=1_000)
    put(total=5, newest=[(1, 10)], complete=False)
    assert redis_reactions.begin_bloom(LIKE, POST, "b1", 5) == "BEGUN"
    assert len(set(expiries().values())) == 1
    assert redis_reactions.fill_bloom(LIKE, POST, "b1", [1, 2], True) == "FINISHED"
    found = expiries()
    assert set(found) == {"meta", "recent", "older"}
    assert len(set(found.values())) == 1
    assert found["meta"] > 0


@pytest.mark.parametrize("how", ["gate", "read"])
def test_who_comes_by_keeps_a_target_warm_once_half_its_time_is_over(
    plaza: World, set_up: SetUp, how: str
) -> None:
    def come_by() -> None:
        if how == "gate":
            assert gate(1).code == "UNCHANGED"
        else:
            assert redis_reactions.read_all([(LIKE, POST)], 1)[0] is not None

    set_up(idle_ttl_s=1_000)
    put(total=1, newest=[(1, 10)])
    before = expiries()
    come_by()
    assert expiries() == before, "not each time: that would be a write for each read"
    for name in before:
        redis.execute("PEXPIRE", getattr(keys(), name), 300_000)
    come_by()
    after = expiries()
    assert len(set(after.values())) == 1
    assert after["meta"] / 1000 - redis_us() / 1e6 > 890


def test_reading_a_target_that_has_something_pending_gives_it_no_time_to_go(plaza: World) -> None:
    put()
    gate(1)
    redis_reactions.read_all([(LIKE, POST)], 1)
    gate(1)
    assert set(expiries().values()) == {-1}


# ---------------------------------------------------------------- anything, in any order


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    wishes=st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=30),
    cap=st.integers(1, 4),
)
def test_the_total_is_how_many_are_on_whatever_they_do(
    plaza: World, set_up: SetUp, wishes: list[tuple[int, bool]], cap: int
) -> None:
    redis.execute("FLUSHALL")
    set_up(recent_cap=cap)
    put()
    on: set[int] = set()
    last_ver = 0
    for actor, want in wishes:
        decision = gate(actor, want)
        assert decision.code == ("UNCHANGED" if (actor in on) == want else "CHANGED")
        (on.add if want else on.discard)(actor)
        assert decision.total == len(on)
        assert decision.ver_us >= last_ver
        last_ver = decision.ver_us
    assert {actor for actor, (state, _, _) in pending().items() if state} == on
