"""Recommended reviews: order, one rebuild for many readers, complete lists only."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from plaza.core.reactions import LIKE, persist, react
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.settings import settings
from plaza.social.recommendations import (
    RebuildLists,
    like_roll_up,
    mysql_recommendations,
    recommend,
    redis_store,
)
from plaza.social.recommendations.model import RecommendedCursor, ReviewList
from plaza.social.recommendations.queues import RECOMMENDATIONS
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.content_api import as_another_process, ask, counting_work
from tests.support.keyspace import find_keys
from tests.support.likes_log import add_reviews, best_reviews, like, review, review_likes
from tests.support.plaza import World

SHOP = 5


@pytest.fixture
def shop(plaza: World) -> World:
    """One shop."""
    mysql.write("INSERT INTO shop (id, name) VALUES (%s, 'Noodles')", (SHOP,))
    return plaza


def recommended(limit: int = 100, actor_id: int | None = None) -> list[int]:
    page = recommend.recommend(SHOP, RecommendedCursor(0, 0), limit, actor_id)
    return [view.text.id for view in page.reviews]


def fresh_ttl_ms() -> int:
    return int(redis.execute("PTTL", redis_store.keys_of(SHOP)[1]))


def expire_fresh_key() -> None:
    """Let the mark of freshness expire."""
    redis.execute("DEL", redis_store.keys_of(SHOP)[1])


def count_requests(world: World) -> int:
    return len(world.queues.messages[RECOMMENDATIONS])


def roll_up_and_refresh(world: World) -> None:
    like_roll_up.roll_up_likes()
    recommend.refresh_recommendations()
    world.queues.drain()


@pytest.fixture
def slow_machine(monkeypatch: pytest.MonkeyPatch, set_up: Callable[..., None]) -> None:
    """Allow for a test that takes longer than 2 s, and for slow replies of Redis."""
    set_up(redis_timeout_s=30)
    monkeypatch.setattr(redis_store, "REBUILD_REQUEST_TTL_MS", 600_000)


def swap(ids: list[int]) -> None:
    rebuild = redis_store.begin_rebuilds([SHOP])
    assert redis_store.replace_lists({SHOP: ReviewList(ids, None)}, rebuild) == [SHOP]


# ---------------------------------------------------------------- order


@pytest.mark.parametrize("seed", range(5))
def test_the_list_has_the_order_of_mysql_after_a_refresh(shop: World, seed: int) -> None:
    rng = random.Random(seed)
    ids = rng.sample(range(1, 2**62), 30)
    add_reviews(SHOP, *ids)
    add_reviews(6, 1)
    for _ in range(4):
        for _ in range(40):
            react.react(LIKE, review(rng.choice(ids)), rng.randint(1, 6), rng.random() < 0.7)
        shop.queues.drain()
        roll_up_and_refresh(shop)
        assert recommended() == best_reviews(SHOP)
    assert len(set(review_likes().values())) > 2, "there are ties and differences"


def test_at_most_100_reviews_are_recommended(shop: World) -> None:
    add_reviews(SHOP, *range(1, 121))
    persist.save([like(review(3), 1)])
    roll_up_and_refresh(shop)
    assert recommended() == [3, *range(120, 21, -1)] == best_reviews(SHOP)


def test_pages_have_no_gaps_and_no_repeats(shop: World) -> None:
    add_reviews(SHOP, *range(1, 41))
    persist.save([like(review(n % 7 + 1), n) for n in range(1, 30)])
    roll_up_and_refresh(shop)
    path, items = f"/shops/{SHOP}/reviews/recommended?limit=7", []
    reply = ask("GET", path, folder="api/recommendations")
    while True:
        assert reply.status == 200
        items += [int(item["id"]) for item in reply.body["items"]]
        if reply.body["next"] is None:
            break
        reply = ask("GET", f"{path}&cursor={reply.body['next']}", folder="api/recommendations")
    assert items == best_reviews(SHOP)


@pytest.mark.parametrize(
    "cursor", ["WzEwMSwwXQ", "Wy0xLDBd", "WzEsLTFd", "W10", "WzFd", "nonsense", "WyIxIiwwXQ"]
)
def test_a_forged_cursor_is_a_400(shop: World, cursor: str) -> None:
    path = f"/shops/{SHOP}/reviews/recommended?cursor={cursor}"
    assert ask("GET", path, folder="api/recommendations").status == 400


# ---------------------------------------------------------------- requests for rebuilds


@contextmanager
def own_connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each thread its own connection, as each Lambda process has."""
    local, clients, url = threading.local(), [], settings().redis_url

    def client() -> Any:
        if not hasattr(local, "client"):
            local.client = connections.connect(url, cluster=settings().redis_cluster)
            clients.append(local.client)
        return local.client

    with monkeypatch.context() as patch:
        patch.setattr(connections, "client", client)
        yield
    for each in clients:
        each.close()


@pytest.mark.usefixtures("slow_machine")
def test_200_readers_of_a_missing_list_request_one_rebuild(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(SHOP, 1, 2, 3)
    recommended()  # caches the shop and the texts in this process
    redis.execute("FLUSHALL")
    shop.queues.messages.clear()
    start, result = threading.Barrier(200, timeout=60), []

    def read() -> None:
        start.wait()
        result.append(recommended())

    with own_connections(monkeypatch):
        readers = [threading.Thread(target=read) for _ in range(200)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert result == [[]] * 200, "empty until the rebuild"
    assert count_requests(shop) == 1
    shop.queues.drain()
    assert recommended() == [3, 2, 1]
    assert count_requests(shop) == 0


@pytest.mark.usefixtures("slow_machine")
def test_readers_get_the_old_list_until_it_is_rebuilt(shop: World) -> None:
    add_reviews(SHOP, 1, 2)
    recommended()
    shop.queues.drain()
    add_reviews(SHOP, 3)
    expire_fresh_key()
    assert [recommended() for _ in range(20)] == [[2, 1]] * 20
    assert count_requests(shop) == 1
    shop.queues.drain()
    recommend._hot_lists.clear()  # the list was read 20 times, and is in memory for 1 s
    assert recommended() == [3, 2, 1]


def test_a_lost_rebuild_is_requested_again_after_2_s(shop: World) -> None:
    add_reviews(SHOP, 1)
    recommended()
    shop.queues.take(RECOMMENDATIONS)  # the message is lost
    assert 0 < fresh_ttl_ms() <= 2_000
    recommended()
    assert count_requests(shop) == 0, "within 2 s"
    expire_fresh_key()
    recommended()
    assert count_requests(shop) == 1


def test_a_rebuilt_list_is_fresh_for_an_hour(shop: World) -> None:
    add_reviews(SHOP, 1)
    recommended()
    shop.queues.drain()
    assert 3_200_000 < fresh_ttl_ms() < 4_000_000
    assert recommended() == [1]
    assert count_requests(shop) == 0


@pytest.mark.usefixtures("slow_machine")
def test_an_empty_list_is_rebuilt_once_an_hour(shop: World) -> None:
    for _ in range(20):
        assert recommended() == []
    assert count_requests(shop) == 1
    shop.queues.drain()
    assert 3_000_000 < fresh_ttl_ms() < 4_000_000
    for _ in range(20):
        assert recommended() == []
    assert count_requests(shop) == 0


def test_a_missing_shop_leaves_no_list_and_no_request(plaza: World) -> None:
    reply = ask("GET", "/shops/404/reviews/recommended", folder="api/recommendations")
    assert (reply.status, reply.slug) == (404, "not-found")
    assert count_requests(plaza) == 0
    assert find_keys("*best_reviews*") == []


def test_lists_are_read_without_the_queue(shop: World) -> None:
    add_reviews(SHOP, 1)
    swap([1])
    expire_fresh_key()
    shop.queues.away = True
    assert recommended() == [1]
    shop.queues.away = False
    expire_fresh_key()
    recommended()
    assert count_requests(shop) == 1


# ---------------------------------------------------------------- replacing


def test_a_reader_gets_a_complete_list_during_swaps(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = [list(range(1, 101)), list(range(1_001, 1_101)), []]
    swap(lists[0])
    results, completed = [], threading.Event()

    def read() -> None:
        while not completed.is_set():
            results.append(redis_store.read_list(SHOP).review_ids)

    with own_connections(monkeypatch):
        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for n in range(600):
            swap(lists[n % 3])
        completed.set()
        for reader in readers:
            reader.join()
    assert len(results) > 100
    assert all(review_ids in lists for review_ids in results)


def test_a_late_rebuild_does_not_restore_an_old_list(shop: World) -> None:
    add_reviews(SHOP, 1, 2)
    persist.save([like(review(1), 1)])
    like_roll_up.roll_up_likes()
    rebuild = redis_store.begin_rebuilds([SHOP])
    old = mysql_recommendations.read_best_reviews([SHOP])
    persist.save([like(review(2), actor) for actor in (1, 2)])
    roll_up_and_refresh(shop)
    assert redis_store.replace_lists(old, rebuild) == []
    assert recommended() == [2, 1]


def test_a_late_rebuild_is_refused_without_new_likes_too(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a review that another rebuild listed after the late one read MySQL: same watermark."""
    add_reviews(SHOP, 1)
    read_best_reviews = mysql_recommendations.read_best_reviews

    def read_then_rebuild(shop_ids: Sequence[int]) -> dict[int, ReviewList]:
        result = read_best_reviews(shop_ids)
        with monkeypatch.context() as patch:
            patch.setattr(mysql_recommendations, "read_best_reviews", read_best_reviews)
            add_reviews(SHOP, 2)
            recommend.rebuild_recommendations([RebuildLists([SHOP])])
        return result

    monkeypatch.setattr(mysql_recommendations, "read_best_reviews", read_then_rebuild)
    recommend.rebuild_recommendations([RebuildLists([SHOP])])
    assert recommended() == [2, 1]


def test_a_refused_rebuild_leaves_the_list_stale(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a later rebuild that may have crashed, the list must stay marked as stale."""
    add_reviews(SHOP, 1)
    persist.save([like(review(1), 1)])
    like_roll_up.roll_up_likes()
    read_best_reviews = mysql_recommendations.read_best_reviews

    def read_while_another_begins(shop_ids: Sequence[int]) -> dict[int, ReviewList]:
        redis_store.begin_rebuilds(shop_ids)
        return read_best_reviews(shop_ids)

    with monkeypatch.context() as patch:
        patch.setattr(mysql_recommendations, "read_best_reviews", read_while_another_begins)
        recommend.rebuild_recommendations([RebuildLists([SHOP])])
    assert recommend.refresh_recommendations() == 1


def test_a_list_stays_stale_until_it_is_rebuilt(shop: World) -> None:
    add_reviews(SHOP, 1, 2)
    persist.save([like(review(1), 1)])
    like_roll_up.roll_up_likes()
    for _ in range(3):
        assert recommend.refresh_recommendations() == 1
        shop.queues.take(RECOMMENDATIONS)  # lost
    assert recommend.refresh_recommendations() == 1
    shop.queues.drain()
    assert recommend.refresh_recommendations() == 0
    assert recommended() == [1, 2]


def test_likes_during_a_rebuild_keep_the_list_stale(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(SHOP, 1, 2)
    persist.save([like(review(1), 1)])
    like_roll_up.roll_up_likes()
    replace_lists = redis_store.replace_lists

    def like_then_replace(*args: Any) -> list[int]:
        persist.save([like(review(2), actor) for actor in (1, 2)])
        like_roll_up.roll_up_likes()
        return replace_lists(*args)

    with monkeypatch.context() as patch:
        patch.setattr(redis_store, "replace_lists", like_then_replace)
        recommend.rebuild_recommendations([RebuildLists([SHOP])])
    assert recommended() == [1, 2]
    assert recommend.refresh_recommendations() == 1
    shop.queues.drain()
    assert recommended() == [2, 1]


def test_a_refresh_queues_nothing_above_the_maximum_backlog(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(SHOP, 1)
    persist.save([like(review(1), 1)])
    like_roll_up.roll_up_likes()
    monkeypatch.setattr(recommend, "_MAX_BACKLOG", 2)
    shop.queues.messages[RECOMMENDATIONS] = ["{}"] * 3
    assert recommend.refresh_recommendations() == 0
    assert count_requests(shop) == 3


def test_a_refresh_queues_all_stale_shops_page_by_page(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommend, "_SHOPS_PER_PAGE", 25)
    mysql.write(
        "INSERT INTO stale_list (shop_id, seq) VALUES "
        + ",".join(f"({n}, 1)" for n in range(1, 61))
    )
    assert recommend.refresh_recommendations() == 60
    sent = [RECOMMENDATIONS.decode(str(body)) for body in shop.queues.messages[RECOMMENDATIONS]]
    assert sorted(shop_id for rebuild in sent for shop_id in rebuild.shop_ids) == [*range(1, 61)]
    shop.queues.drain()
    assert recommend.refresh_recommendations() == 0


def test_a_batch_of_100_shops_costs_as_much_as_one(shop: World) -> None:
    swap([])  # loads the script
    work = []
    for first, count in ((100, 1), (200, 10), (300, 100)):
        for shop_id in range(first, first + count):
            add_reviews(shop_id, shop_id)
            mysql.write("INSERT INTO stale_list (shop_id, seq) VALUES (%s, 1)", (shop_id,))
        rebuilds = [RebuildLists([shop_id]) for shop_id in range(first, first + count)]
        before = statements()
        with counting_work() as counted:
            recommend.rebuild_recommendations([*rebuilds, *rebuilds])
        work.append((statements() - before - 1, counted.round_trips))
    assert work[1:] == work[:-1], work


# ---------------------------------------------------------------- pages


def test_a_page_without_deleted_reviews_is_full(shop: World) -> None:
    add_reviews(SHOP, *range(1, 11))
    recommended()
    shop.queues.drain()
    for review_id in (10, 8):
        path = f"/reviews/{review_id}"
        assert ask("DELETE", path, user=9_000 + review_id).status == 204
    assert recommended(limit=3) == [9, 7, 6]
    assert recommended() == [9, 7, 6, 5, 4, 3, 2, 1]
    expire_fresh_key()
    recommended()
    shop.queues.drain()
    assert redis_store.read_list(SHOP).review_ids == [9, 7, 6, 5, 4, 3, 2, 1]


def test_likes_and_mine_are_newer_than_the_list(shop: World) -> None:
    add_reviews(SHOP, 1, 2)
    recommended()
    shop.queues.drain()
    react.react(LIKE, review(1), 7, True)
    path = f"/shops/{SHOP}/reviews/recommended"
    items = ask("GET", path, user=7, folder="api/recommendations").body["items"]
    assert [(i["id"], i["likes"], i["mine"]) for i in items] == [
        ("2", 0, {"liked": False, "collected": False}),
        ("1", 1, {"liked": True, "collected": False}),
    ]
    items = ask("GET", path, user=None, folder="api/recommendations").body["items"]
    assert [(i["id"], i["likes"], i["mine"], i["shop_id"]) for i in items] == [
        ("2", 0, None, "5"),
        ("1", 1, None, "5"),
    ]


def test_a_page_of_any_length_takes_the_same_round_trips(shop: World) -> None:
    add_reviews(SHOP, *range(1, 101))
    recommended()
    shop.queues.drain()
    costs = []
    for limit in (1, 10, 100):
        recommended(limit, actor_id=7)
        as_another_process()
        with counting_work() as work:
            assert len(recommended(limit, actor_id=7)) == limit
        costs.append((work.round_trips, work.statements))
    assert len(set(costs)) == 1, costs
    assert costs[0][0] <= 5, "the shop, the list, the texts, the reactions, the authors"


# ---------------------------------------------------------------- outages


def test_without_redis_lists_come_from_mysql_within_the_budget(
    shop: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(SHOP, 1, 2, 3)
    persist.save([like(review(2), 1)])
    roll_up_and_refresh(shop)
    monkeypatch.setattr(recommend, "_fallback_budget", TokenBucket(0.001, 2))
    with redis_away():
        assert recommended() == [2, 3, 1]
        assert recommended() == [2, 3, 1]
        with pytest.raises(RedisDown):
            recommended()
    assert recommended() == [], "not cached"
    shop.queues.drain()
    assert recommended() == [2, 3, 1]


def test_a_rebuild_without_redis_is_retried(shop: World, redis_away: Away) -> None:
    add_reviews(SHOP, 1)
    persist.save([like(review(1), 1)])
    like_roll_up.roll_up_likes()
    with redis_away(), pytest.raises(RedisDown):
        recommend.rebuild_recommendations([RebuildLists([SHOP])])
    assert recommend.refresh_recommendations() == 1, "the list is still stale"


# ---------------------------------------------------------------- hot lists


def test_a_hot_list_is_read_from_memory_by_all_callers(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(SHOP, 1, 2)
    swap([1, 2])
    monkeypatch.setattr(recommend._hot_lists, "_hot_per_s", 3)
    for _ in range(3):
        assert recommended() == [1, 2]
    swap([2, 1])
    assert (recommended(), recommended(actor_id=7)) == ([1, 2], [1, 2])
    recommend._hot_lists.clear()
    assert recommended() == [2, 1]


def test_a_hot_list_that_is_not_built_is_requested_once(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommend._hot_lists, "_hot_per_s", 1)
    for _ in range(5):
        assert recommended() == []
    assert count_requests(shop) == 1


def test_a_hot_list_stays_in_memory_while_redis_is_away(
    shop: World, monkeypatch: pytest.MonkeyPatch, redis_away: Away
) -> None:
    swap([1, 2])
    monkeypatch.setattr(recommend._hot_lists, "_hot_per_s", 1)
    listed, _ = recommend._read_list(SHOP)
    with redis_away():
        assert recommend._read_list(SHOP) == (listed, 1)
