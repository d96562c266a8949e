"""Who likes it, page by page: nobody is left out and nobody comes twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plaza.infra import mysql, redis
from plaza.reactions import LIKE, queries, react
from tests.support.plaza import World
from tests.support.stores import POST, hydrate, insert_rows, recent

SetUp = Callable[..., None]
BASE_US = 1_700_000_000_000_000


def empty() -> None:
    redis.execute("FLUSHALL")
    for table in ("reaction", "content_counter"):
        mysql.write(f"DELETE FROM {table}")


def likers(latest: bool, size: int) -> list[int]:
    """The list of likers, followed to its end."""
    listed: list[int] = []
    after = None
    for _ in range(300):
        page, after = queries.list_reactors(LIKE, POST, after, latest, size)
        assert len(page) <= size
        listed += [reactor.actor_id for reactor in page]
        if after is None:
            return listed
    raise AssertionError("the list does not end")


# ---------------------------------------------------------------- who liked it


@dataclass
class Likes:
    """Rows in MySQL (actor -> seconds after BASE_US), and what is accepted on top of them."""

    saved: dict[int, int]
    unliked: set[int]
    new: list[int]

    def play(self) -> tuple[list[int], list[int]]:
        """Make it so; who likes it by what is saved, and once all is saved, in order."""
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


TEN_AT_ONCE = Likes(dict.fromkeys(range(1, 11), 2) | {11: 3, 12: 1}, set(), [])


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
def test_the_list_of_likers_has_no_hole_and_no_repeat_also_where_times_are_equal(
    plaza: World, set_up: SetUp, likes: Likes, cap: int, latest: bool, size: int
) -> None:
    plaza.queues.messages.clear()
    empty()
    set_up(recent_cap=cap)
    plaza.add(POST)
    saved, order = likes.play()
    assert likers(latest, size) == (saved[::-1] if latest else saved)
    plaza.queues.drain()
    assert likers(latest, size) == (order[::-1] if latest else order)


@pytest.mark.parametrize("latest", [False, True])
def test_the_list_is_whole_across_the_seam_of_redis_and_mysql(
    plaza: World, set_up: SetUp, latest: bool
) -> None:
    """Fifty are in Redis (what a target is hydrated with at least), ten only in MySQL."""
    set_up(recent_cap=50)
    plaza.add(POST)
    order = list(range(1, 61))
    insert_rows([(POST, actor, 1, BASE_US + actor) for actor in order])
    hydrate()
    assert recent() == order[10:]
    for size in range(1, 8):
        assert likers(latest, size) == (order[::-1] if latest else order)


@pytest.mark.parametrize("latest", [False, True])
def test_the_list_is_whole_when_pages_of_it_were_unliked(
    plaza: World, set_up: SetUp, latest: bool
) -> None:
    set_up(recent_cap=50)
    plaza.add(POST)
    insert_rows([(POST, actor, 1, BASE_US + actor) for actor in range(1, 81)])
    hydrate()
    left = {1, 2, 3, 4, 5, 6, 20, 21, 22, 23, 24, 28, 29, 30, 31, 32, 78, 79, 80}
    for actor in sorted(left):
        assert react.react(LIKE, POST, actor, False).changed
    saved = list(range(1, 81))
    order = [actor for actor in saved if actor not in left]
    for size in (1, 2, 3, 7, 100):
        assert likers(latest, size) == (saved[::-1] if latest else saved), "not saved yet"
    plaza.queues.drain()
    for size in (1, 2, 3, 7, 100):
        assert likers(latest, size) == (order[::-1] if latest else order)


def test_the_list_of_who_likes_what_nobody_likes_is_empty(plaza: World) -> None:
    plaza.add(POST)
    assert likers(False, 5) == likers(True, 5) == []
