"""The cached first page of the earliest actors of a target with more actors than recent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plaza.core.reactions import (
    LIKE,
    mysql_rows,
    persist,
    queries,
    react,
    redis_commits,
    redis_hydration,
    redis_queries,
)
from plaza.core.reactions.model import (
    Commit,
    ReactionEvent,
    ReactionKey,
    ReactionListsBusy,
    Reactor,
)
from plaza.infra.mysql import mysql
from plaza.infra.redis import locks, redis
from plaza.infra.redis.token_bucket import TokenBucket
from tests.support.content_api import counting_work
from tests.support.depth import choose
from tests.support.plaza import World
from tests.support.reconciliations import findings_of, run
from tests.support.stores import POST, hydrate, insert_rows, keys

SetUp = Callable[..., None]
BASE_US = 1_700_000_000_000_000
LIKERS = 200


def page(size: int = 20, latest: bool = False) -> list[int]:
    result, _ = queries.list_reactors(LIKE, POST, None, latest, size)
    return [reactor.actor_id for reactor in result]


def save(actor: int, on: bool, version_us: int) -> None:
    persist.save([ReactionEvent(ReactionKey(*POST, "like", actor), on, version_us)])


@pytest.fixture
def large_post(plaza: World, set_up: SetUp) -> World:
    """A post with 200 likers, of which recent has 50."""
    set_up(recent_cap=50)
    plaza.add(POST)
    insert_rows([(POST, actor, 1, BASE_US + actor) for actor in range(1, LIKERS + 1)])
    hydrate()
    return plaza


def test_a_cached_page_costs_no_statement(large_post: World) -> None:
    page()
    with counting_work() as work:
        for size in (1, 20, 100):
            result, last = queries.list_reactors(LIKE, POST, None, False, size)
            assert [reactor.actor_id for reactor in result] == list(range(1, size + 1))
            assert last == Reactor(size, BASE_US + size)
    assert work.statements == 0


def test_a_cached_page_expires(large_post: World) -> None:
    page()
    assert redis.execute("PTTL", keys().earliest) > 0


@pytest.mark.parametrize("likes_per_version", [2, 3, 10])
@pytest.mark.parametrize("first_actor", [5, 95])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 15])
def test_likers_of_equal_versions_are_listed_once(
    plaza: World, set_up: SetUp, likes_per_version: int, first_actor: int, size: int
) -> None:
    """Given ids of one to three digits, imported with times of whole seconds."""
    set_up(recent_cap=50)
    plaza.add(POST)
    likers = range(first_actor, first_actor + LIKERS)
    insert_rows(
        [
            (POST, actor, 1, BASE_US + n // likes_per_version * 1_000_000)
            for n, actor in enumerate(likers)
        ]
    )
    hydrate()
    for latest in (False, True):
        page(latest=latest)  # the earliest are cached
        assert walk(size, latest) == sorted(likers, reverse=latest)


def walk(size: int, latest: bool) -> list[int]:
    """Return the actors of all pages of a list."""
    listed: list[int] = []
    after = None
    while True:
        result, after = queries.list_reactors(LIKE, POST, after, latest, size)
        listed += [reactor.actor_id for reactor in result]
        if after is None:
            return listed


def test_reactions_outside_of_the_page_keep_it(large_post: World) -> None:
    page()
    save(501, True, BASE_US + 501)
    save(150, False, BASE_US + 502)
    with counting_work() as work:
        assert page(3) == [1, 2, 3]
    assert work.statements == 0


@pytest.mark.parametrize(
    ("actor", "on", "at", "first"),
    [
        pytest.param(2, False, 1_000, [1, 3, 4], id="an unlike removes the actor"),
        pytest.param(2, True, 1_000, [1, 3, 4], id="a repeated like moves the actor to the end"),
        pytest.param(501, True, 0, [501, 1, 2], id="a late like is listed by its version"),
    ],
)
def test_a_change_of_a_cached_page(
    large_post: World, actor: int, on: bool, at: int, first: list[int]
) -> None:
    page()
    save(actor, on, BASE_US + at)
    assert page(3) == first


def test_a_late_unlike_of_an_actor_outside_of_the_page_keeps_it(large_post: World) -> None:
    page()
    save(9_999, False, BASE_US + 1)
    assert redis.execute("ZCARD", keys().earliest) == queries.EARLIEST_LENGTH


def test_a_page_replaces_one_from_before_an_eviction(large_post: World) -> None:
    page()
    redis_hydration.evict_all([(LIKE, POST, None)])
    save(1, False, BASE_US + 10**6)
    hydrate()
    for _ in range(2):
        assert page(3) == [2, 3, 4]


def test_a_page_is_not_cached_with_a_target_of_another_term(large_post: World) -> None:
    db_version, earliest = mysql_rows.read_earliest(LIKE, POST, queries.EARLIEST_LENGTH)
    redis.execute("HSET", keys().meta, "term", "0" * 40)
    redis_queries.cache_earliest(LIKE, POST, db_version, earliest)
    assert redis.execute("EXISTS", keys().earliest) == 0


def test_a_buffered_commit_drops_the_page(large_post: World) -> None:
    page()
    db_version = int(redis.execute("HGET", keys().meta, "db_version"))
    for n, actor in ((db_version + 2, 4), (db_version + 1, 2)):
        commit = Commit(LIKE, POST, n, LIKERS, True, ((actor, BASE_US + 900 + n, False),))
        redis_commits.apply_all([commit])
    assert not redis.execute("EXISTS", keys().earliest)
    is_complete, _ = redis_queries.read_page(LIKE, POST, None, False, 5) or (False, [])
    assert not is_complete


@pytest.mark.parametrize("loss", ["drop", "page", "flush"])
def test_a_lost_page_is_read_from_mysql_again(large_post: World, loss: str) -> None:
    page()
    mysql.write("UPDATE reaction SET state = 0 WHERE actor_id = 2")  # without a commit
    if loss == "drop":
        redis_hydration.evict_all([(LIKE, POST, None)])
    elif loss == "page":
        redis.execute("DEL", keys().earliest)
    else:
        redis.execute("FLUSHALL")
    assert page(3) == [1, 3, 4]
    with counting_work() as work:
        assert page(3) == [1, 3, 4]
    assert work.statements == 0


def test_a_page_read_before_a_commit_is_not_cached_after_it(
    large_post: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_earliest = mysql_rows.read_earliest

    def read_then_wait(*args: object) -> object:
        page = read_earliest(*args)  # type: ignore[arg-type]
        save(2, False, BASE_US + 1_000)
        return page

    with monkeypatch.context() as patch:
        patch.setattr(mysql_rows, "read_earliest", read_then_wait)
        assert page(3) == [1, 2, 3], "the state before the commit"
    assert page(3) == [1, 3, 4]


def test_one_reader_reads_the_page_and_others_wait(
    large_post: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = locks.try_lock(f"{keys().earliest}:lock", 5)
    assert lock is not None

    def cache_page(seconds: float) -> None:
        """Do what the reader with the lock does meanwhile."""
        if redis.execute("EXISTS", keys().earliest) == 0:
            n, result = mysql_rows.read_earliest(LIKE, POST, queries.EARLIEST_LENGTH)
            assert redis_queries.cache_earliest(LIKE, POST, n, result)

    monkeypatch.setattr("plaza.infra.runtime.clock.sleep", cache_page)
    page(1, latest=True)  # caches the existence of the post
    with counting_work() as work:
        assert page(3) == [1, 2, 3]
    assert work.statements == 1, "the other reader's statement"


def test_later_pages_are_read_from_mysql_within_the_budget(
    large_post: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    page()
    monkeypatch.setattr(queries, "_list_budget", TokenBucket(0.0001, 3, clock=lambda: 0.0))
    for actor in (20, 40, 60):
        queries.list_reactors(LIKE, POST, Reactor(actor, BASE_US + actor), False, 20)
    with pytest.raises(ReactionListsBusy):
        queries.list_reactors(LIKE, POST, Reactor(80, BASE_US + 80), False, 20)
    assert page(3) == [1, 2, 3]


Step = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["on", "off", "late", "list", "drain"]), st.integers(1, 14),
              st.integers(1, 40)),
    max_size=30,
)  # fmt: skip


@pytest.mark.sampled
@settings(
    max_examples=choose(40, 150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS, length=st.integers(2, 8), likers=st.integers(4, 12))
def test_pages_equal_the_saved_rows_after_every_step(
    plaza: World,
    set_up: SetUp,
    steps: list[Step],
    length: int,
    likers: int,
) -> None:
    plaza.queues.messages.clear()
    redis.execute("FLUSHALL")
    for table in ("reaction", "counter", "reaction_log"):
        mysql.write(f"DELETE FROM {table}")
    set_up(recent_cap=3)
    plaza.add(POST)
    insert_rows([(POST, actor, 1, BASE_US + 10 * actor) for actor in range(1, likers + 1)])
    hydrate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "EARLIEST_LENGTH", length)
        for step, actor, at in steps:
            match step:
                case "on" | "off":
                    react.react(LIKE, POST, actor, step == "on")
                case "late":
                    save(actor, at % 2 == 0, BASE_US + 5 * at)
                case "drain":
                    plaza.queues.drain()
            saved = mysql_rows.read_reactors(LIKE, POST, None, False, 100)
            order = [reactor.actor_id for reactor in saved]
            for size in range(1, length):
                assert page(size) == order[:size]


@pytest.mark.parametrize(
    "command",
    [
        ("ZREM", keys().earliest, 3),
        ("ZADD", keys().earliest, BASE_US, 777),
        ("ZADD", keys().earliest, BASE_US, 3),
    ],
    ids=["missing", "too much", "another time"],
)
def test_a_wrong_page_is_found_and_dropped(large_post: World, command: tuple[Any, ...]) -> None:
    right = page()
    redis.execute(*command)
    assert ("list", "earliest-like-post", str(POST)) in findings_of(run(large_post))
    assert redis.execute("EXISTS", keys().earliest) == 0
    assert page() == right
    assert "list" not in {reason for reason, _, _ in findings_of(run(large_post))}
