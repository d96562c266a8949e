"""inspect_target.lua and find_denied.lua, on a real Redis: what the reconciliation compares."""

from __future__ import annotations

import pytest

from plaza.core.reactions import LIKE, redis_bloom, redis_inspection
from plaza.core.reactions.model import CachedTarget, Fingerprint
from plaza.infra.redis import redis
from tests.support.plaza import World
from tests.support.stores import POST, gate, keys, put


def inspect(max_actors: int) -> CachedTarget:
    [result] = redis_inspection.inspect_all([(LIKE, POST)], max_actors)
    assert isinstance(result, CachedTarget)
    return result


@pytest.mark.parametrize(
    ("max_actors", "floor_us", "newest"),
    [(2, 20, Fingerprint(1, 3, 30)), (3, 0, Fingerprint(3, 6, 60))],
)
def test_a_fingerprint_has_the_newest_actors_above_its_floor(
    plaza: World, max_actors: int, floor_us: int, newest: Fingerprint
) -> None:
    put(total=3, newest=[(3, 30), (2, 20), (1, 10)])
    result = inspect(max_actors)
    assert (result.floor_us, result.newest) == (floor_us, newest)


def test_actors_at_the_floor_of_a_target_are_not_in_the_fingerprint(plaza: World) -> None:
    put(total=9, newest=[(3, 30), (2, 20)], complete=False)
    assert (inspect(5).floor_us, inspect(5).newest) == (20, Fingerprint(1, 3, 30))


def test_entries_are_counted_in_the_outbox_itself(plaza: World) -> None:
    put()
    gate(7)
    redis.execute("DEL", keys().outbox)
    assert (inspect(5).outbox_count, inspect(5).entries) == (1, 0)


def test_actors_outside_of_recent_and_the_filter_are_denied(plaza: World) -> None:
    asked = list(range(1, 206))
    put(total=3, n=3, newest=[(3, 30)], complete=False)
    assert redis_inspection.find_denied([(LIKE, POST, asked)]) == [(0, [])]
    redis_bloom.begin_bloom(LIKE, POST, "b", 3)
    assert redis_bloom.fill_bloom(LIKE, POST, "b", [1, 2, 150], True) == "FINISHED"
    denied = [actor for actor in asked if actor not in (1, 2, 3, 150)]
    assert redis_inspection.find_denied([(LIKE, POST, asked)]) == [(3, denied)]


def test_actors_outside_of_a_complete_target_are_denied(plaza: World) -> None:
    put(total=1, n=1, newest=[(1, 10)])
    assert redis_inspection.find_denied([(LIKE, POST, [1, 2])]) == [(1, [2])]
