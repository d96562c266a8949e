"""Pages of an actor's likes: each target is listed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plaza.core.reactions import COLLECT, LIKE, Target, queries, react
from plaza.core.reactions.model import ReactedTarget
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from tests.integration.conftest import Away
from tests.support.plaza import World
from tests.support.stores import POST, insert_rows

SetUp = Callable[..., None]
BASE_US = 1_700_000_000_000_000


def clear_stores() -> None:
    redis.execute("FLUSHALL")
    for table in ("reaction", "counter"):
        mysql.write(f"DELETE FROM {table}")


def list_likes(size: int, actor: int = 7) -> list[ReactedTarget]:
    """Return the actor's likes of all pages."""
    listed: list[ReactedTarget] = []
    after = None
    for _ in range(300):
        page, after = queries.list_reacted(LIKE, actor, after, size)
        assert len(page) == size or after is None
        listed += page
        if after is None:
            return listed
    raise AssertionError("the list does not end")


def in_order(result: Sequence[tuple[Target, int, int, int]]) -> list[ReactedTarget]:
    on = [ReactedTarget(target, version) for target, _, state, version in result if state]
    return sorted(on, key=lambda r: (r.version_us, *r.target), reverse=True)


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 130])
def test_pages_continue_from_the_list_in_redis_into_mysql(plaza: World, count: int) -> None:
    results = [(Target("post", n), 7, 1, BASE_US + n) for n in range(1, count + 1)]
    if results:
        insert_rows(results)
    for size in (1, 7, 50, 100):
        assert list_likes(size) == in_order(results)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    count=st.integers(90, 125),
    times=st.integers(1, 12),
    off=st.sets(st.integers(1, 125), max_size=20),
    size=st.integers(1, 7),
)
def test_pages_list_each_target_once_also_with_equal_versions(
    plaza: World, count: int, times: int, off: set[int], size: int
) -> None:
    clear_stores()
    types = ("post", "comment", "review")
    results = [
        (Target(types[n % 3], n), 7, int(n not in off), BASE_US + n * times // count)
        for n in range(1, count + 1)
    ]
    insert_rows(results)
    assert list_likes(size) == in_order(results)


def test_a_saved_like_is_listed_first(plaza: World) -> None:
    plaza.add(POST, Target("post", 12))
    insert_rows([(POST, 7, 1, BASE_US)])
    assert [r.target for r in list_likes(5)] == [POST]
    react.react(LIKE, Target("post", 12), 7, True)
    plaza.queues.drain()
    assert [r.target for r in list_likes(5)] == [Target("post", 12), POST]
    react.react(LIKE, POST, 7, False)
    plaza.queues.drain()
    assert [r.target for r in list_likes(5)] == [Target("post", 12)]


def test_likes_of_others_and_collects_are_not_listed(plaza: World) -> None:
    insert_rows([(POST, 7, 1, BASE_US), (POST, 8, 1, BASE_US + 1)])
    insert_rows([(Target("post", 12), 7, 1, BASE_US + 2)], COLLECT)
    assert [r.target for r in list_likes(5)] == [POST]
    page, after = queries.list_reacted(COLLECT, 7, None, 5)
    assert ([r.target for r in page], after) == ([Target("post", 12)], None)


def test_likes_are_listed_from_mysql_while_redis_is_unavailable(
    plaza: World, redis_away: Away
) -> None:
    results = [(Target("post", n), 7, 1, BASE_US + n // 3) for n in range(1, 111)]
    insert_rows(results)
    assert list_likes(50) == in_order(results)
    with redis_away():
        assert list_likes(7) == in_order(results)
