"""Pages of likers: each liker is listed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plaza.core.reactions import LIKE, queries, react, redis_queries
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from tests.support.plaza import World
from tests.support.stores import POST, apply, hydrate, insert_rows, keys, put, recent

SetUp = Callable[..., None]
BASE_US = 1_700_000_000_000_000


def clear_stores() -> None:
    redis.execute("FLUSHALL")
    for table in ("reaction", "counter"):
        mysql.write(f"DELETE FROM {table}")


def list_likers(latest: bool, size: int) -> list[int]:
    """Return the likers of all pages."""
    listed: list[int] = []
    after = None
    for _ in range(300):
        page, after = queries.list_reactors(LIKE, POST, after, latest, size)
        assert len(page) <= size
        listed += [reactor.actor_id for reactor in page]
        if after is None:
            return listed
    raise AssertionError("the list does not end")


# ---------------------------------------------------------------- random likes


@dataclass
class Likes:
    """Rows in MySQL (actor -> microseconds after BASE_US), and later reactions."""

    saved: dict[int, int]
    unliked: set[int]
    new: list[int]

    def apply(self) -> tuple[list[int], list[int]]:
        """Apply them; return the likers, in order, that are saved now and when all is saved."""
        if self.saved:
            insert_rows([(POST, actor, 1, BASE_US + at) for actor, at in self.saved.items()])
        hydrate()
        for actor in sorted(self.unliked):
            react.react(LIKE, POST, actor, False)
        for actor in self.new:
            react.react(LIKE, POST, actor, True)
        in_order = sorted(self.saved, key=lambda a: (self.saved[a], a))
        return in_order, [*(a for a in in_order if a not in self.unliked), *self.new]


@st.composite
def all_likes(draw: st.DrawFn, tied: bool) -> Likes:
    actors = draw(st.lists(st.integers(1, 120), unique=True, max_size=25))
    if tied:
        times = draw(st.lists(st.integers(1, 4), min_size=len(actors), max_size=len(actors)))
    else:
        times = list(range(len(actors)))
    saved = dict(zip(actors, times, strict=True))
    unliked = draw(st.sets(st.sampled_from(actors))) if actors else set()
    new = draw(st.lists(st.integers(200, 203), unique=True, max_size=2))
    return Likes(saved, unliked, new)


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    likes=st.booleans().flatmap(all_likes),
    cap=st.sampled_from([3, 8, 50]),
    latest=st.booleans(),
    size=st.integers(1, 7),
)
def test_pages_list_each_liker_once_also_with_equal_versions(
    plaza: World, set_up: SetUp, likes: Likes, cap: int, latest: bool, size: int
) -> None:
    plaza.queues.messages.clear()
    clear_stores()
    set_up(recent_cap=cap)
    plaza.add(POST)
    saved, order = likes.apply()
    assert list_likers(latest, size) == (saved[::-1] if latest else saved)
    plaza.queues.drain()
    assert list_likers(latest, size) == (order[::-1] if latest else order)


@pytest.mark.parametrize("latest", [False, True])
def test_pages_continue_from_redis_into_mysql(plaza: World, set_up: SetUp, latest: bool) -> None:
    """Given 50 actors in Redis, the minimum of a hydration, and 10 more in MySQL only."""
    set_up(recent_cap=50)
    plaza.add(POST)
    order = list(range(1, 61))
    insert_rows([(POST, actor, 1, BASE_US + actor) for actor in order])
    hydrate()
    assert recent() == order[10:]
    for size in range(1, 8):
        assert list_likers(latest, size) == (order[::-1] if latest else order)


@pytest.mark.parametrize("latest", [False, True])
def test_pages_list_each_liker_once_after_unlikes(
    plaza: World, set_up: SetUp, latest: bool
) -> None:
    set_up(recent_cap=50)
    plaza.add(POST)
    insert_rows([(POST, actor, 1, BASE_US + actor) for actor in range(1, 81)])
    hydrate()
    unliked = {1, 2, 3, 4, 5, 6, 20, 21, 22, 23, 24, 28, 29, 30, 31, 32, 78, 79, 80}
    for actor in sorted(unliked):
        assert react.react(LIKE, POST, actor, False).changed
    saved = list(range(1, 81))
    order = [actor for actor in saved if actor not in unliked]
    for size in (1, 2, 3, 7, 100):
        assert list_likers(latest, size) == (saved[::-1] if latest else saved), "not saved yet"
    plaza.queues.drain()
    for size in (1, 2, 3, 7, 100):
        assert list_likers(latest, size) == (order[::-1] if latest else order)


def test_the_list_of_a_post_without_likes_is_empty(plaza: World) -> None:
    plaza.add(POST)
    assert list_likers(False, 5) == list_likers(True, 5) == []


def test_likers_at_the_floor_are_read_from_mysql(plaza: World, set_up: SetUp) -> None:
    """Given two likes of one version, of which Redis evicts the first by its text."""
    set_up(recent_cap=3)
    plaza.add(POST)
    insert_rows([(POST, actor, 1, BASE_US + at) for actor, at in ((9, 1), (10, 1), (3, 2), (4, 3))])
    put(total=3, n=3, newest=[(3, BASE_US + 2), (10, BASE_US + 1), (9, BASE_US + 1)])
    apply(4, 4, [(4, BASE_US + 3, True)])
    assert recent() == [9, 3, 4]
    assert list_likers(latest=True, size=10) == [4, 3, 10, 9]


def test_a_target_of_another_term_is_not_listed(plaza: World) -> None:
    put(total=1, newest=[(7, 10)])
    assert redis_queries.read_page(LIKE, POST, None, True, 5) == (True, [(7, 10)])
    redis.execute("HSET", keys().meta, "term", "0" * 40)
    assert redis_queries.read_page(LIKE, POST, None, True, 5) is None
