"""gate.lua, code by code, on a real Redis."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plaza.core.reactions import (
    COLLECT,
    LIKE,
    Target,
    react,
    redis_bloom,
    redis_gate,
    redis_outbox,
    redis_queries,
)
from plaza.infra.redis import commands, connections, masters, redis
from plaza.infra.runtime.errors import UnknownProtocol
from tests.support.keyspace import redis_us
from tests.support.plaza import World
from tests.support.stores import (
    POST,
    apply,
    due,
    gate,
    gate_as_read,
    keys,
    meta,
    outbox,
    put,
    recent,
    save_outbox,
    total,
)

SetUp = Callable[..., None]
BIG = (2**63 - 1, 2**63 - 2, 2**53 + 1, 2**53)
MAX_TOGGLES = 20  # as in gate.lua


def gate_call(
    actor: int, on: bool, *, nonce: str = "", deadline_us: int = 2**53, term: str = ""
) -> commands.Call:
    k = keys()
    return commands.Call(
        redis_gate.GATE,
        (k.meta, k.outbox, k.recent, k.bloom, k.filling, k.row_requests, k.toggles, k.outboxes),
        (
            actor,
            int(on),
            nonce or f"n{actor}",
            deadline_us,
            term or masters.find_node(k.meta).term,
            10**6,
            k.member,
            0,
        ),
    )


def read_call(actor: int) -> commands.Call:
    k = keys()
    return commands.Call(
        redis_queries.READ,
        (k.meta, k.outbox, k.recent, k.bloom, k.filling),
        (masters.find_node(k.meta).term, actor, 10**9),
    )


# ---------------------------------------------------------------- decisions


def test_a_reaction_to_a_cold_target_writes_nothing(plaza: World) -> None:
    assert gate(7).code == "COLD"
    assert redis.execute("DBSIZE") == 0


def test_a_deleted_target_refuses_all_actors(plaza: World) -> None:
    put(total=1, newest=[(7, 10)])
    redis.execute("HSET", keys().meta, "mode", "2:deleted:complete")
    assert [gate(actor, on).code for actor in (7, 8) for on in (True, False)] == ["DELETED"] * 4
    assert (outbox(), recent()) == ({}, [7])


def test_a_like_is_stored_in_the_outbox_with_version_and_base(plaza: World) -> None:
    put(total=3, n=5, newest=[(1, 10), (2, 20), (3, 30)])
    before_us = redis_us()
    decision = gate(7)
    assert (decision.code, decision.total, decision.rebuild) == ("CHANGED", 4, False)
    assert before_us <= decision.version_us <= redis_us()
    assert outbox() == {7: (1, decision.version_us, 0)}
    assert recent() == [1, 2, 3], "recent has saved actors only"
    assert due() == decision.version_us
    fields = meta()
    assert (fields["base"], fields["delta"], fields["outbox_count"], fields["db_version"]) == (
        3,
        1,
        1,
        5,
    )
    assert fields["version"] == decision.version_us


def test_a_repeated_like_is_an_assertion_with_a_newer_version(plaza: World) -> None:
    put()
    first = gate(7)
    again = gate(7)
    assert (again.code, again.total) == ("UNCHANGED", 1)
    assert again.version_us > first.version_us
    assert outbox() == {7: (1, again.version_us, 0)}
    assert total() == 1


def test_an_unchanged_saved_state_is_an_assertion_too(plaza: World) -> None:
    put(total=1, newest=[(1, 10)])
    on, off = gate(1), gate(7, on=False)
    assert (on.code, off.code) == ("UNCHANGED", "UNCHANGED")
    assert outbox() == {1: (1, on.version_us, 1), 7: (0, off.version_us, 0)}
    assert (total(), meta()["delta"], meta()["outbox_count"]) == (1, 0, 2)


def test_an_unlike_replaces_the_like_in_the_outbox(plaza: World) -> None:
    put()
    first = gate(7)
    second = gate(7, on=False)
    assert (second.code, second.total) == ("CHANGED", 0)
    assert second.version_us > first.version_us
    assert outbox() == {7: (0, second.version_us, 0)}
    assert recent() == []
    assert due() == first.version_us, "the oldest version in the outbox"


def test_a_replaced_entry_is_counted_once(plaza: World) -> None:
    put()
    gate(7)
    gate(7, on=False)
    assert (meta()["outbox_count"], len(outbox())) == (1, 1)


def test_an_unlike_without_a_like_of_a_complete_target_is_unchanged(plaza: World) -> None:
    put(total=1, newest=[(1, 10)])
    assert gate(7, on=False).code == "UNCHANGED"
    assert gate(1, on=False).code == "CHANGED"


def test_the_outbox_takes_precedence_over_recent_and_the_expected_state(plaza: World) -> None:
    put(total=1, newest=[(7, 10)], n=5)
    gate(7, on=False)
    assert gate(7, on=False, expected=(True, 99)).code == "UNCHANGED"


def test_an_actor_outside_of_an_incomplete_recent_is_unknown(plaza: World) -> None:
    put(total=9, n=5, newest=[(1, 10)], complete=False)
    assert gate(1, on=False).code == "CHANGED", "1 is in recent"
    decision = gate(7)
    assert (decision.code, decision.rebuild) == ("UNKNOWN", True)
    assert total() == 8
    assert not gate(7).rebuild, "requested once"
    redis.execute("HSET", keys().meta, "build_requested_at", redis_us() // 1000 + 3_600_000)
    assert gate(7).rebuild, "the clock went back"
    assert 7 not in outbox()


@pytest.mark.parametrize(
    ("was_on", "requested", "code"),
    [
        (True, True, "UNCHANGED"),
        (True, False, "CHANGED"),
        (False, True, "CHANGED"),
        (False, False, "UNCHANGED"),
    ],
)
def test_the_expected_state_decides_for_an_unknown_actor(
    plaza: World, was_on: bool, requested: bool, code: str
) -> None:
    put(total=9, n=5, complete=False)
    decision = gate_as_read(7, requested, was_on=was_on, n=5)
    assert decision.code == code
    assert outbox() == {7: (int(requested), decision.version_us, int(was_on))}


@pytest.mark.parametrize(
    ("actor", "code"),
    [
        pytest.param(1, "UNCHANGED", id="a saved like"),
        pytest.param(2, "UNCHANGED", id="a like in the outbox"),
        pytest.param(3, "NEW", id="an unlike in the outbox"),
        pytest.param(4, "NEW", id="nothing"),
    ],
)
def test_a_repeat_only_changes_nothing(plaza: World, actor: int, code: str) -> None:
    put(total=2, n=5, newest=[(1, 10), (3, 11)])
    gate(2)
    gate(3, on=False)
    before = outbox()
    assert gate(actor, only_repeat=True).code == code
    assert total() == 2
    if code == "NEW":
        assert outbox() == before
    else:
        assert outbox()[actor][0] == 1


@pytest.mark.parametrize(("was_on", "code"), [(True, "UNCHANGED"), (False, "NEW")])
def test_a_repeat_only_of_an_unknown_actor_depends_on_the_expected_state(
    plaza: World, was_on: bool, code: str
) -> None:
    put(total=9, n=5, complete=False)
    assert gate(7, only_repeat=True).code == "UNKNOWN"
    assert gate(7, expected=(was_on, 5), only_repeat=True).code == code
    assert (total(), 7 in outbox()) == (9, was_on)


def test_an_expected_state_without_a_row_request_is_refused(plaza: World) -> None:
    """The row may have been changed and applied before Redis stored the request."""
    put(total=9, n=5, complete=False)
    assert gate(7, expected=(False, 5)).code == "UNKNOWN"
    assert gate(7, expected=(False, 4)).code == "UNKNOWN", "read before the request"
    assert gate(7, expected=(False, 5)).code == "CHANGED"


def test_an_expected_state_is_refused_after_a_row_of_the_actor_was_applied(plaza: World) -> None:
    put(total=9, n=5, newest=[(1, 100)], complete=False)
    assert gate(7).code == "UNKNOWN"
    # The row of 7 was read as off at version 5; then 7 liked elsewhere and that was saved.
    assert apply(6, 10, [(7, 50, True)]).code == "APPLIED"
    assert gate(7, on=False, expected=(False, 5)).code == "UNKNOWN"
    assert gate(7, on=False, expected=(False, 5)).code == "UNKNOWN", "read before the request"
    assert gate(7, on=False, expected=(True, 6)).code == "CHANGED"


def test_rows_of_other_actors_keep_an_expected_state_valid(plaza: World) -> None:
    """On a hot target the version changes between any read and the next attempt."""
    put(total=9, n=5, complete=False)
    assert gate(7).code == "UNKNOWN"
    for n in range(6, 12):
        assert apply(n, n + 4, [(100 + n, n, True)]).code == "APPLIED"
    assert gate(7, expected=(False, 5)).code == "CHANGED"


def test_a_second_request_of_an_actor_keeps_the_first_one_valid(plaza: World) -> None:
    """Given two devices of one actor, and a commit between their requests."""
    put(total=9, n=5, complete=False)
    assert gate(7).code == "UNKNOWN"
    apply(6, 10, [(8, 50, True)])
    assert gate(7).code == "UNKNOWN"
    assert gate(7, expected=(False, 5)).code == "CHANGED"


def test_row_requests_expire(plaza: World) -> None:
    put(total=9, n=5, complete=False)
    assert gate(7).code == "UNKNOWN"
    assert 0 < redis.execute("PTTL", keys().row_requests) <= 60_000


def test_an_entry_of_a_blocked_target_does_not_postpone_its_sweep(plaza: World) -> None:
    put(total=1, newest=[(1, 10)])
    apply(2, 3, [(8, 20, True)])
    before_us = due()
    assert before_us is not None
    assert gate(7).version_us > before_us
    assert due() == before_us


# ---------------------------------------------------------------- repeats, late commands, restarts


@pytest.mark.parametrize("first_code", ["CHANGED", "UNCHANGED"])
def test_a_repeat_with_the_same_nonce_gets_the_first_reply(plaza: World, first_code: str) -> None:
    """After a lost reply the caller must publish the version that is in the outbox."""
    put(total=1, newest=[(7, 10)])
    want = first_code == "UNCHANGED"
    first = gate(7, want, nonce="of-one-call")
    before = meta(), outbox()
    again = gate(7, want, nonce="of-one-call")
    assert first.code == first_code
    assert (again.code, again.total, again.version_us) == (
        first.code,
        first.total,
        first.version_us,
    )
    assert (meta(), outbox()) == before


def test_a_repeat_is_neither_rate_limited_nor_refused_by_a_full_outbox(
    plaza: World, set_up: SetUp
) -> None:
    set_up(outbox_limit=1)
    put()
    for _ in range(MAX_TOGGLES + 5):
        assert gate(7, nonce="of-one-call").code == "CHANGED"


def test_a_command_that_arrives_after_its_deadline_is_refused(plaza: World) -> None:
    put()
    late, at_us = redis.run_all([gate_call(7, True, deadline_us=redis_us() - 1)])[0]
    assert late == "LATE"
    assert at_us <= redis_us()
    assert (outbox(), total(), due()) == ({}, 0, None)
    assert redis.run_all([gate_call(7, True, deadline_us=redis_us() + 10**7)])[0][0] == "CHANGED"


def test_a_command_for_a_node_that_restarted_finds_the_target_cold(plaza: World) -> None:
    put(total=1, newest=[(7, 10)])
    assert redis.run_all([gate_call(8, True, term="0" * 40)])[0][0] == "COLD"
    assert outbox() == {}


def test_a_target_loaded_in_another_term_is_cold(plaza: World) -> None:
    """After a restart the data of Redis may be older than what was acknowledged."""
    put(total=1, n=3, newest=[(7, 10)])
    redis.execute("HSET", keys().meta, "term", "0" * 40)
    assert gate(8).code == "COLD"
    assert redis_queries.read_all([(LIKE, POST)], 7) == [None]
    assert redis_queries.read_page(LIKE, POST, None, True, 5) is None
    assert apply(4, 2, [(9, 20, True)]).code == "DROPPED"
    assert meta() == {}, "it lacks the commit, and its term may return with its data"
    assert put(total=2, n=4, newest=[(7, 10), (9, 20)]) == "HYDRATED"
    assert (total(), recent()) == (2, [7, 9])


def test_a_target_of_the_layout_with_one_field_a_value_is_loaded_again(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 8, True)
    plaza.queues.drain()
    term = masters.find_node(keys().meta).term
    redis.execute("DEL", keys().meta)
    redis.execute("HSET", keys().meta, "db_version", 1, "term", term, "protocol", 2, "base", 1)
    assert gate(7).code == "COLD"
    outcome = react.react(LIKE, POST, 7, True)
    assert (outcome.total, outcome.changed, total()) == (2, True, 2)


def test_a_target_of_another_protocol_is_an_error_and_stays_unchanged(plaza: World) -> None:
    put()
    redis.execute("HSET", keys().meta, "mode", "3:live:complete")
    before = connections.client().hgetall(keys().meta)
    for work in (
        lambda: gate(7),
        lambda: redis_queries.read_all([(LIKE, POST)], 7),
        lambda: apply(1, 1, [(7, 10, True)]),
    ):
        with pytest.raises(UnknownProtocol, match="PROTOCOL 3"):
            work()
    assert connections.REDIS.breaker.current_state == "closed"
    assert connections.client().hgetall(keys().meta) == before


# ---------------------------------------------------------------- the limit of quick changes


def test_quick_changes_are_limited_for_each_actor_and_kind(plaza: World) -> None:
    put()
    codes = [gate(7, on=n % 2 == 0).code for n in range(MAX_TOGGLES + 3)]
    assert codes == ["CHANGED"] * (MAX_TOGGLES + 1) + ["LIMITED", "UNCHANGED"]
    assert gate(8).code == "CHANGED"
    put(kind=COLLECT)
    assert gate(7, kind=COLLECT).code == "CHANGED"
    redis.execute("HINCRBY", keys().toggles, 7, -60_000_000)
    assert gate(7, on=False).code == "CHANGED", "a minute later"
    assert 0 < redis.execute("TTL", keys().toggles) <= 60


def test_a_clock_that_goes_back_limits_an_actor_for_a_minute_at_most(plaza: World) -> None:
    put()
    hour_ahead_us = time.time_ns() // 1000 + 3_600_000_000
    gate(7)
    redis.execute("HSET", keys().toggles, 7, hour_ahead_us)
    assert gate(7, on=False).code == "LIMITED"
    full_us = int(redis.execute("HGET", keys().toggles, 7))
    assert full_us - time.time_ns() // 1000 <= 60_000_000
    redis.execute("HINCRBY", keys().toggles, 7, -60_000_000)
    assert gate(7, on=False).code == "CHANGED"


def test_quick_changes_are_limited_although_each_is_saved(plaza: World) -> None:
    put()
    n = 0
    for n in range(1, 2 * MAX_TOGGLES + 1):
        decision = gate(7, on=n % 2 == 1)
        assert decision.code == "CHANGED"
        save_outbox(n, n % 2)
    gate(7)
    save_outbox(n + 1, 1)
    assert gate(7, on=False).code == "LIMITED"
    assert outbox() == {}


def test_a_repeated_like_is_no_quick_change(plaza: World) -> None:
    put(total=1, newest=[(7, redis_us())])
    for n in range(1, MAX_TOGGLES + 3):
        assert gate(7).code == "UNCHANGED"
        save_outbox(n, 1)


def test_buckets_of_quick_changes_are_few_and_expire(plaza: World) -> None:
    put(total=1, newest=[(7, redis_us())])
    redis.execute("HSET", keys().toggles, *(n for actor in range(10_000) for n in (-actor, 1)))
    assert gate(7, on=False).code == "CHANGED"
    assert redis.execute("HKEYS", keys().toggles) == ["7"]
    assert 0 < redis.execute("TTL", keys().toggles) <= 60


def test_a_late_unlike_is_no_quick_change(plaza: World) -> None:
    put(total=1, newest=[(7, redis_us() - 11_000_000)])
    assert gate(7, on=False).code == "CHANGED"
    assert redis.execute("EXISTS", keys().toggles) == 0


# ---------------------------------------------------------------- versions and ids


def test_versions_grow_although_the_clock_is_behind(plaza: World) -> None:
    ahead_us = redis_us() + 3_600_000_000
    put(total=1, newest=[(1, ahead_us)])
    assert gate(7).version_us == ahead_us + 1
    assert gate(8).version_us == ahead_us + 2
    assert gate(7, on=False).version_us == ahead_us + 3


def test_the_index_has_the_time_of_an_entry_whose_version_is_ahead(plaza: World) -> None:
    put(last_version_us=redis_us() + 3_600_000_000)
    gate(7)
    indexed_us = due()
    assert indexed_us is not None
    assert indexed_us <= redis_us()


def test_a_version_is_above_that_of_a_row_that_is_off(plaza: World) -> None:
    ahead_us = redis_us() + 3_600_000_000
    put(last_version_us=ahead_us)
    assert gate(7).version_us == ahead_us + 1


def test_a_version_is_above_that_of_an_applied_row(plaza: World) -> None:
    """Given a provisional event, whose version is of another clock."""
    ahead_us = redis_us() + 3_600_000_000
    put()
    apply(1, 1, [(7, ahead_us, True)])
    assert gate(7, on=False).version_us == ahead_us + 1


def test_versions_up_to_2_to_the_53_are_exact(plaza: World) -> None:
    put(last_version_us=2**53 - 3)
    decision = gate(7)
    assert decision.version_us == 2**53 - 2
    assert outbox()[7][1] == meta()["version"] == 2**53 - 2
    assert apply(1, 1, [(7, 2**53 - 2, True)]).outbox_count == 0
    page = redis_queries.read_page(LIKE, POST, None, False, 5)
    assert page is not None
    assert page[1] == [(7, 2**53 - 2)]


def test_ids_of_63_bits_are_distinguished(plaza: World) -> None:
    put()
    for number, actor in enumerate(BIG, 1):
        assert gate(actor).total == number
    assert set(outbox()) == set(BIG)
    save_outbox(1, len(BIG))
    assert (outbox(), recent()) == ({}, list(BIG))
    gate(BIG[0], on=False)
    target = Target("comment", 2**63 - 1)
    put(target=target)
    assert gate(BIG[0], target=target).code == "CHANGED"
    assert {t for _, t in redis_outbox.find_due(redis_us(), 10)} == {POST, target}


# ---------------------------------------------------------------- the limit of the outbox


def test_a_full_outbox_accepts_changes_of_its_actors_only(plaza: World, set_up: SetUp) -> None:
    set_up(outbox_limit=2)
    put()
    gate(1)
    gate(2)
    assert gate(3).code == "FULL"
    assert set(outbox()) == {1, 2}
    assert total() == 2
    assert gate(2, on=False).code == "CHANGED"
    assert gate(1).code == "UNCHANGED", "1 has an entry"
    assert gate(3, on=False).code == "FULL", "an assertion needs an entry, too"


# ---------------------------------------------------------------- eviction


def test_the_gate_evicts_no_actor(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=3)
    put(total=3, newest=[(1, 10), (2, 20), (3, 30)])
    for actor in range(4, 10):
        gate(actor)
    gate(2, on=False)
    assert recent() == [1, 2, 3]
    assert (meta()["complete"], meta()["bloom"]) == (1, 0)


@pytest.mark.deep
def test_the_filter_denies_none_of_5000_members(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=10)
    put()
    members = [(n * 2_654_435_761) % (2**63 - 1) + 1 for n in range(1, 5_001)]
    calls = [gate_call(actor, on=True) for actor in members]
    assert {answer[0] for answer in redis.run_all(calls)} == {"CHANGED"}
    versions = {actor: entry[1] for actor, entry in outbox().items()}
    for n, start in enumerate(range(0, 5_000, 1_000), 1):
        part = members[start : start + 1_000]
        apply(n, n * 1_000, [(actor, versions[actor], True) for actor in part])
    assert outbox() == {}

    replies = [reply for [reply] in redis.run_all([read_call(actor) for actor in members])]
    assert {answer[1] for answer in replies} <= {"1", ""}, "a member was denied"
    assert sum(answer[1] == "1" for answer in replies) == 10

    others = [actor + 2**62 for actor in range(1, 2_001)]
    replies = [reply for [reply] in redis.run_all([read_call(actor) for actor in others])]
    unsure = sum(answer[1] == "" for answer in replies)
    assert unsure < 2_000 / 50, "the filter denies most other actors"


# ---------------------------------------------------------------- expiry


def expiries(target: Target = POST) -> dict[str, int]:
    """Return name -> expiry (ms since 1970, -1 for none) of the target's existing keys."""
    k = keys(target)
    results = {name: redis.execute("PEXPIRETIME", getattr(k, name)) for name in k._fields[:5]}
    return {name: at_ms for name, at_ms in results.items() if at_ms != -2}


def put_idle_target(set_up: SetUp) -> None:
    """Load a target with an empty outbox, a filter in use and one under construction."""
    set_up(recent_cap=2, idle_ttl_s=1_000)
    put()
    for actor in (1, 2, 3):
        gate(actor)
    save_outbox(1, 3)
    assert redis_bloom.begin_bloom(LIKE, POST, "b1", 3) == "BEGUN"
    gate(3)
    assert save_outbox(2, 3).outbox_count == 0


def test_all_keys_of_an_idle_target_expire_at_the_same_instant(plaza: World, set_up: SetUp) -> None:
    put_idle_target(set_up)
    result = expiries()
    assert set(result) == {"meta", "recent", "bloom", "filling"}
    assert len(set(result.values())) == 1
    left_s = result["meta"] / 1000 - redis_us() / 1e6
    assert 890 <= left_s <= 1_110, "plus or minus 10 %"


def test_all_keys_expire_again_when_the_outbox_is_saved(plaza: World, set_up: SetUp) -> None:
    put_idle_target(set_up)
    gate(9)
    save_outbox(meta()["db_version"] + 1, 9)
    result = expiries()
    assert set(result) == {"meta", "recent", "bloom", "filling"}
    assert len(set(result.values())) == 1
    assert result["meta"] > 0


def test_a_target_with_outbox_entries_does_not_expire(plaza: World, set_up: SetUp) -> None:
    put_idle_target(set_up)
    gate(9)
    assert expiries() == dict.fromkeys(["meta", "outbox", "recent", "bloom", "filling"], -1)
    assert redis.execute("TTL", keys().outboxes) == -1


def test_a_later_key_expires_with_the_others(plaza: World, set_up: SetUp) -> None:
    set_up(idle_ttl_s=1_000)
    put(total=5, newest=[(1, 10)], complete=False)
    assert redis_bloom.begin_bloom(LIKE, POST, "b1", 5) == "BEGUN"
    assert len(set(expiries().values())) == 1
    assert redis_bloom.fill_bloom(LIKE, POST, "b1", [1, 2], True) == "FINISHED"
    result = expiries()
    assert set(result) == {"meta", "recent", "bloom"}
    assert len(set(result.values())) == 1
    assert result["meta"] > 0


def test_a_reader_renews_the_ttl_after_half_of_it(plaza: World, set_up: SetUp) -> None:
    set_up(idle_ttl_s=1_000)
    put(total=1, newest=[(1, 10)])

    def leave(left_ms: int) -> dict[str, int]:
        for name in expiries():
            redis.execute("PEXPIRE", getattr(keys(), name), left_ms)
        return expiries()

    # The TTL of a reader is random: 900 to 1,100 s.
    before = leave(600_000)
    assert redis_queries.read_all([(LIKE, POST)], 1)[0] is not None
    assert expiries() == before, "not each read writes"
    leave(300_000)
    redis_queries.read_all([(LIKE, POST)], 1)
    after = expiries()
    assert len(set(after.values())) == 1
    assert after["meta"] / 1000 - redis_us() / 1e6 > 890


def test_an_invalid_target_does_not_stop_the_reads_of_others(plaza: World) -> None:
    broken, other = keys(kind=COLLECT), keys()
    put(kind=COLLECT)
    put(total=1, newest=[(7, 10)])
    redis.execute("HSET", broken.meta, "mode", "3:live:complete")
    of_targets = [key for k in (broken, other) for key in k[:5]]
    reply = connections.client().eval(
        redis_queries.READ.source,
        len(of_targets),
        *of_targets,
        masters.find_node(other.meta).term,
        7,
        10**9,
    )
    assert (isinstance(reply[0], Exception), reply[1][:3]) == (True, [1, "1", 0])


def test_a_read_of_a_blocked_target_sets_no_ttl(plaza: World) -> None:
    put(total=1, newest=[(1, 10)])
    apply(2, 3, [(8, 20, True)])
    [[[*reply]]] = redis.run_all([read_call(7)])
    assert reply[:3] == [1, "0", 0]
    assert redis.execute("PTTL", keys().meta) == redis.execute("PTTL", keys().recent) == -1


def test_a_read_of_a_target_with_an_outbox_sets_no_ttl(plaza: World) -> None:
    put()
    gate(1)
    redis_queries.read_all([(LIKE, POST)], 1)
    gate(1)
    assert set(expiries().values()) == {-1}


# ---------------------------------------------------------------- random reactions


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    reactions=st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=20),
    cap=st.integers(1, 4),
)
def test_the_total_is_the_number_of_actors_that_are_on(
    plaza: World, set_up: SetUp, reactions: list[tuple[int, bool]], cap: int
) -> None:
    redis.execute("FLUSHALL")
    set_up(recent_cap=cap)
    put()
    on: set[int] = set()
    last_version = 0
    for actor, want in reactions:
        decision = gate(actor, want)
        assert decision.code == ("UNCHANGED" if (actor in on) == want else "CHANGED")
        (on.add if want else on.discard)(actor)
        assert decision.total == len(on)
        assert decision.version_us > last_version
        last_version = decision.version_us
    assert {actor for actor, (state, _, _) in outbox().items() if state} == on
    save_outbox(1, len(on))
    assert (total(), outbox()) == (len(on), {})
    assert set(recent()) <= on
