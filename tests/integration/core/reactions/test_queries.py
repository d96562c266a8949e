"""Queries and reactions in the cases between Redis and MySQL: what is cached, loaded, asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plaza.core.reactions import (
    LIKE,
    Target,
    hydration,
    mysql_rows,
    persist,
    queries,
    react,
    redis_hydration,
)
from plaza.core.reactions.hot_totals import hot_totals
from plaza.core.reactions.model import Count, ReactionUndecided, TargetMissing
from plaza.core.reactions.queues import REBUILDS
from plaza.core.targets import markers
from plaza.infra.redis import redis
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.process import clear_caches
from tests.support.consumers import make_event
from tests.support.plaza import World
from tests.support.stores import (
    POST,
    insert_rows,
    keys,
    meta,
    outbox,
    put,
    read_counts,
    recent,
    total,
)

SetUp = Callable[..., None]
WANTED = [(LIKE, POST)]
HOT = (LIKE.name, POST)


def test_a_changed_total_is_not_served_from_the_cache(plaza: World) -> None:
    plaza.add(POST)
    for _ in range(100):
        if hot_totals.get(HOT) is None:
            hot_totals.put(HOT, (5, None))
    assert hot_totals.get(HOT) == (5, None)
    react.react(LIKE, POST, 7, True)
    assert hot_totals.get(HOT) is None


def test_only_exact_totals_are_cached(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    cached: list[Any] = []
    monkeypatch.setattr(hot_totals, "put", lambda *args: cached.append(args))
    for exact in (False, True):
        monkeypatch.setattr(queries, "_read_counts", lambda *_, e=exact: ([Count(5, False)], e))
        assert queries.read_counts(WANTED, None) == ([Count(5, False)], exact)
    assert cached == [(HOT, (5, None))]


def test_a_state_that_redis_does_not_have_is_read_from_mysql(plaza: World) -> None:
    plaza.add(POST)
    insert_rows([(POST, 7, 1, 10)])
    put(total=1, n=1, complete=False)
    assert read_counts(WANTED, 7) == ([Count(1, True)], True)
    assert len(plaza.queues.take(REBUILDS)) == 1
    redis.execute("HDEL", keys().meta, "build_requested_at")
    assert react.react(LIKE, POST, 7, False).changed
    assert len(plaza.queues.take(REBUILDS)) == 1


def test_a_read_waits_for_a_load_within_the_budget(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    monkeypatch.setattr(hydration, "HYDRATE_WAIT_S", 0)
    monkeypatch.setattr(queries, "_fallback_budget", TokenBucket(rate_per_s=1e-9, burst=1))
    redis_hydration.take_hydration_leases(WANTED)
    assert read_counts(WANTED, 7) == ([Count(0, False)], False)
    with pytest.raises(ReactionUndecided):
        queries.read_counts(WANTED, 7)


def test_a_snapshot_that_redis_refuses_is_not_loaded(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.execute("SET", keys().fence, 5)
    assert hydration.hydrate(WANTED, wait_s=0) == WANTED
    redis.execute("DEL", keys().fence)
    redis.execute("HSET", keys().outbox, 7, "1:10:0:cabc")
    monkeypatch.setattr(redis_hydration, "read_outboxes", lambda expected: [[] for _ in expected])
    assert hydration.hydrate(WANTED, wait_s=0) == WANTED
    assert (meta(), set(outbox())) == ({}, {7})


def test_commits_that_arrived_during_a_load_are_applied(plaza: World) -> None:
    redis.execute("HSET", keys().ahead, 1, "1|7 10 1")
    assert hydration.hydrate(WANTED) == []
    assert (recent(), total(), "blocked" in meta()) == ([7], 1, False)


def test_a_reaction_caches_that_its_target_is_live(plaza: World) -> None:
    plaza.add(POST)
    for actor in (7, 8):
        clear_caches()
        react.react(LIKE, POST, actor, True)
        assert markers.is_cached_live(*POST)


def test_a_short_page_of_the_earliest_is_not_cached(plaza: World, set_up: SetUp) -> None:
    set_up(recent_cap=50)
    plaza.add(POST)
    insert_rows([(POST, actor, 1, 1_000 + actor) for actor in range(1, 61)])
    result, _ = queries.list_reactors(LIKE, POST, None, False, 100)
    assert [reactor.actor_id for reactor in result] == list(range(1, 61))
    assert redis.execute("EXISTS", keys().earliest) == 0


def test_a_list_that_was_read_before_a_commit_is_not_cached_after_it(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Target("post", 12)
    insert_rows([(POST, 7, 1, 10)])
    read_reacted = mysql_rows.read_reacted

    def read_before_commit(*args: Any) -> Any:
        reacted = read_reacted(*args)
        persist.save([make_event(7, at=1, target=other)])
        return reacted

    with monkeypatch.context() as patch:
        patch.setattr(mysql_rows, "read_reacted", read_before_commit)
        assert [item.target for item in queries.list_reacted(LIKE, 7, None, 5)[0]] == [POST]
    assert [item.target for item in queries.list_reacted(LIKE, 7, None, 5)[0]] == [other, POST]


def test_the_list_of_a_target_that_does_not_exist_is_not_found(plaza: World) -> None:
    with pytest.raises(TargetMissing):
        queries.list_reactors(LIKE, POST, None, True, 5)


@pytest.mark.parametrize("latest", [True, False])
def test_a_full_last_page_has_no_next_one(plaza: World, latest: bool) -> None:
    plaza.add(POST)
    insert_rows([(POST, 7, 1, 10), (POST, 8, 1, 20)])
    result, after = queries.list_reactors(LIKE, POST, None, latest, 2)
    assert ({reactor.actor_id for reactor in result}, after) == ({7, 8}, None)
