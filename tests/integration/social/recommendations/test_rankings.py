"""Rankings: order and ties as in MySQL, late projections, repairs, windows, pages."""

from __future__ import annotations

import random
import threading
import time
from itertools import pairwise
from typing import Any

import pytest

from plaza.core.reactions import LIKE, persist, react, redis_rankings
from plaza.core.reactions import rankings as reaction_rankings
from plaza.core.reactions.model import (
    TOMBSTONE_VERSION,
    PostLikes,
    PostRank,
    ReactionEvent,
    Window,
)
from plaza.core.switches import refresh
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.process import clear_caches
from plaza.social.recommendations import like_roll_up, post_rankings
from tests.integration.conftest import Away
from tests.integration.social.recommendations.test_recommendations import own_connections
from tests.support.consumers import statements
from tests.support.content_api import ask, counting_work
from tests.support.likes_log import (
    HOUR_US,
    NOW_US,
    early_in_an_hour,
    like,
    most_liked,
    post,
    window_in_log,
)
from tests.support.plaza import World


@pytest.fixture(autouse=True)
def a_full_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a full fallback budget."""
    monkeypatch.setattr(post_rankings, "_fallback_budget", TokenBucket(1_000, 1_000))


def ranked(window: Window = "all", limit: int = 100) -> list[tuple[int, int]]:
    """Return (likes, post) of all pages of a ranking."""
    results: list[tuple[int, int]] = []
    after: PostRank | None = None
    while True:
        page = post_rankings.list_most_liked(window, after, limit, None)
        assert len(page.posts) <= limit
        results += [(item.likes, item.post.text.id) for item in page.posts]
        if page.last is None:
            return results
        after = page.last


def in_redis() -> list[tuple[int, int]]:
    """Return (likes, post) of the ranking of all time in Redis."""
    pairs = iter(
        redis.execute("ZRANGE", redis_rankings.ranking_key("all"), 0, -1, "REV", "WITHSCORES")
    )
    return [(int(score), int(member)) for member, score in zip(pairs, pairs, strict=True)]


def refuse_mysql(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make reads from MySQL fail."""
    monkeypatch.setattr(post_rankings, "_fallback_budget", TokenBucket(0.0001, 0))


def add_liked(likes: dict[int, int]) -> None:
    """Insert posts and their likes into MySQL."""
    values = ",".join(f"('post',{post_id},7)" for post_id in likes)
    mysql.write(f"INSERT INTO content (content_type, content_id, author_id) VALUES {values}")
    values = ",".join(
        f"('post',{post_id},'like',{total},1,{total})" for post_id, total in likes.items()
    )
    mysql.write(
        "INSERT INTO counter (target_type, target_id, kind, total, version, ranked)"
        f" VALUES {values}"
    )


# ---------------------------------------------------------------- of all time


@pytest.mark.parametrize("seed", range(5))
def test_the_ranking_has_the_order_of_mysql_after_random_likes(
    plaza: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Given only consumers, whose messages arrive twice and late."""
    rng = random.Random(seed)
    ids = [*rng.sample(range(1, 2**63), 20), *range(1, 11)]
    plaza.add(*map(post, ids))
    post_rankings.refresh_rankings()
    refuse_mysql(monkeypatch)
    delivered: list[str] = []
    for _ in range(15):
        for _ in range(20):
            react.react(LIKE, post(rng.choice(ids)), rng.randint(1, 6), rng.random() < 0.6)
        bodies = plaza.queues.messages["reactions"]
        delivered += bodies
        bodies += rng.choices(delivered, k=5)
        rng.shuffle(bodies)
        plaza.queues.drain()
        assert ranked(limit=7) == most_liked()
    assert len({likes for likes, _ in most_liked()}) < len(most_liked()), "there are ties"


@pytest.mark.parametrize("seed", range(5))
def test_the_newest_of_reordered_projections_stays(
    plaza: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(redis_rankings, "_MAX_POSTS_PER_CALL", 7)
    histories = {post_id: [rng.randint(0, 9) for _ in range(8)] for post_id in range(1, 9)}
    sent = [
        PostLikes(post_id, likes, version)
        for post_id, history in histories.items()
        for version, likes in enumerate(history, 1)
    ]
    sent += rng.choices(sent, k=40)
    rng.shuffle(sent)
    while sent:
        size = rng.randint(1, 9)
        redis_rankings.project_likes(sent[:size])
        del sent[:size]
    newest = [(history[-1], post_id) for post_id, history in histories.items() if history[-1]]
    assert in_redis() == sorted(newest, reverse=True)


def test_a_late_projection_does_not_replace_a_newer_one(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(post(1), post(2))
    late: list[Any] = []
    project = redis_rankings.project_likes
    with monkeypatch.context() as patch:
        patch.setattr(redis_rankings, "project_likes", late.append)
        persist.save([like(post(1), actor) for actor in range(1, 6)])
    persist.save([like(post(1), actor, on=False, at=1) for actor in range(1, 5)])
    persist.save([like(post(2), actor) for actor in (1, 2)])
    for posts in late:
        project(posts)
    assert in_redis() == [(2, 2), (1, 1)]


def test_a_post_that_left_the_ranking_returns_with_a_newer_version(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_rankings, "MAX_RANKED", 3)
    redis_rankings.project_likes([PostLikes(n, n, 1) for n in range(1, 5)])
    assert in_redis() == [(4, 4), (3, 3), (2, 2)]
    redis_rankings.project_likes([PostLikes(1, 9, 2)])
    assert in_redis() == [(9, 1), (4, 4), (3, 3)]
    redis_rankings.project_likes([PostLikes(2, 2, 1)])
    assert in_redis() == [(9, 1), (4, 4), (3, 3)], (
        "the projection is accepted, but the ranking is full"
    )
    redis_rankings.project_likes([PostLikes(1, 0, 3), PostLikes(2, 2, 1)])
    assert in_redis() == [(4, 4), (3, 3), (2, 2)]
    redis_rankings.project_likes([PostLikes(1, 9, 2)])
    assert in_redis() == [(4, 4), (3, 3), (2, 2)], "an old version is refused"


def test_old_versions_are_dropped_except_those_of_ranked_posts(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_rankings, "MAX_RANKED", 2)
    monkeypatch.setattr(redis_rankings, "MAX_VERSIONS", 4)
    versions, updated = redis_rankings.version_keys()
    redis_rankings.project_likes([PostLikes(n, 1_000 - n, 5) for n in range(1, 21)])
    assert redis.execute("HLEN", versions) == 20, "recent versions stay"
    for member in redis.execute("ZRANGE", updated, 0, -1):
        redis.execute("ZADD", updated, 1, member)  # long ago
    redis_rankings.project_likes([PostLikes(n, 5, 5) for n in range(21, 25)])
    assert redis.execute("HLEN", versions) == redis.execute("ZCARD", updated) == 6
    assert {int(m) for m in redis.execute("HKEYS", versions)} == {1, 2, 21, 22, 23, 24}
    redis_rankings.project_likes([PostLikes(1, 7, 4), PostLikes(2, 7, 4)])
    assert in_redis() == [(999, 1), (998, 2)], "old versions of ranked posts are refused"


def test_one_call_drops_a_bounded_number_of_versions(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the bound, dropping 480,000 old versions blocks Redis for 1.3 s."""
    monkeypatch.setattr(redis_rankings, "MAX_RANKED", 2)
    monkeypatch.setattr(redis_rankings, "MAX_VERSIONS", 4)
    monkeypatch.setattr(redis_rankings, "_MAX_VERSIONS_DROPPED", 10)
    versions, updated = redis_rankings.version_keys()
    redis_rankings.project_likes([PostLikes(n, 1_000 - n, 5) for n in range(1, 101)])
    for member in redis.execute("ZRANGE", updated, 0, -1):
        redis.execute("ZADD", updated, 1, member)
    left = []
    for n in range(101, 121):
        redis_rankings.project_likes([PostLikes(n, 1, 5)])
        left.append(redis.execute("HLEN", versions))
    assert left[0] == 100 + 1 - (10 + 1) + 2, "11 were checked, 2 of them are ranked"
    assert all(before - after <= 11 for before, after in pairwise(left))
    assert left[-1] <= 4 + 20, "only recent versions are left"


def test_a_redis_emptied_during_a_refresh_has_no_incomplete_ranking(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(*map(post, range(1, 6)))
    persist.save([like(post(n), actor) for n in range(1, 6) for actor in range(1, n + 1)])
    mark = redis_rankings.mark_ranking_complete

    def lose_then_mark(*args: Any) -> None:
        redis.execute("FLUSHALL")
        mark(*args)

    monkeypatch.setattr(reaction_rankings, "mark_ranking_complete", lose_then_mark)
    post_rankings.refresh_rankings()
    refuse_mysql(monkeypatch)
    assert ranked() == most_liked()


@pytest.mark.parametrize("lost_after", [1, 2])
def test_a_ranking_that_lost_a_part_is_not_complete(
    plaza: World, monkeypatch: pytest.MonkeyPatch, lost_after: int
) -> None:
    monkeypatch.setattr(redis_rankings, "_MAX_POSTS_PER_CALL", 2)
    calls = redis_rankings.full_projection([PostLikes(n, n, 1) for n in range(1, 7)], 7)
    assert len(calls) == 3
    redis.run_all(calls[:lost_after])
    redis.execute("FLUSHALL")
    redis.run_all(calls[lost_after:])
    assert redis_rankings.read_ranking("all", None, 10) is None
    redis.run_all(redis_rankings.full_projection([PostLikes(n, n, 1) for n in range(1, 7)], 8))
    assert redis_rankings.read_ranking("all", None, 1) == [PostRank(6, 6)]


def test_a_queued_acknowledgement_updates_the_ranking_later(plaza: World, redis_away: Away) -> None:
    plaza.add(post(1))
    with redis_away():
        persist.save([like(post(1), actor) for actor in (1, 2)])
    assert in_redis() == []
    plaza.queues.drain()
    assert in_redis() == [(2, 1)]


# ---------------------------------------------------------------- repairs


def test_a_refresh_restores_a_lost_ranking(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    plaza.add(*map(post, range(1, 8)))
    persist.save([like(post(n), actor) for n in range(1, 6) for actor in range(1, n + 1)])
    post_rankings.refresh_rankings()
    redis.execute("FLUSHALL")
    persist.save([like(post(6), 1)])
    assert ranked() == most_liked(), "from MySQL until the ranking is complete"
    post_rankings.refresh_rankings()
    refuse_mysql(monkeypatch)
    assert ranked() == most_liked()
    assert in_redis() == most_liked()


def test_a_refresh_repairs_lost_projections(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    plaza.add(*map(post, range(1, 8)))
    persist.save([like(post(n), actor) for n in range(1, 6) for actor in range(1, n + 1)])
    with monkeypatch.context() as patch:
        patch.setattr(redis_rankings, "project_likes", lambda posts: None)
        persist.save([like(post(5), actor, on=False, at=1) for actor in range(1, 6)])
        persist.save([like(post(4), actor, on=False, at=1) for actor in range(1, 4)])
        persist.save([like(post(7), actor) for actor in range(1, 9)])
    assert in_redis() != most_liked()
    post_rankings.refresh_rankings()
    assert in_redis() == most_liked() == [(8, 7), (3, 3), (2, 2), (1, 4), (1, 1)]


ALL, VERSIONS = redis_rankings.ranking_key("all"), redis_rankings.version_keys()[0]
MEMBER_4, MEMBER_99 = f"{4:019d}", f"{99:019d}"
AHEAD = TOMBSTONE_VERSION - 1
DAMAGES: dict[str, list[tuple[Any, ...]]] = {
    "a post has too many likes": [("ZADD", ALL, 50, MEMBER_4)],
    "a post is missing": [("ZREM", ALL, MEMBER_4)],
    "a post is missing, and its version is ahead": [
        ("ZREM", ALL, MEMBER_4),
        ("HSET", VERSIONS, MEMBER_4, AHEAD),
    ],
    "the version of a wrong number is ahead": [
        ("ZADD", ALL, 50, MEMBER_4),
        ("HSET", VERSIONS, MEMBER_4, AHEAD),
    ],
    "a post is ranked that no one liked": [("ZADD", ALL, 50, f"{7:019d}")],
    "a post is ranked that does not exist": [
        ("ZADD", ALL, 50, MEMBER_99),
        ("HSET", VERSIONS, MEMBER_99, AHEAD),
    ],
    "the week has too many likes": [("ZADD", redis_rankings.ranking_key("week"), 50, MEMBER_4)],
    "the week is of the future": [
        ("ZADD", redis_rankings.ranking_key("week"), 50, MEMBER_4),
        ("SET", redis_rankings.built_at_key("week"), NOW_US + HOUR_US),
    ],
    "the day lacks a post": [("ZREM", redis_rankings.ranking_key("day"), MEMBER_4)],
}


def read_all() -> list[list[tuple[int, int]]]:
    clear_caches()
    return [in_redis(), *(ranked(window) for window in ("all", "week", "day"))]


@pytest.mark.parametrize("name", DAMAGES)
def test_a_refresh_repairs_damage(plaza: World, name: str) -> None:
    """Rankings are no part of the reconciliation: each refresh compares them as a whole."""
    plaza.add(*map(post, range(1, 8)))
    persist.save([like(post(n), actor) for n in range(1, 6) for actor in range(1, n + 1)])
    like_roll_up.roll_up_likes()
    post_rankings.refresh_rankings()
    right = read_all()
    redis.pipeline(DAMAGES[name])
    assert read_all() != right
    post_rankings.refresh_rankings()
    assert read_all() == right
    persist.save([like(post(4), 9)])
    assert in_redis() == most_liked(), "later likes are ranked"


def test_a_refresh_fills_the_tail_from_mysql(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (redis_rankings, post_rankings):
        monkeypatch.setattr(module, "MAX_RANKED", 3)
    plaza.add(*map(post, range(1, 7)))
    persist.save([like(post(n), actor) for n in range(1, 7) for actor in range(1, n + 1)])
    persist.save([like(post(n), actor, on=False, at=1) for n in (5, 6) for actor in range(1, 7)])
    assert in_redis() == [(4, 4)], "Redis does not have the next posts"
    post_rankings.refresh_rankings()
    assert in_redis() == most_liked(3) == [(4, 4), (3, 3), (2, 2)]


@pytest.mark.parametrize("seed", range(3))
def test_a_refresh_does_not_undo_concurrent_consumers(
    plaza: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Given a batch that is stored between the reads and the projection of a refresh."""
    rng = random.Random(seed)
    plaza.add(*map(post, range(1, 11)))
    events = [
        like(post(n), actor, on=rng.random() < 0.7, at=at)
        for at, n, actor in [(k, rng.randint(1, 10), rng.randint(1, 5)) for k in range(300)]
    ]
    is_saving: list[Any] = []
    project_likes = redis_rankings.project_likes

    def save_and_project(posts: Any) -> None:
        if not is_saving and events:
            is_saving.append(1)
            persist.save([events.pop(0) for _ in range(min(10, len(events)))])
            is_saving.clear()
        project_likes(posts)

    monkeypatch.setattr(reaction_rankings, "project_likes", save_and_project)
    while events:
        post_rankings.refresh_rankings()
        assert in_redis() == most_liked()


def test_a_deleted_post_leaves_the_ranking_for_good(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(*map(post, range(1, 6)), author_id=7)
    persist.save([like(post(n), actor) for n in range(1, 6) for actor in range(1, n + 1)])
    post_rankings.refresh_rankings()
    assert ask("DELETE", "/posts/5", user=7).status == 204
    assert ask("DELETE", "/posts/3", user=7).status == 204
    page = post_rankings.list_most_liked("all", None, 2, None)
    assert [item.post.text.id for item in page.posts] == [4, 2], "the page is full"
    post_rankings.refresh_rankings()
    assert in_redis() == [(4, 4), (2, 2), (1, 1)]
    persist.save([like(post(5), 9)])
    assert in_redis() == [(4, 4), (2, 2), (1, 1)]


def test_a_refresh_takes_five_statements_for_any_number_of_posts(plaza: World) -> None:
    refresh.read()  # of this process, once in 2 s
    costs = []
    for first, count in ((1, 5), (100, 50), (1_000, 500)):
        add_liked(dict.fromkeys(range(first, first + count), first))
        redis_rankings.project_likes([PostLikes(10**6 + n, 1, 1) for n in range(first)])
        before = statements()
        post_rankings.refresh_rankings()
        costs.append(statements() - before - 1)
    assert costs == [5, 5, 5]


# ---------------------------------------------------------------- windows


def random_events(rng: random.Random, count: int) -> list[ReactionEvent]:
    return [
        like(
            post(rng.randint(1, 12)),
            rng.randint(1, 5),
            on=rng.random() < 0.65,
            at=-rng.randint(0, 9 * 24) * HOUR_US - rng.randint(-5, 5) * HOUR_US // 10,
            provisional=rng.random() < 0.2,
        )
        for _ in range(count)
    ]


def this_hour() -> int:
    return time.time_ns() // 1000 // HOUR_US


@pytest.mark.parametrize("seed", range(5))
def test_windows_equal_a_query_of_the_log(
    plaza: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    plaza.add(*map(post, range(1, 13)))
    compared = 0
    for _ in range(5):
        events = random_events(rng, 80)
        persist.save(events[:50])
        like_roll_up.roll_up_likes()
        persist.save(events[30:])
        like_roll_up.roll_up_likes()
        hour = this_hour()
        post_rankings.refresh_rankings()
        for window, hours in (("day", 24), ("week", 168)):
            expected = window_in_log(hour - hours + 1, hour)
            assert ranked(window, limit=3) == expected  # type: ignore[arg-type]
            with monkeypatch.context() as patch:
                patch.setattr(reaction_rankings, "read_ranking", lambda *args: None)
                assert ranked(window, limit=3) == expected, "from MySQL"  # type: ignore[arg-type]
            compared += len(expected)
    assert compared > 20  # the number of future events depends on the minute of the hour


def test_a_window_is_its_whole_hours_and_the_current_hour(plaza: World) -> None:
    plaza.add(*map(post, range(1, 6)))
    begin = early_in_an_hour() * HOUR_US - NOW_US
    at = {1: 0, 2: -23 * HOUR_US, 3: -23 * HOUR_US - 1, 4: -167 * HOUR_US, 5: -167 * HOUR_US - 1}
    persist.save([like(post(n), 1, at=begin + us) for n, us in at.items()])
    like_roll_up.roll_up_likes()
    post_rankings.refresh_rankings()
    assert ranked("day") == [(1, 2), (1, 1)]
    assert ranked("week") == [(1, 4), (1, 3), (1, 2), (1, 1)]
    assert len(ranked("all")) == 5


def test_an_older_window_does_not_replace_a_newer_one(plaza: World) -> None:
    assert redis_rankings.swap_ranking("day", [PostRank(3, 1)], 20)
    assert not redis_rankings.swap_ranking("day", [PostRank(9, 2)], 10)
    assert redis_rankings.read_ranking("day", None, 10) == [PostRank(3, 1)]
    assert redis_rankings.swap_ranking("day", [], 20), "equally new"
    assert redis_rankings.read_ranking("day", None, 10) == []


def test_a_reader_gets_a_complete_window_during_swaps(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rankings = [
        [PostRank(9, n) for n in range(100, 0, -1)],
        [PostRank(1, n) for n in range(500, 400, -1)],
    ]
    redis_rankings.swap_ranking("week", rankings[0], 0)
    results, completed = [], threading.Event()

    def read() -> None:
        while not completed.is_set():
            results.append(redis_rankings.read_ranking("week", None, 100))

    with own_connections(monkeypatch):
        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for n in range(400):
            redis_rankings.swap_ranking("week", rankings[n % 2], n)
        completed.set()
        for reader in readers:
            reader.join()
    assert len(results) > 100
    assert all(ranking in rankings for ranking in results)


# ---------------------------------------------------------------- pages


@pytest.mark.parametrize("source", ["Redis", "MySQL"])
def test_the_first_1000_posts_are_listed_once_each(
    plaza: World, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    """Given posts most of which share their number of likes with hundreds of others."""
    rng = random.Random(1)
    likes = {post_id: rng.choice((1, 2, 3, 50)) for post_id in rng.sample(range(1, 2**63), 1_700)}
    add_liked(likes)
    if source == "Redis":
        post_rankings.refresh_rankings()
        refuse_mysql(monkeypatch)
    result = ranked(limit=97)
    assert len(result) == len(set(result)) == 1_000
    assert (
        result
        == most_liked(1_000)
        == sorted(((n, p) for p, n in likes.items()), reverse=True)[:1_000]
    )


def test_the_route_returns_posts_with_their_score(plaza: World) -> None:
    plaza.add(post(1), post(2), post(3))
    for actor in (7, 8):
        react.react(LIKE, post(2), actor, True)
    react.react(LIKE, post(1), 7, True)
    plaza.queues.drain()
    like_roll_up.roll_up_likes()
    post_rankings.refresh_rankings()
    react.react(LIKE, post(1), 9, True)  # not stored yet
    for path in ("/posts/ranking?limit=1", "/posts/ranking?limit=1&window=day"):
        first = ask("GET", path, user=7, folder="api/recommendations")
        assert first.status == 200, first.body
        [item] = first.body["items"]
        assert (item["id"], item["score"], item["likes"]) == ("2", 2, 2)
        assert item["mine"] == {"liked": True, "collected": False}
        path += f"&cursor={first.body['next']}"
        second = ask("GET", path, user=None, folder="api/recommendations")
        [item] = second.body["items"]
        assert (item["id"], item["score"], item["likes"], item["mine"]) == ("1", 1, 2, None)
        assert second.body["next"] is None


@pytest.mark.parametrize(
    "query", ["window=year", "limit=0", "limit=101", "cursor=x", "cursor=WzFd", "cursor=WyIxIiwxXQ"]
)
def test_an_invalid_query_is_a_400(plaza: World, query: str) -> None:
    reply = ask("GET", f"/posts/ranking?{query}", folder="api/recommendations")
    assert (reply.status, reply.slug) == (400, "invalid-request")


@pytest.mark.parametrize("likes", [-(2**63) + 1, -1, 0, 2**53 + 1, 2**63 - 1])
@pytest.mark.parametrize("post_id", [-(2**63) + 1, 0, 2**63 - 1])
@pytest.mark.parametrize("complete", [True, False])
def test_a_forged_cursor_is_a_position_like_any_other(
    plaza: World, likes: int, post_id: int, complete: bool
) -> None:
    plaza.add(post(1))
    persist.save([like(post(1), 1)])
    if complete:
        post_rankings.refresh_rankings()
    for window in ("all", "day"):
        page = post_rankings.list_most_liked(window, PostRank(likes, post_id), 10, None)
        expected = [1] if window == "all" and (likes, post_id) > (1, 1) else []
        assert [item.post.text.id for item in page.posts] == expected


def test_a_page_of_any_length_takes_the_same_work(plaza: World) -> None:
    add_liked(dict.fromkeys(range(1, 201), 5))
    post_rankings.refresh_rankings()
    ranked()
    work = []
    for limit in (1, 10, 100):
        post_rankings.list_most_liked("all", None, limit, 7)
        with counting_work() as counted:
            assert len(post_rankings.list_most_liked("all", None, limit, 7).posts) == limit
        work.append((counted.round_trips, counted.statements))
    assert len(set(work)) == 1, work
    assert work[0][0] <= 6, "one for the ranking, five for the posts"


# ---------------------------------------------------------------- outages


def test_without_redis_rankings_come_from_mysql_within_the_budget(
    plaza: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(post(1), post(2))
    persist.save([like(post(2), 1)])
    like_roll_up.roll_up_likes()
    post_rankings.refresh_rankings()
    monkeypatch.setattr(post_rankings, "_fallback_budget", TokenBucket(0.001, 2))
    with redis_away():
        assert ranked("all") == [(1, 2)]
        assert ranked("day") == [(1, 2)]
        with pytest.raises(RedisDown):
            ranked("all")


# ---------------------------------------------------------------- hot rankings


def test_a_hot_page_of_a_ranking_is_read_from_memory_for_a_second(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_rankings._hot_pages, "_hot_per_s", 2)
    reaction_rankings.swap_ranking("day", [PostRank(5, 11)], 1)
    pages = [post_rankings._read("day", None, 3) for _ in range(2)]
    reaction_rankings.swap_ranking("day", [PostRank(6, 12)], 2)
    assert [*pages, post_rankings._read("day", None, 3)] == [[PostRank(5, 11)]] * 3
    assert post_rankings._read("day", None, 4) == [PostRank(6, 12)], "another page"
    post_rankings._hot_pages.clear()
    assert post_rankings._read("day", None, 3) == [PostRank(6, 12)]


def test_a_ranking_that_is_not_complete_is_not_kept_in_memory(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_rankings._hot_pages, "_hot_per_s", 1)
    assert post_rankings._read("day", None, 3) == []
    reaction_rankings.swap_ranking("day", [PostRank(5, 11)], 1)
    assert post_rankings._read("day", None, 3) == [PostRank(5, 11)]
