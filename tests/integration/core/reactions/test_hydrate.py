"""lease_hydration.lua, rebase.lua, hydrate.lua and evict.lua, code by code; and hydrate."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from plaza.core.reactions import (
    COLLECT,
    LIKE,
    Target,
    hydration,
    mysql_rows,
    mysql_snapshots,
    persist,
    redis_bloom,
    redis_commits,
    redis_hydration,
)
from plaza.core.reactions.model import MAX_ROWS, Commit, Count, ReactionEvent, ReactionKey, Snapshot
from plaza.core.reactions.redis_hydration import HydrationLease
from plaza.core.targets import markers
from plaza.infra.mysql import mysql
from plaza.infra.redis import commands, masters, redis
from plaza.infra.runtime.settings import settings
from tests.integration.core.reactions.test_gate import gate_call
from tests.support.call_log import record_call
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.stores import (
    POST,
    apply,
    due,
    gate,
    hydrate,
    insert_rows,
    keys,
    meta,
    outbox,
    put,
    read_counts,
    recent,
    rows,
    save_outbox,
    total,
)

SetUp = Callable[..., None]
EMPTY = Snapshot(0, 0, 0, [], True, [], 1)


def make_event(actor: int, on: bool, version_us: int) -> ReactionEvent:
    return ReactionEvent(ReactionKey(*POST, "like", actor), on, version_us)


def take_lease() -> HydrationLease:
    return redis_hydration.take_hydration_leases([(LIKE, POST)])[0]


def hydrate_with(lease: HydrationLease, snapshot: Snapshot) -> str:
    return redis_hydration.hydrate_all([(LIKE, POST, lease, snapshot)])[0]


def evict(db_version: int | None = None) -> str:
    return redis_hydration.evict_all([(LIKE, POST, db_version)])[0]


def write_outbox(**entries: str) -> None:
    """Write the outbox of a target that is not loaded: a7="1:10:0" is an entry of actor 7."""
    for actor, entry in entries.items():
        redis.execute("HSET", keys().outbox, actor[1:], f"{entry}:cabc")


def test_a_hydrated_target_has_the_state_of_the_snapshot(plaza: World) -> None:
    assert put(total=2, n=5, newest=[(8, 20), (7, 10)], last_version_us=30) == "HYDRATED"
    assert recent() == [7, 8]
    assert meta() == {
        "deleted": 0,
        "protocol": 2,
        "term": masters.find_node(keys().meta).term,
        "loaded": 1,
        "changes": 0,
        "db_version": 5,
        "base": 2,
        "delta": 0,
        "version": 30,
        "outbox_count": 0,
        "complete": 1,
        "floor": 0,
        "bloom": 0,
    }


def test_a_second_hydration_changes_nothing(plaza: World) -> None:
    lease = take_lease()
    snapshot = Snapshot(2, 5, 20, [(8, 20), (7, 10)], True, [], 1)
    assert hydrate_with(lease, snapshot) == "HYDRATED"
    gate(9)
    before = meta(), recent(), outbox()
    assert take_lease().code == "PRESENT"
    assert hydrate_with(lease, Snapshot(99, 99, 1, [(1, 1)], True, [], 1)) == "PRESENT"
    assert (meta(), recent(), outbox()) == before


def test_a_hydration_deletes_remaining_keys_of_an_expired_target(plaza: World) -> None:
    """Keys of a target can expire some milliseconds apart."""
    redis.execute("SETBIT", keys().bloom, 5, 1)
    redis.execute("SETBIT", keys().filling, 5, 1)
    redis.execute("ZADD", keys().recent, 1, 99)
    redis.execute("HSET", keys().row_requests, 7, 3)
    put(total=1, newest=[(7, 10)])
    assert recent() == [7]
    assert redis.execute("EXISTS", keys().bloom, keys().filling, keys().row_requests) == 0


def test_a_snapshot_of_2301_actors_is_loaded(plaza: World) -> None:
    newest = [(actor, 10_000 + actor) for actor in range(1, 2_302)]
    put(total=2_301, newest=newest)
    assert recent() == [actor for actor, _ in newest]


def test_an_incomplete_snapshot_sets_a_floor(plaza: World) -> None:
    put(total=9, newest=[(3, 30), (2, 20), (1, 10)], complete=False)
    assert (meta()["complete"], meta()["floor"], recent()) == (0, 10, [1, 2, 3])


# ---------------------------------------------------------------- the lease


def test_one_caller_gets_the_lease(plaza: World) -> None:
    first, second = take_lease(), take_lease()
    assert (first.code, second.code) == ("TAKEN", "BUSY")
    assert hydrate_with(second, EMPTY) == "STALE"
    assert meta() == {}
    assert hydrate_with(first, EMPTY) == "HYDRATED"
    assert redis.execute("EXISTS", keys().lease) == 0


def test_a_lease_of_a_dead_caller_expires(plaza: World) -> None:
    first = take_lease()
    assert 0 < redis.execute("PTTL", keys().lease) <= redis_hydration.HYDRATION_LEASE_TTL_MS
    redis.execute("DEL", keys().lease)
    second = take_lease()
    assert second.code == "TAKEN"
    assert hydrate_with(first, Snapshot(9, 9, 0, [], True, [], 1)) == "STALE"
    assert hydrate_with(second, EMPTY) == "HYDRATED"
    assert total() == 0


def test_a_repeated_command_gets_the_lease_that_it_took(plaza: World) -> None:
    k = keys()
    call = commands.Call(
        redis_hydration.LEASE_HYDRATION,
        (k.meta, k.outbox, k.lease),
        (masters.find_node(k.meta).term, "token", 10_000),
    )
    assert redis.run_all([call, call]) == [["TAKEN", 0]] * 2


def test_a_target_that_is_loaded_without_entries_leaves_the_index(plaza: World) -> None:
    redis.execute("ZADD", keys().outboxes, 5, keys().member)
    assert put(total=1, newest=[(1, 10)]) == "HYDRATED"
    assert due() is None


def test_a_lease_has_the_number_of_outbox_entries(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="1:20:0")
    assert take_lease().entries == 2


def test_a_caller_waits_while_another_loads_the_target(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_rows([(POST, 7, 1, 1000)])
    lease = take_lease()
    waits = []

    def load_meanwhile(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            assert hydrate_with(lease, Snapshot(1, 1, 1000, [(7, 1000)], True, [], 1)) == "HYDRATED"

    monkeypatch.setattr("plaza.infra.runtime.clock.sleep", load_meanwhile)
    monkeypatch.setattr(
        "plaza.core.reactions.mysql_snapshots.read_snapshots",
        lambda *_: pytest.fail("the other caller reads the snapshot"),
    )
    assert hydration.hydrate([(LIKE, POST)], wait_s=60) == []
    assert len(waits) == 3
    assert recent() == [7]


def test_a_hydration_returns_the_targets_that_others_still_load(plaza: World) -> None:
    other = Target("post", 12)
    take_lease()
    assert hydration.hydrate([(LIKE, POST), (LIKE, other)], wait_s=0) == [(LIKE, POST)]
    assert meta(other)["db_version"] == 0, "loaded"


def test_a_read_after_a_long_wait_comes_from_mysql_and_is_not_exact(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    insert_rows([(POST, 7, 1, 1000)])
    write_outbox(a7="0:2000:1", a8="1:2001:0", a9="1:2002:0")
    monkeypatch.setattr(hydration, "HYDRATE_WAIT_S", 0)
    take_lease()
    # MySQL lacks the outbox: an unlike of 7, likes of 8 and 9.
    assert read_counts([(LIKE, POST)], 7) == ([Count(1, True)], False)
    assert meta() == {}
    redis.execute("DEL", keys().lease)
    assert read_counts([(LIKE, POST)], 7) == ([Count(2, False)], True)


def test_a_lease_by_an_older_term_makes_the_target_cold(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller removes confirmed entries from the outbox, which delta would not include."""
    put()
    decision = gate(7)
    assert (total(), meta()["outbox_count"]) == (1, 1)
    node = masters.find_node(keys().meta)
    with monkeypatch.context() as patch:
        patch.setattr(masters, "find_node", lambda _: node._replace(term="0" * 40))
        lease = take_lease()
    row = (7, decision.version_us, True)
    redis.run_all([redis_hydration._rebase_call(LIKE, POST, lease, 1, [row])])
    assert outbox() == {}
    assert gate(8).code == "COLD", "outbox_count would include a removed entry"
    redis.execute("DEL", keys().lease)  # as if it expired
    assert put(total=1, n=1, newest=[row[:2]]) == "HYDRATED"
    assert (total(), meta()["outbox_count"], gate(7).code) == (1, 0, "UNCHANGED")


# ---------------------------------------------------------------- commits during a hydration


def test_a_snapshot_older_than_the_fence_is_refused(plaza: World) -> None:
    lease = take_lease()
    apply(8, 3, [(7, 10, True)], is_new=False)
    assert hydrate_with(lease, Snapshot(2, 7, 0, [], True, [], 1)) == "STALE"
    assert meta() == {}
    assert put(total=3, n=8) == "HYDRATED", "a refused snapshot ends the lease"
    assert total() == 3


def test_commits_during_a_hydration_are_applied_after_the_snapshot(plaza: World) -> None:
    lease = take_lease()
    for n in (3, 5, 4):
        assert apply(n, n, [(n, 10 * n, True)]).code == "COLD"
    assert hydrate_with(lease, Snapshot(3, 3, 30, [(3, 30)], True, [], 1)) == "MORE"
    redis_commits.apply_all([Commit(LIKE, POST, 3, 3, False, ())])
    assert (recent(), total(), meta()["db_version"], meta()["version"]) == ([3, 4, 5], 5, 5, 50)
    assert redis.execute("EXISTS", keys().ahead) == 0
    assert due() is None


def test_a_commit_missing_after_the_snapshot_blocks_the_target(plaza: World) -> None:
    lease = take_lease()
    apply(5, 5, [(5, 50, True)])
    assert hydrate_with(lease, Snapshot(3, 3, 30, [(3, 30)], True, [], 1)) == "MORE"
    assert (meta()["db_version"], meta()["blocked"] > 0) == (3, True)
    assert due() is not None, "due for the sweeper"
    assert redis.execute("PTTL", keys().ahead) == redis.execute("PTTL", keys().meta) == -1
    assert apply(4, 4, [(4, 40, True)]).db_version == 5
    assert (recent(), due()) == ([3, 4, 5], None)


def test_a_commit_that_waited_for_the_snapshot_is_applied_by_its_repeat(plaza: World) -> None:
    lease = take_lease()
    assert apply(4, 4, [(4, 40, True)]).code == "COLD"
    assert hydrate_with(lease, Snapshot(3, 3, 30, [(3, 30)], True, [], 1)) == "MORE"
    assert apply(4, 4, [(4, 40, True)], is_new=False).code == "APPLIED"
    assert (recent(), total(), "blocked" in meta()) == ([3, 4], 4, False)


# ---------------------------------------------------------------- hydration with an outbox


def test_the_outbox_stays_on_top_of_the_snapshot(plaza: World) -> None:
    """Given an outbox of a target that Redis evicted or lost."""
    write_outbox(a7="1:10:0", a8="1:20:0", a9="0:30:1", a6="1:40:1")
    results = [(7, 0, False), (8, 5, True), (9, 6, True), (6, 7, False)]
    assert put(total=2, n=3, newest=[(9, 6), (8, 5)], rows=results) == "HYDRATED"
    assert outbox() == {7: (1, 10, 0), 8: (1, 20, 1), 9: (0, 30, 1), 6: (1, 40, 0)}
    assert (meta()["base"], meta()["delta"], total(), meta()["outbox_count"]) == (2, 1, 3, 4)
    assert meta()["version"] == 40
    assert redis.execute("TTL", keys().meta) == -1
    assert due() is not None
    assert gate(7).code == "UNCHANGED"
    assert save_outbox(4, 3).outbox_count == 0
    assert (total(), set(recent())) == (3, {6, 7, 8})


def test_a_saved_entry_is_confirmed_by_the_hydration(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="0:20:1")
    assert put(total=2, n=3, newest=[(8, 25), (7, 10)], rows=[(7, 10, True), (8, 25, True)])
    assert (outbox(), total(), meta()["outbox_count"], due()) == ({}, 2, 0, None)


def test_an_entry_is_not_confirmed_by_an_older_version_with_fewer_digits(plaza: World) -> None:
    write_outbox(a7=f"1:{10**15}:0")
    assert put(rows=[(7, 10**15 - 1, False)]) == "HYDRATED"
    assert (outbox(), total()) == ({7: (1, 10**15, 0)}, 1)


def test_a_snapshot_with_an_outbox_is_of_one_instant(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a like that is saved between the statement that reads the counter and the one that
    reads the row."""
    insert_rows([(POST, 1, 1, 10)])
    put(total=1, n=1, newest=[(1, 10)])
    version_us = gate(7).version_us
    evict()
    read_rows = mysql_rows.read_rows

    def read_after_commit(*args: Any) -> Any:
        with closing(mysql.connect_dedicated(database=settings().mysql.database)) as other:
            other.begin()
            with other.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
                    " VALUES (%s, %s, 'like', 7, 1, %s)",
                    (*POST, version_us),
                )
                cursor.execute(
                    "UPDATE counter SET total = 2, version = 2"
                    " WHERE target_type = %s AND target_id = %s AND kind = 'like'",
                    tuple(POST),
                )
            other.commit()
        return read_rows(*args)

    monkeypatch.setattr(mysql_snapshots, "read_rows", read_after_commit)
    hydrate()
    counts, exact = read_counts([(LIKE, POST)], 7)
    assert (counts, exact) == ([Count(2, True)], True)
    assert apply(2, 2, [(7, version_us, True)]).outbox_count == 0
    assert (total(), recent()) == (2, [1, 7])


def test_a_hydration_needs_the_rows_of_all_entries(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="1:20:0")
    assert put(total=0, rows=[(7, 0, False)]) == "INCOMPLETE"
    assert meta() == {}
    assert put(total=0, rows=[(7, 0, False), (8, 0, False)]) == "HYDRATED"
    assert total() == 2


def test_the_delta_counts_from_the_row_of_an_entry(plaza: World) -> None:
    write_outbox(a8="1:20:0")
    assert put(total=1, n=1, newest=[(8, 5)], rows=[(8, 5, True)]) == "HYDRATED"
    assert (outbox(), total()) == ({8: (1, 20, 1)}, 1)


def test_an_outbox_of_one_page_is_compared(plaza: World) -> None:
    put()
    redis.run_all([gate_call(actor, True) for actor in range(1, MAX_ROWS + 1)])
    assert evict() == "EVICTED"
    hydrate()
    assert (total(), meta()["outbox_count"]) == (MAX_ROWS, MAX_ROWS)


def test_a_large_outbox_is_compared_in_pages(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 2 * MAX_ROWS + 100
    put()
    redis.run_all([gate_call(actor, True) for actor in range(1, count + 1)])
    versions = {actor: version for actor, (_, version, _) in outbox().items()}
    assert len(versions) == count
    # A third of the entries is saved, and half of those are off again, without a commit in Redis.
    insert_rows(
        [(POST, a, int(a % 2), v + a % 2) for a, v in versions.items() if a % 3 == 0]
        + [(POST, 10**6, 1, 5)]
    )
    assert evict() == "EVICTED"
    pages: list[Any] = []
    rebase_call = redis_hydration._rebase_call
    monkeypatch.setattr(
        redis_hydration,
        "_rebase_call",
        lambda *args: record_call(pages, args[3], rebase_call(*args)),
    )
    hydrate()
    assert pages == [1, 2, 3]
    left = {actor for actor in versions if actor % 3}
    assert set(outbox()) == left
    assert (meta()["outbox_count"], meta()["delta"]) == (len(left), len(left))
    on = sum(state for state, _ in rows().values())
    assert (meta()["base"], total()) == (on, on + len(left))
    assert redis.execute("EXISTS", keys().loading) == 0


def test_a_repeated_page_is_counted_once(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="1:20:0")
    lease = take_lease()
    for page, row in ((1, (7, 0, False)), (1, (7, 0, False)), (2, (8, 0, False))):
        call = redis_hydration._rebase_call(LIKE, POST, lease, page, [row])
        assert redis.run_all([call]) == ["DONE"]
    assert hydrate_with(lease, EMPTY) == "HYDRATED"
    assert (total(), meta()["outbox_count"]) == (2, 2)


def test_each_page_renews_the_lease_and_the_sums(plaza: World) -> None:
    write_outbox(a7="1:10:0")
    lease = take_lease()
    redis.execute("PEXPIRE", keys().lease, redis_hydration.HYDRATION_LEASE_TTL_MS // 2)
    redis.run_all([redis_hydration._rebase_call(LIKE, POST, lease, 1, [(7, 0, False)])])
    for key in (keys().lease, keys().loading):
        left_ms = redis.execute("PTTL", key)
        assert left_ms > redis_hydration.HYDRATION_LEASE_TTL_MS // 2
        assert left_ms <= redis_hydration.HYDRATION_LEASE_TTL_MS


def test_a_page_without_the_lease_or_out_of_order_is_refused(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="1:20:0")
    lease, other = take_lease(), take_lease()
    for used, page in ((other, 1), (lease, 2)):
        call = redis_hydration._rebase_call(LIKE, POST, used, page, [(7, 10, True)])
        assert redis.run_all([call]) == ["STALE"]
    assert set(outbox()) == {7, 8}


def test_pages_of_a_dead_caller_do_not_count_for_the_next(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="1:20:0")
    first = take_lease()
    redis.run_all([redis_hydration._rebase_call(LIKE, POST, first, 1, [(7, 0, False)])])
    redis.execute("DEL", keys().lease)
    assert put(rows=[(7, 0, False), (8, 0, False)]) == "HYDRATED"
    assert (total(), meta()["outbox_count"]) == (2, 2)


def test_a_deleted_target_is_loaded_as_deleted(plaza: World) -> None:
    write_outbox(a7="1:10:0")
    markers.mark_deleted([POST])
    assert put(rows=[(7, 0, False)]) == "HYDRATED"
    assert meta()["deleted"] == 1
    assert gate(8).code == "DELETED"
    assert set(outbox()) == {7}, "reactions accepted before are saved"


def test_a_target_loaded_in_another_term_is_loaded_again(plaza: World) -> None:
    """After a restart of Redis the outbox stays on top of the rows of MySQL."""
    insert_rows([(POST, 7, 1, 1000), (POST, 8, 1, 2000)])
    put(total=1, n=1, newest=[(7, 1000)])
    version = gate(9).version_us
    redis.execute("HSET", keys().meta, "term", "0" * 40)
    redis.execute("SETBIT", keys().bloom, 5, 1)
    hydrate()
    assert meta()["term"] == masters.find_node(keys().meta).term
    assert (recent(), total(), outbox()) == ([7, 8], 3, {9: (1, version, 0)})
    assert redis.execute("EXISTS", keys().bloom) == 0


def test_a_state_that_was_requested_before_a_hydration_is_refused_after_it(plaza: World) -> None:
    """Given a target of which Redis lost meta, and a like that was saved meanwhile."""
    put(total=9, n=5, complete=False)
    assert gate(7).code == "UNKNOWN"
    redis.execute("DEL", keys().meta)
    put(total=10, n=6, complete=False)
    assert gate(7, on=False, expected=(False, 5)).code == "UNKNOWN"
    assert gate(7, on=False, expected=(True, 6)).code == "CHANGED"


# ---------------------------------------------------------------- eviction


def test_an_evicted_target_leaves_no_keys_of_its_own(plaza: World) -> None:
    put(total=1, newest=[(7, 10)], complete=False)
    redis_bloom.begin_bloom(LIKE, POST, "b", 1)
    apply(2, 2, [(9, 10, True)])
    assert gate(1).code == "UNKNOWN"
    assert evict() == "EVICTED"
    assert find_keys("*") == [keys().outboxes], "the sweeper removes the entry"


def test_an_evicted_target_keeps_its_outbox(plaza: World) -> None:
    put(total=1, n=3, newest=[(1, 10)])
    version = gate(7).version_us
    assert evict() == "EVICTED"
    assert set(find_keys("*")) == {keys().outbox, keys().outboxes, keys().fence}
    assert outbox() == {7: (1, version, 0)}
    assert due() is not None, "due for the sweeper"
    assert gate(8).code == "COLD"
    assert put(total=1, n=3, newest=[(1, 10)], rows=[(7, 0, False)]) == "HYDRATED"
    assert total() == 2


def test_an_eviction_ends_the_lease(plaza: World) -> None:
    lease = take_lease()
    assert evict() == "EVICTED"
    assert hydrate_with(lease, EMPTY) == "STALE"


def test_a_snapshot_older_than_the_evicted_target_is_refused(plaza: World) -> None:
    put(total=1, n=4, newest=[(7, 10)])
    assert evict(4) == "EVICTED"
    assert 0 < redis.execute("TTL", keys().fence) <= redis_hydration.FENCE_TTL_S
    assert put(total=1, n=3) == "STALE"
    assert put(total=2, n=4, newest=[(7, 10), (8, 20)]) == "HYDRATED"


def test_a_target_at_a_newer_version_is_not_evicted(plaza: World) -> None:
    put(total=1, n=4, newest=[(7, 10)])
    apply(5, 2, [(8, 20, True)])
    assert evict(4) == "MOVED"
    assert (recent(), total()) == ([7, 8], 2)


def test_an_eviction_of_a_cold_target_changes_nothing(plaza: World) -> None:
    assert redis_hydration.evict_all([(LIKE, POST, None), (COLLECT, POST, None)]) == ["EVICTED"] * 2
    assert redis.execute("DBSIZE") == 0


# ---------------------------------------------------------------- from MySQL


def test_many_targets_read_a_bounded_number_of_rows(plaza: World) -> None:
    liked = Target("post", 1)
    insert_rows([(liked, actor, 1, 1000 + actor) for actor in range(1, 151)])
    hydration.hydrate([(LIKE, Target("post", post_id)) for post_id in range(1, 101)])
    assert (total(liked), len(recent(liked)), meta(liked)["complete"]) == (150, 100, 0)


def test_a_target_with_fewer_rows_than_the_cap_is_complete(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=50)
    few, many = Target("post", 1), Target("post", 2)
    insert_rows([(few, actor, 1, 1000 + actor) for actor in range(1, 50)])
    insert_rows([(many, actor, 1, 1000 + actor) for actor in range(1, 81)])
    hydration.hydrate([(LIKE, few), (LIKE, many), (COLLECT, few)])
    assert (meta(few)["complete"], total(few), len(recent(few))) == (1, 49, 49)
    assert (meta(many)["complete"], total(many)) == (0, 80)
    assert recent(many) == list(range(31, 81)), "the newest"
    assert meta(few, COLLECT)["complete"] == 1
    assert total(few, COLLECT) == 0


def test_rows_that_are_off_count_for_the_version_only(plaza: World) -> None:
    insert_rows([(POST, 7, 1, 1000), (POST, 8, 0, 5000)])
    hydrate()
    assert recent() == [7]
    assert (total(), meta()["version"]) == (1, 5000)


def test_a_hydration_ends_although_commits_arrive(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given consumers that commit and update Redis between the snapshot and the hydration."""
    plaza.add(POST)
    persist.save([make_event(7, True, 1000)])
    hydrate_all = redis_hydration.hydrate_all
    attempts = []

    def slow(result: list[tuple[object, Target, HydrationLease, Snapshot]]) -> list[str]:
        attempts.append(result)
        for actor in range(8, 20):
            persist.save([make_event(actor, True, 1000 + actor)])
        return hydrate_all(result)  # type: ignore[arg-type]

    monkeypatch.setattr(redis_hydration, "hydrate_all", slow)
    hydrate()
    assert len(attempts) == 1
    assert recent() == list(range(7, 20))
    assert (total(), meta()["db_version"]) == (13, 13)


def test_a_snapshot_that_became_too_old_is_read_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a commit that Redis has without its rows."""
    insert_rows([(POST, 7, 1, 1000)])
    hydrate_all = redis_hydration.hydrate_all
    attempts = []

    def slow(result: list[tuple[object, Target, HydrationLease, Snapshot]]) -> list[str]:
        attempts.append(result)
        if len(attempts) == 1:
            insert_rows([(POST, 8, 1, 2000)])
            apply(2, 2, [(7, 1000, True)], is_new=False)
        return hydrate_all(result)  # type: ignore[arg-type]

    monkeypatch.setattr(redis_hydration, "hydrate_all", slow)
    assert hydration.hydrate([(LIKE, POST)]) == []
    assert len(attempts) == 2
    assert (recent(), total()) == ([7, 8], 2)


def test_a_late_commit_is_applied_after_the_hydration(plaza: World) -> None:
    insert_rows([(POST, 7, 1, 1000)])
    hydrate()
    insert_rows([(POST, 8, 1, 2000)])
    assert total() == 1
    assert apply(2, 2, [(8, 2000, True)]).code == "APPLIED"
    assert (recent(), total()) == ([7, 8], 2)


@pytest.mark.parametrize(
    "changes",
    [
        [(7, 0, 2000), (8, 1, 2000)],  # an unlike and a like: the same total
        [(7, 1, 3000)],  # an unlike and a like of one actor: a newer version
    ],
    ids=["two actors", "one actor"],
)
def test_a_commit_with_the_same_total_updates_an_older_snapshot(
    plaza: World, monkeypatch: pytest.MonkeyPatch, changes: list[tuple[int, int, int]]
) -> None:
    """Given provisional events that are saved between the snapshot and the hydration."""
    plaza.add(POST)
    persist.save([make_event(7, True, 1000), make_event(9, True, 1500)])
    hydrate_all = redis_hydration.hydrate_all
    attempts = []

    def slow(result: list[tuple[object, Target, HydrationLease, Snapshot]]) -> list[str]:
        attempts.append(result)
        if len(attempts) == 1:
            persist.save([make_event(actor, on == 1, version) for actor, on, version in changes])
        return hydrate_all(result)  # type: ignore[arg-type]

    monkeypatch.setattr(redis_hydration, "hydrate_all", slow)
    hydrate()
    saved = sorted((version, actor) for actor, (on, version) in rows().items() if on)
    assert recent() == [actor for _, actor in saved]
    assert total() == 2


def test_a_hydration_of_no_targets_returns_at_once(plaza: World) -> None:
    assert hydration.hydrate([]) == []
