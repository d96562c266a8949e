"""begin_bloom.lua, fill_bloom.lua and the rebuild around them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plaza.infra import redis
from plaza.reactions import (
    LIKE,
    Target,
    react,
    rebuild,
    redis_bloom,
    redis_hydration,
    redis_queries,
)
from plaza.reactions.queues import BloomBuildStep
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
NO = "UNCHANGED"  # the answer to an unlike of somebody whom the filter doesn't know


def begin(build: str = "b1", actors: int = 10) -> str:
    return redis_bloom.begin_bloom(LIKE, POST, build, actors)


def fill(*actors: int, build: str = "b1", last: bool = False) -> str:
    return redis_bloom.fill_bloom(LIKE, POST, build, actors, last)


def test_a_build_begins_and_ends(plaza: World) -> None:
    put(total=9, complete=False)
    assert gate(1, on=False).code == "UNKNOWN"
    assert begin() == "BEGUN"
    assert fill(1, 2) == "FILLED"
    assert gate(3, on=False).code == "UNKNOWN", "it is not in use yet"
    assert fill(3, last=True) == "FINISHED"
    assert [gate(actor, on=False).code for actor in (1, 2, 3)] == ["UNKNOWN"] * 3
    assert gate(4, on=False).code == NO
    assert not {"filling", "build_id", "build_active_at", "build_requested_at"} & set(meta())
    assert redis.execute("EXISTS", keys().filling) == 0


def test_a_target_that_is_not_in_redis_is_not_built(plaza: World) -> None:
    assert begin() == "COLD"
    assert redis.execute("DBSIZE") == 0


def test_a_target_whose_recent_has_everybody_needs_no_filter(plaza: World) -> None:
    put()
    assert begin() == "COMPLETE"


def test_two_builds_of_one_target_do_not_mix(plaza: World) -> None:
    put(total=9, complete=False)
    assert begin("b1") == "BEGUN"
    assert begin("b2") == "BUSY"
    assert fill(1, build="b2") == "LOST"
    assert begin("b1") == "BEGUN", "its own build goes on"
    assert fill(2, last=True) == "FINISHED"
    assert gate(1, on=False).code == NO


def test_a_build_that_stood_still_is_taken_over_and_can_not_go_on(plaza: World) -> None:
    put(total=9, complete=False)
    begin("b1")
    fill(1)
    redis.execute("HSET", keys().meta, "build_active_at", meta()["build_active_at"] - 601_000)
    assert begin("b2") == "BEGUN"
    assert fill(2, build="b1", last=True) == "LOST"
    assert fill(3, build="b2", last=True) == "FINISHED"
    assert gate(1, on=False).code == NO, "what the first build had filled is not in the second"


def test_each_page_says_that_the_build_is_alive(plaza: World) -> None:
    put(total=9, complete=False)
    begin("b1")
    redis.execute("HSET", keys().meta, "build_active_at", 1)
    fill(1)
    assert begin("b2") == "BUSY"


def test_a_build_is_lost_when_its_target_was_forgotten(plaza: World) -> None:
    put(total=9, complete=False)
    begin()
    redis_hydration.evict_all([(LIKE, POST, None)])
    assert fill(1) == "LOST"
    put(total=9, complete=False)
    assert fill(1, last=True) == "LOST"
    assert meta()["bloom"] == 0


def test_a_filter_that_lost_its_beginning_is_not_believed(plaza: World) -> None:
    """SETBIT on a key that has gone would make a new one, which says no to everybody."""
    put(total=9, complete=False)
    begin()
    fill(1)
    redis.execute("DEL", keys().filling)
    assert fill(2, last=True) == "LOST"
    assert begin("b2") == "BEGUN"


def test_the_end_of_a_build_that_is_repeated_changes_nothing(plaza: World) -> None:
    put(total=9, complete=False)
    begin()
    assert fill(1, last=True) == "FINISHED"
    before = meta(), redis.execute("BITCOUNT", keys().bloom)
    assert fill(1, last=True) == "LOST"
    assert (meta(), redis.execute("BITCOUNT", keys().bloom)) == before


def test_who_falls_out_while_a_filter_is_built_is_in_it(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=2)
    put(total=9, newest=[(1, 10), (2, 20)], complete=False)
    begin()
    apply(1, 10, [(3, 30, True)])  # 1 falls out
    assert fill(8, last=True) == "FINISHED"
    assert gate(1, on=False).code == "UNKNOWN"


def test_who_is_saved_while_a_filter_is_built_is_in_it(plaza: World, set_up: SetUp) -> None:
    """The scan had passed their place; they fall out of recent before it ends."""
    set_up(recent_cap=1)
    put(total=9, newest=[(1, 10)], complete=False)
    begin()
    version = gate_as_read(5, was_on=False, n=0).version_us
    apply(1, 10, [(5, version, True)])
    fill(8, last=True)
    apply(2, 11, [(6, version + 1, True)])  # 5 falls out
    assert gate(5, on=False).code == "UNKNOWN"


def test_who_is_accepted_before_a_build_and_saved_after_it_is_not_denied(
    plaza: World, set_up: SetUp
) -> None:
    """The consumer is behind: the scan of MySQL can't see them, and they leave recent at once."""
    set_up(recent_cap=1)
    put(total=9, newest=[(1, 10)], complete=False)
    versions = {actor: gate_as_read(actor, was_on=False, n=0).version_us for actor in (5, 6, 7)}
    begin()
    fill(8, last=True)
    apply(1, 12, [(actor, version, True) for actor, version in versions.items()])
    for actor in (5, 6):
        [seen] = redis_queries.read_all([(LIKE, POST)], actor)
        assert seen is not None
        assert seen.viewer_state is None, "only MySQL knows, not: no"
        assert gate(actor, on=False).code == "UNKNOWN"


@pytest.mark.parametrize(
    ("actors", "bits"),
    [(0, 2**17), (8_192, 2**17), (8_193, 2**18), (100_000, 2**21), (10**7, 2**23)],
)
def test_a_filter_is_as_big_as_its_crowd_up_to_a_mebibyte(
    plaza: World, actors: int, bits: int
) -> None:
    put(total=9, complete=False)
    begin(actors=actors)
    assert meta()["filling"] == bits
    assert redis.execute("STRLEN", keys().filling) == bits // 8 + 1, "one bit more: the seal"


def test_a_filter_that_is_crowded_asks_for_a_bigger_one(plaza: World) -> None:
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


def test_reading_asks_for_a_filter_too(plaza: World) -> None:
    put(total=9, complete=False)
    [seen] = redis_queries.read_all([(LIKE, POST)], 7)
    assert seen is not None
    assert (seen.total, seen.viewer_state, seen.rebuild) == (9, None, True)
    [seen] = redis_queries.read_all([(LIKE, POST)], None)
    assert seen == (9, False, False)


# ---------------------------------------------------------------- from MySQL, through the queue


def test_a_big_cold_target_gets_its_filter_in_the_background(
    plaza: World, set_up: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(recent_cap=50)
    monkeypatch.setattr(rebuild, "PAGE", 7)
    monkeypatch.setattr(rebuild, "PAGES_PER_STEP", 3)
    plaza.add(POST)
    insert_rows([(POST, actor, actor % 5 != 0, 1_000 + actor) for actor in range(1, 151)])
    hydrate()
    assert react.react(LIKE, POST, 1, True).changed is False, "by MySQL's word"
    [asked] = plaza.queues.messages["rebuilds"]
    assert BloomBuildStep.from_json(asked).build == ""
    steps = 0
    while waiting := plaza.queues.take("rebuilds"):
        rebuild.rebuild([BloomBuildStep.from_json(body) for body in waiting])
        steps += 1
    assert steps == 6  # 120 are on: 18 pages of 7, 3 a step
    assert meta()["bloom"] == 2**17
    codes = {actor: gate(actor, on=False).code for actor in range(5, 100, 5)}
    assert set(codes.values()) == {NO}, "those who are off"
    seen = [redis_queries.read_all([(LIKE, POST)], actor)[0] for actor in range(1, 151)]
    assert all(s and s.viewer_state is not False for a, s in enumerate(seen, 1) if a % 5), (
        "a false no"
    )


def test_a_page_that_ends_exactly_with_the_last_actor_is_followed_by_an_empty_one(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "PAGE", 5)
    insert_rows([(POST, actor, 1, 1_000 + actor) for actor in range(1, 11)])
    put(total=10, n=10, complete=False)
    react.request_rebuild(LIKE, POST)
    plaza.queues.drain()
    assert meta()["bloom"] == 2**17


def test_a_step_that_comes_twice_does_no_harm(plaza: World) -> None:
    insert_rows([(POST, actor, 1, 1_000 + actor) for actor in range(1, 11)])
    put(total=10, n=10, complete=False)
    step = BloomBuildStep(LIKE, POST, "", 0)
    rebuild.rebuild([step, step])
    rebuild.rebuild([BloomBuildStep(LIKE, POST, "other", 4)])
    assert gate(99, on=False).code == NO
    assert all(gate(actor, on=False).code == "UNKNOWN" for actor in range(1, 11))


def test_a_rebuild_of_what_is_not_in_redis_is_refused_and_said(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    rebuild.rebuild([BloomBuildStep(LIKE, Target("post", 404), "", 0)])
    assert '"code":"COLD"' in capsys.readouterr().out
