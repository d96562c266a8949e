"""apply.lua, code by code: commits are applied in the order of their counter's versions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from plaza.core.reactions import (
    COLLECT,
    LIKE,
    Target,
    acknowledgement,
    redis_bloom,
    redis_commits,
    redis_hydration,
    redis_keys,
    redis_queries,
    redis_user_lists,
)
from plaza.core.reactions.acknowledgement import PersistedBatch
from plaza.core.reactions.model import MAX_ROWS, Commit, ReactedTarget
from plaza.core.reactions.queues import REBUILDS, BloomBuildStep
from plaza.core.reactions.redis_commits import MAX_AHEAD, ApplyResult
from plaza.core.reactions.settings import reaction_settings
from plaza.infra.redis import connections, redis
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime.errors import UnknownProtocol
from tests.support.keyspace import find_keys, redis_us
from tests.support.logs import read_log
from tests.support.plaza import World, decode
from tests.support.stores import (
    POST,
    apply,
    due,
    gate,
    insert_rows,
    keys,
    meta,
    outbox,
    put,
    recent,
    save_outbox,
    total,
)

SetUp = Callable[..., None]
COMMENT = Target("comment", 5)
GAP_US = 1_000_000  # as in commits.inc.lua


def ahead() -> dict[int, str]:
    """Return db_version -> total|rows of the commits that wait."""
    return {int(n): text for n, text in connections.client().hgetall(keys().ahead).items()}


def fence() -> int | None:
    result = redis.execute("GET", keys().fence)
    return None if result is None else int(result)


def age_gap() -> None:
    """Make the missing commit older than the time after which it counts as lost."""
    redis.execute("HSET", keys().meta, "blocked", redis_us() - 2 * GAP_US)


# ---------------------------------------------------------------- the next commit


def test_a_saved_reaction_leaves_the_outbox_and_enters_recent(plaza: World) -> None:
    put()
    version = gate(7).version_us
    assert apply(1, 1, [(7, version, True)]) == ApplyResult("APPLIED", 0, False, 1)
    assert (outbox(), recent(), due()) == ({}, [7], None)
    fields = meta()
    assert (fields["base"], fields["delta"], fields["db_version"], fields["outbox_count"]) == (
        1,
        0,
        1,
        0,
    )


def test_a_commit_leaves_entries_of_other_actors(plaza: World) -> None:
    put()
    first, second = gate(7).version_us, gate(8).version_us
    assert apply(1, 1, [(7, first, True)]) == ApplyResult("APPLIED", 1, False, 1)
    assert outbox() == {8: (1, second, 0)}
    assert recent() == [7]
    assert due() is not None
    assert total() == 2, "base plus delta"


def test_an_entry_newer_than_the_row_stays_and_its_base_changes(plaza: World) -> None:
    put()
    first = gate(7).version_us
    second = gate(7, on=False).version_us
    assert apply(1, 1, [(7, first, True)]).outbox_count == 1
    assert outbox() == {7: (0, second, 1)}
    assert (meta()["base"], meta()["delta"], total(), recent()) == (1, -1, 0, [7])
    assert apply(2, 0, [(7, second, False)]) == ApplyResult("APPLIED", 0, False, 2)
    assert (total(), recent()) == (0, [])


def test_a_row_newer_than_an_entry_confirms_it_in_any_state(plaza: World) -> None:
    """Given a later provisional event of another device."""
    put()
    version = gate(7).version_us
    assert apply(1, 0, [(7, version + 1, False)]).outbox_count == 0
    assert (outbox(), total(), recent()) == ({}, 0, [])
    assert meta()["version"] == version + 1


def test_rows_without_an_entry_leave_and_enter_recent(plaza: World) -> None:
    """Given events that were accepted while Redis was unavailable."""
    put(total=2, n=1, newest=[(7, 10), (8, 20)])
    assert apply(2, 1, [(7, 30, False)]).code == "APPLIED"
    assert (recent(), total()) == ([8], 1)
    assert apply(3, 2, [(9, 40, True)]).code == "APPLIED"
    assert (recent(), total(), meta()["complete"]) == ([8, 9], 2, 1)


def test_an_actor_that_liked_again_has_the_version_of_mysql(plaza: World) -> None:
    put(total=2, n=1, newest=[(7, 10), (8, 20)])
    assert apply(2, 2, [(7, 30, True)]).code == "APPLIED"
    assert recent() == [8, 7]
    assert meta()["version"] == 30


def test_an_actor_with_several_changes_has_one_entry(plaza: World) -> None:
    put()
    versions = [gate(7, on).version_us for on in (True, False, True)]
    assert meta()["outbox_count"] == 1
    assert apply(1, 1, [(7, versions[-1], True)]) == ApplyResult("APPLIED", 0, False, 1)


def test_the_next_commit_corrects_a_wrong_base(plaza: World) -> None:
    put(total=5, n=5, newest=[(1, 10)])
    redis.execute("HSET", keys().meta, "base", 9)
    version = gate(7).version_us
    assert apply(6, 6, [(7, version, True)]).code == "APPLIED"
    assert total() == 6


def test_an_acknowledgement_without_a_gap_logs_nothing(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    put()
    version = gate(7).version_us
    capsys.readouterr()
    acknowledgement.acknowledge(
        PersistedBatch([Commit(LIKE, POST, 1, 1, True, [(7, version, True)])], [])
    )
    assert capsys.readouterr().out == ""


# ---------------------------------------------------------------- duplicates


def test_a_repeated_commit_is_applied_once(plaza: World) -> None:
    put()
    version = gate(7).version_us
    apply(1, 1, [(7, version, True)])
    before = meta(), recent()
    assert apply(1, 1, [(7, version, True)]) == ApplyResult("DUPLICATE", 0, False, 1)
    assert (meta(), recent()) == before


def test_a_duplicate_confirms_entries_and_keeps_the_base(plaza: World) -> None:
    """Given an assertion of a saved state, whose event changed nothing in MySQL."""
    put(total=1, n=4, newest=[(7, 10)])
    assertion = gate(7)
    second = gate(8).version_us
    assert apply(4, 1, [(7, assertion.version_us, True)], is_new=False).outbox_count == 1
    assert outbox() == {8: (1, second, 0)}
    assert (meta()["base"], meta()["delta"], meta()["db_version"], recent()) == (1, 1, 4, [7])


def test_a_late_duplicate_does_not_restore_an_actor_that_is_off(plaza: World) -> None:
    put(total=2, n=3, newest=[(7, 30), (8, 20)])
    apply(4, 1, [(7, 40, False)])
    assert apply(3, 2, [(7, 30, True)]).code == "DUPLICATE"
    assert (recent(), total(), meta()["db_version"]) == ([8], 1, 4)
    assert gate(7).code == "CHANGED"


def test_a_late_duplicate_does_not_remove_an_actor_that_is_on(plaza: World) -> None:
    put(total=2, n=3, newest=[(7, 30), (8, 20)])
    assert apply(2, 1, [(7, 25, False)]).code == "DUPLICATE"
    assert recent() == [8, 7]


def test_a_duplicate_with_an_older_row_keeps_the_base_of_an_entry(plaza: World) -> None:
    put(n=5)
    version_us = gate(7).version_us
    assert apply(3, 9, [(7, 10, True)]).code == "DUPLICATE"
    assert (outbox(), total()) == ({7: (1, version_us, 0)}, 1)


def test_a_duplicate_does_not_confirm_a_newer_entry(plaza: World) -> None:
    put()
    first = gate(7).version_us
    apply(1, 1, [(7, first, True)])
    second = gate(7, on=False).version_us
    assert apply(1, 1, [(7, first, True)]) == ApplyResult("DUPLICATE", 1, False, 1)
    assert (outbox(), total()) == ({7: (0, second, 1)}, 0)


# ---------------------------------------------------------------- out of order


def test_an_early_commit_waits_for_the_one_before_it(plaza: World) -> None:
    put()
    first, second = gate(7).version_us, gate(8).version_us
    assert apply(2, 2, [(8, second, True)]) == ApplyResult("BUFFERED", 2, False, 0)
    assert (set(outbox()), recent(), total(), set(ahead())) == ({7, 8}, [], 2, {2})
    assert apply(1, 1, [(7, first, True)]) == ApplyResult("APPLIED", 0, False, 2)
    assert (outbox(), recent(), total(), ahead()) == ({}, [7, 8], 2, {})
    assert "blocked" not in meta()


@pytest.mark.parametrize("seed", range(6))
def test_commits_repeated_in_any_order_have_the_same_result(plaza: World, seed: int) -> None:
    rng = random.Random(seed)
    put()
    on: dict[int, int] = {}
    commits = []
    for n in range(1, 26):
        actor, state = rng.randint(1, 6), rng.random() < 0.6
        if state:
            on[actor] = 100 + n
        else:
            on.pop(actor, None)
        commits.append((n, len(on), [(actor, 100 + n, state)]))
    order = commits * 2
    rng.shuffle(order)
    for commit in order:
        apply(*commit)
    assert recent() == sorted(on, key=lambda actor: on[actor])
    assert (total(), meta()["db_version"], meta()["version"], ahead()) == (len(on), 25, 125, {})
    assert ("blocked" in meta(), due()) == (False, None)


def test_a_commit_without_changes_leaves_a_placeholder(plaza: World) -> None:
    """Its rows are as of db_version, and it lacks rows of other actors of that version's commit."""
    put()
    first = gate(7).version_us
    assert apply(1, 1, [(7, first, True)], is_new=False).code == "BUFFERED"
    assert (ahead(), recent(), set(outbox()), meta()["db_version"]) == ({1: "?"}, [], {7}, 0)
    assert meta()["blocked"] > 0
    assert apply(1, 1, [(7, first, True)]) == ApplyResult("APPLIED", 0, False, 1)
    assert (ahead(), recent()) == ({}, [7])
    assert "blocked" not in meta()


def test_a_placeholder_does_not_overwrite_its_commit(plaza: World) -> None:
    put()
    apply(2, 2, [(8, 20, True)])
    apply(2, 2, [(8, 20, True)], is_new=False)
    assert apply(1, 1, [(7, 10, True)]).db_version == 2
    assert recent() == [7, 8]


def test_a_commit_overwrites_its_placeholder(plaza: World) -> None:
    put()
    apply(2, 2, [(8, 20, True)], is_new=False)
    assert apply(2, 2, [(8, 20, True)]).code == "BUFFERED"
    assert apply(1, 1, [(7, 10, True)]).db_version == 2
    assert recent() == [7, 8]


def test_a_blocked_target_does_not_expire_and_is_swept(plaza: World) -> None:
    put(total=1, newest=[(1, 10)])
    assert redis.execute("PTTL", keys().meta) > 0
    apply(2, 3, [(8, 20, True)])
    assert (redis.execute("PTTL", keys().meta), redis.execute("PTTL", keys().recent)) == (-1, -1)
    assert due() is not None
    apply(1, 2, [(7, 15, True)])
    assert redis.execute("PTTL", keys().meta) > 0
    assert due() is None


def test_buffered_rows_keep_all_digits(plaza: World) -> None:
    put()
    actor, version = 2**63 - 1, 2**53 - 2
    apply(2, 2, [(actor, version, True)])
    apply(1, 1, [(actor - 1, version - 1, True)])
    assert recent() == [actor - 1, actor]
    assert meta()["version"] == version


def test_versions_of_15_and_16_digits_are_compared_as_numbers(plaza: World) -> None:
    """Given an import of reactions from before September 2001."""
    put()
    version_us = gate(7).version_us
    old = [(7, 10**15 - 1, True), (8, 10**15 - 2, True), (9, 10**15, True)]
    assert apply(1, 3, old).outbox_count == 1
    assert outbox() == {7: (1, version_us, 1)}
    put(target=COMMENT)
    apply(1, 3, old, target=COMMENT)
    assert meta(COMMENT)["version"] == 10**15


# ---------------------------------------------------------------- a lost commit


def test_a_commit_missing_for_one_second_is_a_gap(plaza: World) -> None:
    put()
    assert apply(2, 2, [(8, 20, True)]).code == "BUFFERED"
    age_gap()
    assert apply(2, 2, [(8, 20, True)]) == ApplyResult("GAP", 0, False, 0)


def test_a_target_that_was_blocked_ahead_of_the_clock_has_a_gap(plaza: World) -> None:
    """Given a clock that went back."""
    put()
    assert apply(2, 2, [(8, 20, True)]).code == "BUFFERED"
    redis.execute("HSET", keys().meta, "blocked", redis_us() + 3600 * GAP_US)
    assert apply(2, 2, [(8, 20, True)]).code == "GAP"


def test_progress_restarts_the_time_until_a_gap(plaza: World) -> None:
    put()
    apply(2, 2, [(8, 20, True)])
    apply(4, 4, [(9, 40, True)])
    age_gap()
    assert apply(1, 1, [(7, 10, True)]) == ApplyResult("APPLIED", 0, False, 2)
    assert redis_us() - meta()["blocked"] < GAP_US
    assert apply(5, 5, [(10, 50, True)]).code in ("BUFFERED", "GAP")
    assert set(ahead()) == {4, 5}


def test_too_many_commits_ahead_are_a_gap(plaza: World) -> None:
    put()
    for n in range(2, MAX_AHEAD + 2):
        redis.execute("HDEL", keys().meta, "blocked")  # restarts the time until a gap
        assert apply(n, n, [(n, n, True)]).code == "BUFFERED"
    assert apply(MAX_AHEAD + 2, 1, [(1, 1, True)]).code == "GAP"


def test_a_target_with_a_gap_is_hydrated_and_keeps_its_outbox(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """The consumer of commit 2 saved its batch and died before it updated Redis."""
    insert_rows([(POST, 1, 1, 10), (POST, 2, 1, 20), (POST, 3, 1, 30)])
    put(total=1, n=1, newest=[(1, 10)])
    version = gate(7).version_us
    third = Commit(LIKE, POST, 3, 3, True, [(3, 30, True)])
    acknowledgement.acknowledge(PersistedBatch([third], []))
    assert (recent(), total()) == ([1], 2), "the third waits"
    age_gap()
    acknowledgement.acknowledge(PersistedBatch([third], []))
    assert (recent(), total(), meta()["db_version"]) == ([1, 2, 3], 4, 3)
    assert outbox() == {7: (1, version, 0)}
    assert (ahead(), "blocked" in meta()) == ({}, False)
    [line] = read_log(capsys, "targets_resynced")
    assert line["resynced"] == 1


def test_a_target_at_another_version_is_not_evicted(plaza: World) -> None:
    put(total=3, n=3, newest=[(1, 10), (2, 20), (3, 30)])
    before = meta()
    assert redis_hydration.evict_all([(LIKE, POST, 1)]) == ["MOVED"]
    assert meta() == before


def test_a_target_that_another_consumer_loaded_is_not_dropped(plaza: World) -> None:
    put(total=3, n=3, newest=[(1, 10), (2, 20), (3, 30)])
    before = meta()
    acknowledgement.resync([(LIKE, POST, 1)])
    assert meta() == before


# ---------------------------------------------------------------- more than one call


def test_one_call_applies_at_most_250_buffered_rows(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=5_000)
    put()
    for n in (2, 3, 4):
        apply(n, 1 + 150 * (n - 1), [(n * 10_000 + i, n * 10_000 + i, True) for i in range(150)])
    first = Commit(LIKE, POST, 1, 1, True, [(1, 1, True)])
    expires_at_ms = redis_us() // 1000 + 10**6
    calls = [redis_commits.apply_call([first], expires_at_ms)]
    assert redis.run_all(calls)[0][0][0] == "MORE"
    assert (meta()["db_version"], total()) == (2, 151)
    answer = redis_commits.apply_all([first])[0]
    assert (answer.db_version, answer.outbox_count) == (4, 0)
    assert (total(), len(recent()), ahead()) == (451, 451, {})


def test_apply_all_repeats_the_call_until_all_is_applied(plaza: World) -> None:
    put()
    for n in (2, 3, 4):
        apply(n, 150 * (n - 1), [(n * 10_000 + i, n * 10_000 + i, True) for i in range(150)])
    assert apply(1, 0, []).db_version == 4
    assert (total(), ahead(), "blocked" in meta()) == (450, {}, False)


def test_a_commit_with_more_rows_than_one_call_is_applied(plaza: World) -> None:
    put()
    for n in (2, 1):
        rows = [(n * 10_000 + i, n * 10_000 + i, True) for i in range(MAX_ROWS + 1)]
        answer = apply(n, n * len(rows), rows)
    assert (answer.db_version, total(), ahead()) == (2, 2 * (MAX_ROWS + 1), {})


def test_a_large_commit_evicts_in_more_than_one_call(plaza: World) -> None:
    cap = reaction_settings().recent_cap
    put(total=cap, newest=[(actor, actor) for actor in range(1, cap + 1)])
    rows = [(cap + i, cap + i, True) for i in range(1, MAX_ROWS + 1)]
    first = Commit(LIKE, POST, 1, cap + MAX_ROWS, True, rows)
    calls = [redis_commits.apply_call([first], redis_us() // 1000 + 10**6)]
    assert redis.run_all(calls)[0][0][0] == "MORE"
    assert (len(recent()), meta()["complete"]) == (cap + MAX_ROWS, 1)
    assert redis_commits.apply_all([first])[0].db_version == 1
    assert (len(recent()), meta()["complete"], meta()["floor"]) == (cap, 0, MAX_ROWS)
    assert all(gate(actor, on=False).code == "UNKNOWN" for actor in (1, MAX_ROWS))
    assert gate(MAX_ROWS + 1, on=False).code == "CHANGED"
    assert total() == cap + MAX_ROWS - 1


def test_a_build_that_the_first_of_several_calls_requests_is_reported(plaza: World) -> None:
    cap = reaction_settings().recent_cap
    put(total=2 * cap, n=0, newest=[(a, a) for a in range(1, cap + 1)], complete=False)
    rows = [(cap + i, cap + i, True) for i in range(1, MAX_ROWS + 1)]
    assert apply(1, 2 * cap + MAX_ROWS, rows).rebuild
    assert len(recent()) == cap


def test_a_commit_of_250_rows_is_applied_by_one_call(plaza: World) -> None:
    put()
    for actor in range(1, MAX_ROWS + 1):
        gate(actor)
    assert save_outbox(1, MAX_ROWS) == ApplyResult("APPLIED", 0, False, 1)
    assert (total(), len(recent()), meta()["delta"]) == (MAX_ROWS, MAX_ROWS, 0)


# ---------------------------------------------------------------- recent, its floor, the filters


def test_the_oldest_actor_moves_from_recent_to_the_filter(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=3)
    put(total=3, newest=[(1, 10), (2, 20), (3, 30)])
    assert (meta()["complete"], meta()["bloom"]) == (1, 0)
    apply(1, 4, [(4, 40, True)])
    assert recent() == [2, 3, 4]
    assert (meta()["complete"], meta()["bloom"], meta()["floor"]) == (0, 131_072, 10)
    assert gate(1).code == "UNKNOWN", "the filter may be wrong about yes"
    assert gate(9, on=False).code == "UNCHANGED", "the filter is right about no"
    assert total() == 4


def test_an_eviction_without_a_filter_requests_one(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=3)
    put(total=9, n=5, newest=[(1, 10), (2, 20), (3, 30)], complete=False)
    fourth = Commit(LIKE, POST, 6, 10, True, [(4, 40, True)])
    acknowledgement.acknowledge(PersistedBatch([fourth], []))
    assert recent() == [2, 3, 4]
    [step] = plaza.queues.take(REBUILDS)
    assert decode(REBUILDS, step) == BloomBuildStep(LIKE, POST)


def test_a_lower_cap_takes_effect_with_the_next_commit(plaza: World, set_up: SetUp) -> None:
    put(total=8, newest=[(actor, actor) for actor in range(1, 9)])
    set_up(recent_cap=3)
    apply(1, 9, [(20, 20, True)])
    assert recent() == [7, 8, 20]
    assert all(gate(actor, on=False).code == "UNKNOWN" for actor in range(1, 7))


def test_an_unlike_evicts_no_actor(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=3)
    put(total=3, newest=[(1, 10), (2, 20), (3, 30)])
    apply(1, 2, [(2, 40, False)])
    apply(2, 3, [(4, 50, True)])
    assert recent() == [1, 3, 4]
    assert meta()["complete"] == 1


def test_a_new_actor_is_in_recent_above_the_floor_and_in_the_filter_below(
    plaza: World, set_up: SetUp
) -> None:
    set_up(recent_cap=3)
    put(total=9, n=1, newest=[(7, 30), (8, 40), (6, 20)], complete=False)
    assert meta()["floor"] == 20
    assert apply(2, 10, [(9, 35, True)]).code == "APPLIED"
    assert recent() == [7, 9, 8], "6 was evicted"
    assert meta()["floor"] == 20
    assert apply(3, 11, [(5, 10, True)]).code == "APPLIED"
    assert recent() == [7, 9, 8], "5 is below the floor"
    assert total() == 11


def test_an_actor_below_the_floor_does_not_enter_recent_with_room(
    plaza: World, set_up: SetUp
) -> None:
    set_up(recent_cap=2)
    put(total=3, newest=[(1, 10), (2, 20)])
    apply(1, 3, [(3, 30, True)])  # evicts 1: the floor is 10
    apply(2, 1, [(2, 40, False), (3, 41, False)])
    apply(3, 2, [(4, 9, True)])
    assert (recent(), meta()["floor"]) == ([], 10)
    assert [gate(actor, on=False).code for actor in (1, 4)] == ["UNKNOWN"] * 2


def test_an_actor_below_the_floor_is_added_to_both_filters(plaza: World) -> None:
    put(total=9, n=1, newest=[(7, 30)], complete=False)
    redis_bloom.begin_bloom(LIKE, POST, "b1", 9)
    redis_bloom.fill_bloom(LIKE, POST, "b1", [7], True)
    redis_bloom.begin_bloom(LIKE, POST, "b2", 9)
    [cached] = redis_queries.read_all([(LIKE, POST)], 5)
    assert cached is not None
    assert cached.viewer_state is False, "by the filter"
    apply(2, 10, [(5, 10, True)])
    assert gate(5, on=False).code == "UNKNOWN"
    assert redis_bloom.fill_bloom(LIKE, POST, "b2", [7], True) == "FINISHED"
    assert gate(5, on=False).code == "UNKNOWN"


def test_an_actor_evicted_after_its_page_was_scanned_is_in_the_new_filter(
    plaza: World, set_up: SetUp
) -> None:
    set_up(recent_cap=1)
    put(total=1, newest=[(7, 10)])
    apply(1, 2, [(8, 20, True)])
    assert recent() == [8]
    redis_bloom.begin_bloom(LIKE, POST, "b1", 9)
    redis_bloom.fill_bloom(LIKE, POST, "b1", [7], False)
    apply(2, 3, [(9, 30, True)])
    assert redis_bloom.fill_bloom(LIKE, POST, "b1", [], True) == "FINISHED"
    assert gate(8, on=False).code == "UNKNOWN", "8 is in the new filter"
    assert gate(5, on=False).code == "UNCHANGED"


def test_an_actor_in_the_outbox_is_on_although_the_filter_lacks_it(
    plaza: World, set_up: SetUp
) -> None:
    """Given a filter that was built while the consumer was behind."""
    set_up(recent_cap=2)
    put(total=9, newest=[(1, 10), (2, 20)], complete=False)
    redis_bloom.begin_bloom(LIKE, POST, "b1", 9)
    redis_bloom.fill_bloom(LIKE, POST, "b1", [1, 2], True)
    for actor in range(10, 30):
        assert gate(actor).code == "CHANGED"
    assert (recent(), total()) == ([1, 2], 29)
    for actor in range(10, 30):
        [cached] = redis_queries.read_all([(LIKE, POST)], actor)
        assert cached is not None
        assert cached.viewer_state is True
        assert gate(actor, on=False).code == "CHANGED"


# ---------------------------------------------------------------- a target that is not loaded


def test_a_commit_of_a_cold_target_writes_nothing(plaza: World) -> None:
    assert apply(4, 1, [(7, 10, True)]) == ApplyResult("COLD", 0, False, 0)
    assert find_keys("*") == []


def test_a_commit_of_a_cold_target_reports_its_outbox(plaza: World) -> None:
    redis.execute("HSET", keys().outbox, 7, "1:10:0:cabc")
    assert apply(4, 1, [(7, 10, True)]) == ApplyResult("COLD", 1, False, 0)


def test_a_commit_deletes_a_target_of_another_term_which_is_loaded_again(plaza: World) -> None:
    """Given a slot, or a master, that left and came back."""
    second = Commit(LIKE, POST, 2, 2, True, [(2, 20, True)])
    for load_again in (False, True):
        put(total=1, n=1, newest=[(1, 10)])
        redis.execute("HSET", keys().meta, "term", "0" * 40)
        if not load_again:
            assert apply(2, 2, [(2, 20, True)]).code == "DROPPED"
            assert find_keys(f"{keys().meta[:-4]}*") == []
    insert_rows([(POST, 1, 1, 10), (POST, 2, 1, 20)])
    acknowledgement.acknowledge(PersistedBatch([second], []))
    assert (recent(), total(), meta()["db_version"]) == ([1, 2], 2, 2)


def test_a_commit_from_before_a_restore_of_mysql_confirms_nothing(plaza: World) -> None:
    epoch = 2**40
    put(total=0, n=epoch)
    version_us = gate(7).version_us
    assert apply(5, 1, [(7, version_us, True)]).code == "DUPLICATE"
    assert outbox() == {7: (1, version_us, 0)}


def test_a_commit_during_a_hydration_is_buffered(plaza: World) -> None:
    [lease] = redis_hydration.take_hydration_leases([(LIKE, POST)])
    assert lease.code == "TAKEN"
    assert apply(4, 1, [(7, 10, True)]).code == "COLD"
    assert ahead() == {4: "1|7 10 1"}
    assert 0 < redis.execute("TTL", keys().ahead) <= 120
    assert fence() is None


def test_a_commit_without_changes_during_a_hydration_raises_the_fence(plaza: World) -> None:
    redis_hydration.take_hydration_leases([(LIKE, POST)])
    for n in (4, 9, 5):
        apply(n, 1, [(7, 10, True)], is_new=False)
    assert (fence(), ahead()) == (9, {})
    assert 0 < redis.execute("TTL", keys().fence) <= redis_hydration.FENCE_TTL_S


def test_a_fence_never_falls(plaza: World) -> None:
    redis_hydration.take_hydration_leases([(LIKE, POST)])
    for n in (6, 5):
        apply(n, 3, [(7, 10, True)], is_new=False)
        assert fence() == 6
    put(total=1, n=7, newest=[(7, 10)])
    redis.execute("SET", keys().fence, 9)
    assert redis_hydration.evict_all([(LIKE, POST, None)]) == ["EVICTED"]
    assert fence() == 9


def test_commits_that_wait_for_a_hydration_expire(plaza: World) -> None:
    redis_hydration.take_hydration_leases([(LIKE, POST)])
    apply(6, 3, [(7, 10, True)])
    assert set(ahead()) == {6}
    assert 0 < redis.execute("TTL", keys().ahead) <= 120


def test_a_commit_that_does_not_fit_into_ahead_raises_the_fence(plaza: World) -> None:
    redis_hydration.take_hydration_leases([(LIKE, POST)])
    for n in range(1, MAX_AHEAD + 3):
        apply(n, n, [(n, n, True)])
    assert len(ahead()) == MAX_AHEAD
    assert fence() == MAX_AHEAD + 2


# ---------------------------------------------------------------- several targets


def test_commits_of_two_kinds_are_applied_separately(plaza: World) -> None:
    put()
    put(kind=COLLECT)
    like, collect = gate(7).version_us, gate(7, kind=COLLECT).version_us
    result = redis_commits.apply_all(
        [
            Commit(LIKE, POST, 1, 1, True, [(7, like, True)]),
            Commit(COLLECT, POST, 1, 5, True, [(7, collect, True)]),
        ]
    )
    assert result == [ApplyResult("APPLIED", 0, False, 1)] * 2
    assert (total(), total(kind=COLLECT)) == (1, 5)


def test_targets_of_one_shard_share_calls(plaza: World) -> None:
    targets = neighbours(POST, 40)
    for target in targets:
        put(target=target)
    commits = [Commit(LIKE, target, 1, 1, True, [(7, 10, True)]) for target in targets]
    before = count_scripts()
    assert set(redis_commits.apply_all(commits)) == {ApplyResult("APPLIED", 0, False, 1)}
    assert count_scripts() - before == 2, "27 targets and 13"
    assert {total(target=target) for target in targets} == {1}


def test_commits_of_one_target_stay_in_order_within_a_shard(plaza: World) -> None:
    other = neighbours(POST, 2)[1]
    put()
    put(target=other)
    rows = [[(1000 * n + i, 1000 * n + i, True) for i in range(200)] for n in range(4)]
    commits = [
        Commit(LIKE, POST, 1, 200, True, rows[0]),
        Commit(LIKE, other, 1, 200, True, rows[1]),
        Commit(LIKE, POST, 2, 400, True, rows[2]),
        Commit(LIKE, POST, 3, 401, True, [(9999, 9999, True)]),
    ]
    assert [applied.code for applied in redis_commits.apply_all(commits)] == ["APPLIED"] * 4
    assert (total(), total(target=other), ahead()) == (401, 200, {})


def test_an_invalid_target_does_not_stop_other_commits_of_its_shard(plaza: World) -> None:
    broken, other = neighbours(POST, 2)
    put(target=broken)
    put(target=other)
    redis.execute("HSET", keys(target=broken).meta, "mode", "3:live:complete")
    commits = [Commit(LIKE, target, 1, 1, True, [(7, 10, True)]) for target in (broken, other)]
    with pytest.raises(UnknownProtocol):
        redis_commits.apply_all(commits)
    assert total(target=other) == 1


def neighbours(target: Target, count: int) -> list[Target]:
    """Return ``count`` targets of the shard of ``target``, itself first."""
    shard = shard_of(str(target))
    posts = (Target("post", n) for n in itertools.count(target.id))
    return list(itertools.islice((t for t in posts if shard_of(str(t)) == shard), count))


def count_scripts() -> int:
    """Return how many scripts ran, by EVALSHA or EVAL; an unknown SHA does not count."""
    stats = [node.info("commandstats") for node in redis.nodes().values()]
    runs = [
        of_node[c] for of_node in stats for c in ("cmdstat_evalsha", "cmdstat_eval") if c in of_node
    ]
    return sum(int(run["calls"]) - int(run["failed_calls"]) for run in runs)


def test_a_commit_drops_the_lists_of_its_actors_only(plaza: World) -> None:
    for actor in (7, 8):
        lease = redis_user_lists.take_lease(LIKE, actor)
        redis_user_lists.fill_list(LIKE, actor, lease, [], 0)
    apply(1, 1, [(7, 10, True)])
    assert redis_user_lists.read_list(LIKE, 7) is None
    assert redis_user_lists.read_list(LIKE, 8) == (0, [])


# ---------------------------------------------------------------- lists of users


def test_a_list_is_filled_with_a_lease(plaza: World) -> None:
    lease = redis_user_lists.take_lease(LIKE, 7)
    redis_user_lists.fill_list(LIKE, 7, lease, [ReactedTarget(POST, 10)], 5)
    assert redis_user_lists.read_list(LIKE, 7) == (5, [ReactedTarget(POST, 10)])


def test_a_list_is_refused_after_a_reaction_was_saved(plaza: World) -> None:
    lease = redis_user_lists.take_lease(LIKE, 7)
    apply(1, 1, [(7, 10, True)])
    redis_user_lists.fill_list(LIKE, 7, lease, [], 0)
    assert redis_user_lists.read_list(LIKE, 7) is None


def test_a_list_is_refused_from_a_reader_with_an_older_lease(plaza: World) -> None:
    early = redis_user_lists.take_lease(LIKE, 7)
    late = redis_user_lists.take_lease(LIKE, 7)
    redis_user_lists.fill_list(LIKE, 7, early, [], 1)
    assert redis_user_lists.read_list(LIKE, 7) is None
    redis_user_lists.fill_list(LIKE, 7, late, [], 2)
    assert redis_user_lists.read_list(LIKE, 7) == (2, [])
    redis_user_lists.fill_list(LIKE, 7, late, [], 3)
    assert redis_user_lists.read_list(LIKE, 7) == (2, []), "a lease fills one list"


def test_a_lease_and_a_list_expire(plaza: World) -> None:
    lease = redis_user_lists.take_lease(LIKE, 7)
    newest_key, lease_key = redis_keys.list_keys("like", 7)
    assert 0 < redis.execute("TTL", lease_key) <= redis_user_lists.LEASE_TTL_S
    redis_user_lists.fill_list(LIKE, 7, lease, [], 0)
    assert 0 < redis.execute("TTL", newest_key) <= redis_user_lists.LIST_TTL_S
