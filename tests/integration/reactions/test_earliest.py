"""The first page of the earliest actors of a target that is too large for Redis to hold whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plaza.infra import mysql, redis
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import (
    LIKE,
    mysql_reactions,
    persist,
    queries,
    react,
    redis_commits,
    redis_hydration,
    redis_queries,
)
from plaza.reactions.model import Commit, ReactionEvent, ReactionKey, ReactionListsBusy, Reactor
from tests.support.content_api import counting_work
from tests.support.plaza import World
from tests.support.stores import POST, hydrate, insert_rows, keys

SetUp = Callable[..., None]
BASE_US = 1_700_000_000_000_000
CROWD = 200


def page(size: int = 20, latest: bool = False) -> list[int]:
    found, _ = queries.list_reactors(LIKE, POST, None, latest, size)
    return [reactor.actor_id for reactor in found]


def save(actor: int, on: bool, version_us: int) -> None:
    persist.save([ReactionEvent(ReactionKey(*POST, "like", actor), on, version_us)])


@pytest.fixture
def viral(plaza: World, set_up: SetUp) -> World:
    """A post that 200 like, of whom Redis has 50 by name."""
    set_up(recent_cap=50)
    plaza.add(POST)
    insert_rows([(POST, actor, 1, BASE_US + actor) for actor in range(1, CROWD + 1)])
    hydrate()
    return plaza


def test_once_it_is_warm_it_costs_mysql_nothing(viral: World) -> None:
    page()
    with counting_work() as work:
        for size in (1, 20, 100):
            found, last = queries.list_reactors(LIKE, POST, None, False, size)
            assert [reactor.actor_id for reactor in found] == list(range(1, size + 1))
            assert last == Reactor(size, BASE_US + size)
    assert work.statements == 0


def test_later_likes_and_strangers_who_leave_do_not_make_it_cold(viral: World) -> None:
    page()
    save(501, True, BASE_US + 501)
    save(150, False, BASE_US + 502)
    with counting_work() as work:
        assert page(3) == [1, 2, 3]
    assert work.statements == 0


def test_an_early_liker_who_leaves_is_not_on_it(viral: World) -> None:
    page()
    save(2, False, BASE_US + 1_000)
    assert page(3) == [1, 3, 4]


def test_an_early_liker_who_likes_again_moves_to_the_end(viral: World) -> None:
    page()
    save(2, True, BASE_US + 1_000)
    assert page(3) == [1, 3, 4]


def test_a_like_that_comes_late_is_in_its_place(viral: World) -> None:
    page()
    save(501, True, BASE_US)
    assert page(3) == [501, 1, 2]


def test_a_commit_that_waited_for_the_one_before_it_counts_too(viral: World) -> None:
    page()
    s = int(redis.execute("HGET", keys().meta, "db_version"))
    for n, actor in ((s + 2, 4), (s + 1, 2)):
        commit = Commit(LIKE, POST, n, CROWD, True, ((actor, BASE_US + 900 + n, False),))
        redis_commits.apply_all([commit])
    assert not redis.execute("EXISTS", keys().earliest)
    is_whole, _ = redis_queries.read_page(LIKE, POST, None, False, 5) or (False, [])
    assert not is_whole


@pytest.mark.parametrize("loss", ["drop", "page", "flush"])
def test_what_redis_lost_is_read_again(viral: World, loss: str) -> None:
    page()
    mysql.write("UPDATE reaction SET state = 0 WHERE actor_id = 2")  # as a repair, which drops
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


def test_a_page_that_was_read_before_a_commit_is_not_kept_after_it(
    viral: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_earliest = mysql_reactions.read_earliest

    def read_then_wait(*args: object) -> object:
        found = read_earliest(*args)  # type: ignore[arg-type]
        save(2, False, BASE_US + 1_000)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(mysql_reactions, "read_earliest", read_then_wait)
        assert page(3) == [1, 2, 3], "as it was when it was read"
    assert page(3) == [1, 3, 4]


def test_one_reader_reads_it_while_the_others_wait(
    viral: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = redis.try_lock(f"{keys().earliest}:lock", 5)
    assert lock is not None

    def fill_and_go(seconds: float) -> None:
        """What the reader who has the lock does meanwhile."""
        if redis.execute("EXISTS", keys().earliest) == 0:
            n, found = mysql_reactions.read_earliest(LIKE, POST, queries.EARLIEST_LENGTH)
            assert redis_queries.cache_earliest(LIKE, POST, n, found)

    monkeypatch.setattr("plaza.infra.clock.sleep", fill_and_go)
    page(1, latest=True)  # this process has seen the post
    with counting_work() as work:
        assert page(3) == [1, 2, 3]
    assert work.statements == 1, "that of the other reader"


def test_further_pages_are_read_from_mysql_as_far_as_the_budget_goes(
    viral: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    page()
    monkeypatch.setattr(queries, "_list_budget", TokenBucket(0.0001, 3, clock=lambda: 0.0))
    for actor in (20, 40, 60):
        queries.list_reactors(LIKE, POST, Reactor(actor, BASE_US + actor), False, 20)
    with pytest.raises(ReactionListsBusy):
        queries.list_reactors(LIKE, POST, Reactor(80, BASE_US + 80), False, 20)
    assert page(3) == [1, 2, 3]


BloomBuildStep = tuple[str, int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["on", "off", "late", "list", "drain"]), st.integers(1, 14),
              st.integers(1, 40)),
    max_size=30,
)  # fmt: skip


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS, length=st.integers(2, 8), crowd=st.integers(4, 12))
def test_after_every_step_the_list_is_what_is_saved(
    plaza: World,
    set_up: SetUp,
    steps: list[BloomBuildStep],
    length: int,
    crowd: int,
) -> None:
    plaza.queues.messages.clear()
    redis.execute("FLUSHALL")
    for table in ("reaction", "content_counter", "reaction_log"):
        mysql.write(f"DELETE FROM {table}")
    set_up(recent_cap=3)
    plaza.add(POST)
    insert_rows([(POST, actor, 1, BASE_US + 10 * actor) for actor in range(1, crowd + 1)])
    hydrate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "EARLIEST_LENGTH", length)
        for what, actor, at in steps:
            match what:
                case "on" | "off":
                    react.react(LIKE, POST, actor, what == "on")
                case "late":
                    save(actor, at % 2 == 0, BASE_US + 5 * at)
                case "drain":
                    plaza.queues.drain()
            saved = mysql_reactions.read_reactors(LIKE, POST, None, False, 100)
            order = [reactor.actor_id for reactor in saved]
            for size in range(1, length):
                assert page(size) == order[:size]
