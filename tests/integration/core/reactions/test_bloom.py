"""begin_bloom.lua, fill_bloom.lua and the consumer of rebuilds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plaza.core.reactions import (
    LIKE,
    Target,
    hydration,
    mysql_rows,
    react,
    rebuild,
    redis_bloom,
    redis_hydration,
    redis_inspection,
    redis_queries,
)
from plaza.core.reactions.queues import REBUILDS, BloomBuildStep
from plaza.infra.redis import redis
from tests.support.keyspace import redis_us
from tests.support.plaza import World
from tests.support.stores import (
    POST,
    apply,
    gate,
    gate_as_read,
    hydrate,
    insert_rows,
    keys,
    meta,
    put,
)

SetUp = Callable[..., None]
NO = "UNCHANGED"  # the reply to an unlike of an actor that is not in the filter


def begin(build: str = "b1", actors: int = 10) -> str:
    return redis_bloom.begin_bloom(LIKE, POST, build, actors)


def fill(*actors: int, build: str = "b1", last: bool = False) -> str:
    return redis_bloom.fill_bloom(LIKE, POST, build, actors, last)


def test_a_filter_is_built_in_pages_and_then_used(plaza: World) -> None:
    put(total=9, complete=False)
    assert gate(1, on=False).code == "UNKNOWN"
    assert begin() == "BEGUN"
    assert fill(1, 2) == "FILLED"
    assert gate(3, on=False).code == "UNKNOWN", "the new filter is not in use yet"
    assert fill(3, last=True) == "FINISHED"
    assert [gate(actor, on=False).code for actor in (1, 2, 3)] == ["UNKNOWN"] * 3
    assert gate(4, on=False).code == NO
    assert not {"filling", "build_id", "build_active_at", "build_requested_at"} & set(meta())
    assert redis.execute("EXISTS", keys().filling) == 0


def test_a_cold_target_gets_no_filter(plaza: World) -> None:
    assert begin() == "COLD"
    assert redis.execute("DBSIZE") == 0


def test_a_complete_target_gets_no_filter(plaza: World) -> None:
    put()
    assert begin() == "COMPLETE"


def test_a_second_build_of_a_target_is_refused(plaza: World) -> None:
    put(total=9, complete=False)
    assert begin("b1") == "BEGUN"
    assert begin("b2") == "BUSY"
    assert fill(1, build="b2") == "LOST"
    assert begin("b1") == "BEGUN", "the first build resumes"
    assert fill(2, last=True) == "FINISHED"
    assert gate(1, on=False).code == NO


def test_an_inactive_build_is_replaced_and_cannot_resume(plaza: World) -> None:
    put(total=9, complete=False)
    begin("b1")
    fill(1)
    redis.execute("HSET", keys().meta, "build_active_at", meta()["build_active_at"] - 601_000)
    assert begin("b2") == "BEGUN"
    assert fill(2, build="b1", last=True) == "LOST"
    assert fill(3, build="b2", last=True) == "FINISHED"
    assert gate(1, on=False).code == NO, "the second build starts empty"


def test_each_page_keeps_the_build_active(plaza: World) -> None:
    put(total=9, complete=False)
    begin("b1")
    redis.execute("HSET", keys().meta, "build_active_at", 1)
    fill(1)
    assert begin("b2") == "BUSY"


def test_a_build_is_lost_when_its_target_was_evicted(plaza: World) -> None:
    put(total=9, complete=False)
    begin()
    redis_hydration.evict_all([(LIKE, POST, None)])
    assert fill(1) == "LOST"
    put(total=9, complete=False)
    assert fill(1, last=True) == "LOST"
    assert meta()["bloom"] == 0


def test_a_build_is_lost_when_its_filter_was_lost(plaza: World) -> None:
    """SETBIT on a missing key would create an empty filter, which denies all actors."""
    put(total=9, complete=False)
    begin()
    fill(1)
    redis.execute("DEL", keys().filling)
    assert fill(2, last=True) == "LOST"
    assert begin("b2") == "BEGUN"


def test_a_repeated_last_page_changes_nothing(plaza: World) -> None:
    put(total=9, complete=False)
    begin()
    assert fill(1, last=True) == "FINISHED"
    before = meta(), redis.execute("BITCOUNT", keys().bloom)
    assert fill(1, last=True) == "LOST"
    assert (meta(), redis.execute("BITCOUNT", keys().bloom)) == before


def test_an_actor_evicted_during_a_build_is_in_the_filter(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=2)
    put(total=9, newest=[(1, 10), (2, 20)], complete=False)
    begin()
    apply(1, 10, [(3, 30, True)])  # evicts 1
    assert fill(8, last=True) == "FINISHED"
    assert gate(1, on=False).code == "UNKNOWN"


def test_an_actor_saved_and_evicted_during_a_build_is_in_the_filter(
    plaza: World, set_up: SetUp
) -> None:
    """Given an actor whose page was scanned before, and that leaves recent before the last page."""
    set_up(recent_cap=1)
    put(total=9, newest=[(1, 10)], complete=False)
    begin()
    version = gate_as_read(5, was_on=False, n=0).version_us
    apply(1, 10, [(5, version, True)])
    fill(8, last=True)
    apply(2, 11, [(6, version + 1, True)])  # evicts 5
    assert gate(5, on=False).code == "UNKNOWN"


def test_an_actor_accepted_before_a_build_and_saved_after_it_is_not_denied(
    plaza: World, set_up: SetUp
) -> None:
    """Given a slow consumer: MySQL lacks the rows during the build; recent evicts them at once."""
    set_up(recent_cap=1)
    put(total=9, newest=[(1, 10)], complete=False)
    versions = {actor: gate_as_read(actor, was_on=False, n=0).version_us for actor in (5, 6, 7)}
    begin()
    fill(8, last=True)
    apply(1, 12, [(actor, version, True) for actor, version in versions.items()])
    for actor in (5, 6):
        [cached] = redis_queries.read_all([(LIKE, POST)], actor)
        assert cached is not None
        assert cached.viewer_state is None, "to be read from MySQL"
        assert gate(actor, on=False).code == "UNKNOWN"


@pytest.mark.parametrize(
    ("actors", "bits"),
    [(0, 2**17), (8_192, 2**17), (8_193, 2**18), (100_000, 2**21), (10**7, 2**23)],
)
def test_the_size_of_a_filter_grows_with_the_actors_up_to_one_mebibyte(
    plaza: World, actors: int, bits: int
) -> None:
    put(total=9, complete=False)
    begin(actors=actors)
    assert meta()["filling"] == bits
    assert redis.execute("STRLEN", keys().filling) == bits // 8 + 1, (
        "one bit more marks the filter as existing"
    )


def test_a_filter_with_too_many_actors_is_requested_again(plaza: World) -> None:
    put(total=16_384, n=1, newest=[(1, 10)], complete=False)
    begin(actors=0)
    fill(1, 2, last=True)
    assert not gate(2, on=False).rebuild
    redis.execute("HSET", keys().meta, "base", 16_385)
    assert gate(2, on=False).rebuild
    assert not gate(2, on=False).rebuild, "once in ten minutes"
    begin("b2", actors=16_385)
    fill(1, 2, build="b2", last=True)
    assert meta()["bloom"] == 2**19
    assert not gate(2, on=False).rebuild


@pytest.mark.parametrize("actor", [1, 4], ids=["in the filter", "not in the filter"])
@pytest.mark.parametrize("origin", ["built", "made by evictions"])
def test_a_filter_that_lost_its_key_is_not_used(
    plaza: World, set_up: SetUp, origin: str, actor: int
) -> None:
    """Given only the key bloom lost, then a commit that moves an actor into it."""
    set_up(recent_cap=1)
    put(total=2, newest=[(2, 20), (1, 10)], complete=origin != "built")
    if origin == "built":
        begin()
        fill(1, last=True)
    apply(1, 3, [(3, 30, True)])
    assert gate(4, on=False).code == NO
    assert redis_inspection.find_denied([(LIKE, POST, [1, 4])]) == [(1, [4])]
    redis.execute("DEL", keys().outbox, keys().bloom)
    assert redis_inspection.find_denied([(LIKE, POST, [1, 4])]) == [(0, [])]
    apply(2, 4, [(5, 50, True)])  # evicts 3
    [cached] = redis_queries.read_all([(LIKE, POST)], actor)
    assert cached is not None
    assert (cached.viewer_state, cached.rebuild) == (None, True)
    redis.execute("HDEL", keys().meta, "build_requested_at")
    decision = gate(actor)
    assert (decision.code, decision.rebuild) == ("UNKNOWN", True)
    assert begin("b2") == "BEGUN"
    assert fill(1, 2, 3, build="b2", last=True) == "FINISHED"
    assert gate(6, on=False).code == NO


def test_a_read_requests_a_filter(plaza: World) -> None:
    put(total=9, complete=False)
    [cached] = redis_queries.read_all([(LIKE, POST)], 7)
    assert cached is not None
    assert (cached.total, cached.viewer_state, cached.rebuild) == (9, None, True)
    [cached] = redis_queries.read_all([(LIKE, POST)], None)
    assert cached is not None
    assert cached[:3] == redis_queries.CachedCount(9, False, False)[:3]


# ---------------------------------------------------------------- the consumer


def test_a_filter_of_the_maximum_size_is_not_requested_again(plaza: World) -> None:
    put(total=10**8, n=1, complete=False)
    redis_bloom.begin_bloom(LIKE, POST, "b", 10**8)
    assert redis_bloom.fill_bloom(LIKE, POST, "b", [7], True) == "FINISHED"
    decision = gate(7)
    assert (decision.code, decision.rebuild) == ("UNKNOWN", False)


def test_a_build_that_did_not_finish_in_ten_minutes_is_requested_again(plaza: World) -> None:
    put(total=9, n=1, complete=False)
    assert [gate(7).rebuild for _ in range(2)] == [True, False]
    ten_minutes_ago_ms = redis_us() // 1000 - 601_000
    redis.execute("HSET", keys().meta, "build_requested_at", ten_minutes_ago_ms)
    assert [gate(7).rebuild for _ in range(2)] == [True, False]


def test_a_filter_is_built_from_mysql_in_steps(
    plaza: World, set_up: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(recent_cap=50)
    monkeypatch.setattr(rebuild, "PAGE", 7)
    monkeypatch.setattr(rebuild, "PAGES_PER_STEP", 3)
    plaza.add(POST)
    insert_rows([(POST, actor, actor % 5 != 0, 1_000 + actor) for actor in range(1, 151)])
    hydrate()
    assert react.react(LIKE, POST, 1, True).changed is False, "read from MySQL"
    [request] = plaza.queues.messages["rebuilds"]
    assert REBUILDS.decode(str(request)).build == ""
    steps = 0
    while bodies := plaza.queues.take("rebuilds"):
        rebuild.rebuild([REBUILDS.decode(str(body)) for body in bodies])
        steps += 1
    assert steps == 6  # 120 are on: 18 pages of 7, 3 a step
    assert meta()["bloom"] == 2**17
    codes = {actor: gate(actor, on=False).code for actor in range(5, 100, 5)}
    assert set(codes.values()) == {NO}, "actors that are off"
    cached = [redis_queries.read_all([(LIKE, POST)], actor)[0] for actor in range(1, 151)]
    assert all(c and c.viewer_state is not False for a, c in enumerate(cached, 1) if a % 5), (
        "an actor that is on was denied"
    )


def test_a_filter_has_the_actors_that_are_on(plaza: World) -> None:
    insert_rows([(POST, actor, actor % 2, actor) for actor in range(1, 8)])
    assert mysql_rows.read_actors(LIKE, POST, 1, 2) == [3, 5]


def test_a_build_ends_with_an_empty_page_after_a_full_one(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "PAGE", 5)
    insert_rows([(POST, actor, 1, 1_000 + actor) for actor in range(1, 11)])
    put(total=10, n=10, complete=False)
    hydration.request_rebuild(LIKE, POST)
    plaza.queues.drain()
    assert meta()["bloom"] == 2**17


def test_a_repeated_step_changes_nothing(plaza: World) -> None:
    insert_rows([(POST, actor, 1, 1_000 + actor) for actor in range(1, 11)])
    put(total=10, n=10, complete=False)
    step = BloomBuildStep(LIKE, POST, "", 0)
    rebuild.rebuild([step, step])
    rebuild.rebuild([BloomBuildStep(LIKE, POST, "other", 4)])
    assert gate(99, on=False).code == NO
    assert all(gate(actor, on=False).code == "UNKNOWN" for actor in range(1, 11))


def test_a_rebuild_of_a_cold_target_is_refused_and_logged(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    rebuild.rebuild([BloomBuildStep(LIKE, Target("post", 404), "", 0)])
    assert '"code":"COLD"' in capsys.readouterr().out
