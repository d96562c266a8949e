"""hydrate.lua, lease.lua, rebase.lua and drop.lua, code by code, and loading around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plaza.infra import redis
from plaza.reactions import (
    COLLECT,
    LIKE,
    Target,
    persist,
    queries,
    react,
    redis_bloom,
    redis_commits,
    redis_hydration,
)
from plaza.reactions.model import Commit, ReactionEvent, ReactionKey, Snapshot
from plaza.reactions.redis_hydration import MAX_ROWS, HydrationLease
from plaza.targets import markers
from tests.integration.reactions.test_gate import gate_call
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
    recent,
    rows,
    save_outbox,
    total,
)

SetUp = Callable[..., None]
EMPTY = Snapshot(0, 0, 0, [], True, [])


def fact(actor: int, on: bool, version_us: int) -> ReactionEvent:
    return ReactionEvent(ReactionKey(*POST, "like", actor), on, version_us)


def take_lease() -> HydrationLease:
    return redis_hydration.take_hydration_leases([(LIKE, POST)])[0]


def hydrate_with(lease: HydrationLease, snapshot: Snapshot) -> str:
    return redis_hydration.hydrate_all([(LIKE, POST, lease, snapshot)])[0]


def drop(s: int | None = None) -> str:
    return redis_hydration.evict_all([(LIKE, POST, s)])[0]


def write_outbox(**entries: str) -> None:
    """The outbox of a target that is not loaded: a7="1:10:0" is an entry of actor 7."""
    for actor, entry in entries.items():
        redis.execute("HSET", keys().outbox, actor[1:], f"{entry}:cabc")


def test_a_target_comes_back_with_what_mysql_has(plaza: World) -> None:
    assert put(total=2, n=5, newest=[(8, 20), (7, 10)], last_version_us=30) == "HYDRATED"
    assert recent() == [7, 8]
    assert meta() == {
        "deleted": 0,
        "protocol": 2,
        "run_id": redis.find_node(keys().meta).run_id,
        "db_version": 5,
        "base": 2,
        "delta": 0,
        "version": 30,
        "outbox_count": 0,
        "complete": 1,
        "floor": 0,
        "bloom": 0,
    }


def test_the_second_who_loads_a_target_finds_it_there_and_changes_nothing(plaza: World) -> None:
    lease = take_lease()
    put_with = Snapshot(2, 5, 20, [(8, 20), (7, 10)], True, [])
    assert hydrate_with(lease, put_with) == "HYDRATED"
    gate(9)
    before = meta(), recent(), outbox()
    assert take_lease().code == "PRESENT"
    assert hydrate_with(lease, Snapshot(99, 99, 1, [(1, 1)], True, [])) == "PRESENT"
    assert (meta(), recent(), outbox()) == before


def test_left_overs_of_a_target_are_removed(plaza: World) -> None:
    """Keys of one target can expire some milliseconds apart."""
    redis.execute("SETBIT", keys().bloom, 5, 1)
    redis.execute("SETBIT", keys().filling, 5, 1)
    redis.execute("ZADD", keys().recent, 1, 99)
    redis.execute("HSET", keys().row_requests, 7, 3)
    put(total=1, newest=[(7, 10)])
    assert recent() == [7]
    assert redis.execute("EXISTS", keys().bloom, keys().filling, keys().row_requests) == 0


def test_a_thousand_actors_and_more_come_back(plaza: World) -> None:
    newest = [(actor, 10_000 + actor) for actor in range(1, 2_302)]
    put(total=2_301, newest=newest)
    assert recent() == [actor for actor, _ in newest]


def test_a_target_with_more_actors_than_were_read_has_a_floor(plaza: World) -> None:
    put(total=9, newest=[(3, 30), (2, 20), (1, 10)], complete=False)
    assert (meta()["complete"], meta()["floor"], recent()) == (0, 10, [1, 2, 3])


# ---------------------------------------------------------------- the lease


def test_one_caller_gets_the_lease_and_the_others_are_told_to_wait(plaza: World) -> None:
    first, second = take_lease(), take_lease()
    assert (first.code, second.code) == ("TAKEN", "BUSY")
    assert hydrate_with(second, EMPTY) == "STALE"
    assert meta() == {}
    assert hydrate_with(first, EMPTY) == "HYDRATED"
    assert redis.execute("EXISTS", keys().lease) == 0


def test_a_lease_whose_holder_died_ends(plaza: World) -> None:
    first = take_lease()
    assert 0 < redis.execute("PTTL", keys().lease) <= redis_hydration.HYDRATION_LEASE_TTL_MS
    redis.execute("DEL", keys().lease)
    second = take_lease()
    assert second.code == "TAKEN"
    assert hydrate_with(first, Snapshot(9, 9, 0, [], True, [])) == "STALE"
    assert hydrate_with(second, EMPTY) == "HYDRATED"
    assert total() == 0


def test_a_lease_says_how_many_entries_the_outbox_has(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="1:20:0")
    assert take_lease().entries == 2


def test_while_another_loads_a_target_a_caller_waits_for_it(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_rows([(POST, 7, 1, 1000)])
    lease = take_lease()
    waits = []

    def load_meanwhile(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            assert hydrate_with(lease, Snapshot(1, 1, 1000, [(7, 1000)], True, [])) == "HYDRATED"

    monkeypatch.setattr("plaza.infra.clock.sleep", load_meanwhile)
    monkeypatch.setattr(
        "plaza.reactions.react.mysql_reactions.read_snapshots",
        lambda *_: pytest.fail("another loads it"),
    )
    assert react.hydrate([(LIKE, POST)], wait_s=60) == []
    assert len(waits) == 3
    assert recent() == [7]


def test_a_caller_who_waited_long_enough_is_told_what_is_not_loaded(plaza: World) -> None:
    other = Target("post", 12)
    take_lease()
    assert react.hydrate([(LIKE, POST), (LIKE, other)], wait_s=0) == [(LIKE, POST)]
    assert meta(other)["db_version"] == 0, "the rest is"


def test_a_reader_who_waited_in_vain_is_answered_by_mysql_and_not_exactly(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    insert_rows([(POST, 7, 1, 1000)])
    write_outbox(a7="0:2000:1", a8="1:2001:0", a9="1:2002:0")
    monkeypatch.setattr(react, "HYDRATE_WAIT_S", 0)
    take_lease()
    # The outbox is left out: 7 took the like back, 8 and 9 like it.
    assert queries.read_counts([(LIKE, POST)], 7) == ([(1, True)], False)
    assert meta() == {}
    redis.execute("DEL", keys().lease)
    assert queries.read_counts([(LIKE, POST)], 7) == ([(2, False)], True)


def test_a_caller_that_knows_an_older_run_of_the_node_makes_a_loaded_target_cold(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It compares the outbox with rows: what it removes is no part of delta any more."""
    put()
    decision = gate(7)
    assert (total(), meta()["outbox_count"]) == (1, 1)
    with monkeypatch.context() as patch:
        patch.setattr(redis_hydration, "run_id_of", lambda _: "0" * 40)
        lease = take_lease()
    row = (7, decision.version_us, True)
    redis.run_all([redis_hydration._rebase_call(LIKE, POST, lease, 1, [row])])
    assert outbox() == {}
    assert gate(8).code == "COLD", "or it would wait for an entry that is not there"
    redis.execute("DEL", keys().lease)  # its holder died
    assert put(total=1, n=1, newest=[row[:2]]) == "HYDRATED"
    assert (total(), meta()["outbox_count"], gate(7).code) == (1, 0, "UNCHANGED")


# ---------------------------------------------------------------- what was heard meanwhile


def test_what_is_older_than_the_fence_is_refused(plaza: World) -> None:
    lease = take_lease()
    apply(8, 3, [(7, 10, True)], is_new=False)
    assert hydrate_with(lease, Snapshot(2, 7, 0, [], True, [])) == "STALE"
    assert meta() == {}
    assert put(total=3, n=8) == "HYDRATED", "a refused snapshot gives the lease back"
    assert total() == 3


def test_commits_that_were_heard_of_meanwhile_are_applied_after_the_snapshot(
    plaza: World,
) -> None:
    lease = take_lease()
    for n in (3, 5, 4):
        assert apply(n, n, [(n, 10 * n, True)]).code == "COLD"
    assert hydrate_with(lease, Snapshot(3, 3, 30, [(3, 30)], True, [])) == "MORE"
    redis_commits.apply_all([Commit(LIKE, POST, 3, 3, False, ())])
    assert (recent(), total(), meta()["db_version"], meta()["version"]) == ([3, 4, 5], 5, 5, 50)
    assert redis.execute("EXISTS", keys().ahead) == 0
    assert due() is None


def test_a_commit_that_is_missing_between_snapshot_and_ahead_is_waited_for(plaza: World) -> None:
    lease = take_lease()
    apply(5, 5, [(5, 50, True)])
    assert hydrate_with(lease, Snapshot(3, 3, 30, [(3, 30)], True, [])) == "MORE"
    assert (meta()["db_version"], meta()["blocked"] > 0) == (3, True)
    assert due() is not None, "the sweeper looks at it"
    assert redis.execute("PTTL", keys().ahead) == redis.execute("PTTL", keys().meta) == -1
    assert apply(4, 4, [(4, 40, True)]).db_version == 5
    assert (recent(), due()) == ([3, 4, 5], None)


# ---------------------------------------------------------------- the outbox it may have


def test_the_outbox_is_laid_over_the_snapshot(plaza: World) -> None:
    """Redis forgot the target, or lost a part of it, but not what was accepted."""
    write_outbox(a7="1:10:0", a8="1:20:0", a9="0:30:1", a6="1:40:1")
    found = [(7, 0, False), (8, 5, True), (9, 6, True), (6, 7, False)]
    assert put(total=2, n=3, newest=[(9, 6), (8, 5)], rows=found) == "HYDRATED"
    assert outbox() == {7: (1, 10, 0), 8: (1, 20, 1), 9: (0, 30, 1), 6: (1, 40, 0)}
    assert (meta()["base"], meta()["delta"], total(), meta()["outbox_count"]) == (2, 1, 3, 4)
    assert meta()["version"] == 40
    assert redis.execute("TTL", keys().meta) == -1
    assert due() is not None
    assert gate(7).code == "UNCHANGED"
    assert save_outbox(4, 3).outbox_count == 0
    assert (total(), set(recent())) == (3, {6, 7, 8})


def test_an_entry_that_was_saved_meanwhile_is_answered(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="0:20:1")
    assert put(total=2, n=3, newest=[(8, 25), (7, 10)], rows=[(7, 10, True), (8, 25, True)])
    assert (outbox(), total(), meta()["outbox_count"], due()) == ({}, 2, 0, None)


def test_without_the_row_of_an_entry_a_snapshot_is_incomplete(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="1:20:0")
    assert put(total=0, rows=[(7, 0, False)]) == "INCOMPLETE"
    assert meta() == {}
    assert put(total=0, rows=[(7, 0, False), (8, 0, False)]) == "HYDRATED"
    assert total() == 2


def test_an_outbox_of_thousands_is_compared_in_pages(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 2 * MAX_ROWS + 100
    put()
    redis.run_all([gate_call(actor, True) for actor in range(1, count + 1)])
    versions = {actor: version for actor, (_, version, _) in outbox().items()}
    assert len(versions) == count
    # A third was saved, a few of them are off again since; Redis was not told.
    insert_rows(
        [(POST, a, int(a % 2), v + a % 2) for a, v in versions.items() if a % 3 == 0]
        + [(POST, 10**6, 1, 5)]
    )
    assert drop() == "EVICTED"
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


def test_a_page_that_is_sent_twice_is_counted_once(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="1:20:0")
    lease = take_lease()
    for page, row in ((1, (7, 0, False)), (1, (7, 0, False)), (2, (8, 0, False))):
        call = redis_hydration._rebase_call(LIKE, POST, lease, page, [row])
        assert redis.run_all([call]) == ["DONE"]
    assert hydrate_with(lease, EMPTY) == "HYDRATED"
    assert (total(), meta()["outbox_count"]) == (2, 2)


def test_a_page_of_a_caller_without_the_lease_or_out_of_turn_is_refused(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="1:20:0")
    lease, other = take_lease(), take_lease()
    for of, page in ((other, 1), (lease, 2)):
        call = redis_hydration._rebase_call(LIKE, POST, of, page, [(7, 10, True)])
        assert redis.run_all([call]) == ["STALE"]
    assert set(outbox()) == {7, 8}


def test_pages_of_a_caller_who_died_do_not_count_for_the_next(plaza: World) -> None:
    write_outbox(a7="1:10:0", a8="1:20:0")
    first = take_lease()
    redis.run_all([redis_hydration._rebase_call(LIKE, POST, first, 1, [(7, 0, False)])])
    redis.execute("DEL", keys().lease)
    assert put(rows=[(7, 0, False), (8, 0, False)]) == "HYDRATED"
    assert (total(), meta()["outbox_count"]) == (2, 2)


def test_a_target_that_was_deleted_is_loaded_as_deleted(plaza: World) -> None:
    write_outbox(a7="1:10:0")
    markers.mark_deleted([POST])
    assert put(rows=[(7, 0, False)]) == "HYDRATED"
    assert meta()["deleted"] == 1
    assert gate(8).code == "DELETED"
    assert set(outbox()) == {7}, "what was accepted before is saved all the same"


def test_what_another_run_of_the_node_loaded_is_loaded_anew(plaza: World) -> None:
    """A single Redis restarted with older data: the outbox is laid over what MySQL has."""
    insert_rows([(POST, 7, 1, 1000), (POST, 8, 1, 2000)])
    put(total=1, n=1, newest=[(7, 1000)])
    version = gate(9).version_us
    redis.execute("HSET", keys().meta, "run_id", "0" * 40)
    redis.execute("SETBIT", keys().bloom, 5, 1)
    hydrate()
    assert meta()["run_id"] == redis.find_node(keys().meta).run_id
    assert (recent(), total(), outbox()) == ([7, 8], 3, {9: (1, version, 0)})
    assert redis.execute("EXISTS", keys().bloom) == 0


# ---------------------------------------------------------------- drop


def test_a_quiet_target_is_dropped_whole(plaza: World) -> None:
    put(total=1, newest=[(7, 10)], complete=False)
    redis_bloom.begin_bloom(LIKE, POST, "b", 1)
    apply(2, 2, [(9, 10, True)])
    assert gate(1).code == "UNKNOWN"
    assert drop() == "EVICTED"
    assert find_keys("*") == [keys().outboxes], "the sweeper removes it there"


def test_a_target_with_an_outbox_is_dropped_but_for_its_outbox(plaza: World) -> None:
    put(total=1, n=3, newest=[(1, 10)])
    version = gate(7).version_us
    assert drop() == "EVICTED"
    assert set(find_keys("*")) == {keys().outbox, keys().outboxes, keys().fence}
    assert outbox() == {7: (1, version, 0)}
    assert due() is not None, "the sweeper brings it back"
    assert gate(8).code == "COLD"
    assert put(total=1, n=3, newest=[(1, 10)], rows=[(7, 0, False)]) == "HYDRATED"
    assert total() == 2


def test_who_read_before_a_target_was_dropped_is_refused(plaza: World) -> None:
    lease = take_lease()
    assert drop() == "EVICTED"
    assert hydrate_with(lease, EMPTY) == "STALE"


def test_what_is_older_than_what_was_dropped_is_refused(plaza: World) -> None:
    put(total=1, n=4, newest=[(7, 10)])
    assert drop(4) == "EVICTED"
    assert 0 < redis.execute("TTL", keys().fence) <= redis_hydration.FENCE_TTL_S
    assert put(total=1, n=3) == "STALE"
    assert put(total=2, n=4, newest=[(7, 10), (8, 20)]) == "HYDRATED"


def test_a_target_that_moved_on_is_not_dropped(plaza: World) -> None:
    put(total=1, n=4, newest=[(7, 10)])
    apply(5, 2, [(8, 20, True)])
    assert drop(4) == "MOVED"
    assert (recent(), total()) == ([7, 8], 2)


def test_dropping_what_is_not_there_is_nothing(plaza: World) -> None:
    assert redis_hydration.evict_all([(LIKE, POST, None), (COLLECT, POST, None)]) == ["EVICTED"] * 2
    assert redis.execute("DBSIZE") == 0


# ---------------------------------------------------------------- from MySQL


def test_a_target_with_few_rows_is_whole_and_one_with_many_is_not(
    plaza: World, set_up: SetUp
) -> None:
    set_up(recent_cap=50)
    few, many = Target("post", 1), Target("post", 2)
    insert_rows([(few, actor, 1, 1000 + actor) for actor in range(1, 50)])
    insert_rows([(many, actor, 1, 1000 + actor) for actor in range(1, 81)])
    react.hydrate([(LIKE, few), (LIKE, many), (COLLECT, few)])
    assert (meta(few)["complete"], total(few), len(recent(few))) == (1, 49, 49)
    assert (meta(many)["complete"], total(many)) == (0, 80)
    assert recent(many) == list(range(31, 81)), "the newest"
    assert meta(few, COLLECT)["complete"] == 1
    assert total(few, COLLECT) == 0


def test_rows_that_are_off_count_for_the_version_and_nothing_else(plaza: World) -> None:
    insert_rows([(POST, 7, 1, 1000), (POST, 8, 0, 5000)])
    hydrate()
    assert recent() == [7]
    assert (total(), meta()["version"]) == (1, 5000)


def test_loading_ends_although_commits_come_all_the_while(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Consumers commit, and tell Redis, between the read and the write to Redis."""
    plaza.add(POST)
    persist.save([fact(7, True, 1000)])
    hydrate_all = redis_hydration.hydrate_all
    tries = []

    def slow(found: list[tuple[object, Target, HydrationLease, Snapshot]]) -> list[str]:
        tries.append(found)
        for actor in range(8, 20):
            persist.save([fact(actor, True, 1000 + actor)])
        return hydrate_all(found)  # type: ignore[arg-type]

    monkeypatch.setattr(redis_hydration, "hydrate_all", slow)
    hydrate()
    assert len(tries) == 1
    assert recent() == list(range(7, 20))
    assert (total(), meta()["db_version"]) == (13, 13)


def test_a_target_whose_snapshot_turned_out_too_old_is_read_again_at_once(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of the newer commit are not known here, so only MySQL has them."""
    insert_rows([(POST, 7, 1, 1000)])
    hydrate_all = redis_hydration.hydrate_all
    tries = []

    def slow(found: list[tuple[object, Target, HydrationLease, Snapshot]]) -> list[str]:
        tries.append(found)
        if len(tries) == 1:
            insert_rows([(POST, 8, 1, 2000)])
            apply(2, 2, [(7, 1000, True)], is_new=False)
        return hydrate_all(found)  # type: ignore[arg-type]

    monkeypatch.setattr(redis_hydration, "hydrate_all", slow)
    assert react.hydrate([(LIKE, POST)]) == []
    assert len(tries) == 2
    assert (recent(), total()) == ([7, 8], 2)


def test_a_commit_that_redis_was_not_told_of_before_it_loaded_is_applied_after(
    plaza: World,
) -> None:
    insert_rows([(POST, 7, 1, 1000)])
    hydrate()
    insert_rows([(POST, 8, 1, 2000)])
    assert total() == 1
    assert apply(2, 2, [(8, 2000, True)]).code == "APPLIED"
    assert (recent(), total()) == ([7, 8], 2)


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
    persist.save([fact(7, True, 1000), fact(9, True, 1500)])
    hydrate_all = redis_hydration.hydrate_all
    tries = []

    def slow(found: list[tuple[object, Target, HydrationLease, Snapshot]]) -> list[str]:
        tries.append(found)
        if len(tries) == 1:
            persist.save([fact(actor, on == 1, version) for actor, on, version in moves])
        return hydrate_all(found)  # type: ignore[arg-type]

    monkeypatch.setattr(redis_hydration, "hydrate_all", slow)
    hydrate()
    saved = sorted((version, actor) for actor, (on, version) in rows().items() if on)
    assert recent() == [actor for _, actor in saved]
    assert total() == 2


def test_hydrating_nothing_asks_nobody(plaza: World) -> None:
    assert react.hydrate([]) == []
