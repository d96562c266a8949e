"""Recommended reviews: the right order after quiet, one rebuild for a crowd, whole lists only."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from plaza.infra import mysql, redis
from plaza.infra.redis import RedisDown
from plaza.infra.settings import settings
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import LIKE, persist, react
from plaza.recommendations import (
    RebuildLists,
    mysql_recommendations,
    recommend,
    redis_store,
    vote_roll_up,
)
from plaza.recommendations.model import ReviewList
from plaza.recommendations.queues import RECOMMENDATIONS
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.content_api import as_another_process, ask, counting_work
from tests.support.keyspace import find_keys
from tests.support.likes_log import add_reviews, best_reviews, like, review, votes
from tests.support.plaza import World

SHOP = 5


@pytest.fixture
def shop(plaza: World) -> World:
    """A world with a shop."""
    mysql.write("INSERT INTO shop (id, name) VALUES (%s, 'Noodles')", (SHOP,))
    return plaza


def recommended(limit: int = 100, actor_id: int | None = None) -> list[int]:
    page = recommend.recommend(SHOP, 0, limit, actor_id)
    return [whole.text.id for whole in page.reviews]


def fresh_ttl_ms() -> int:
    return int(redis.execute("PTTL", redis_store.keys_of(SHOP)[1]))


def expire_fresh_key() -> None:
    """As if its time had passed."""
    redis.execute("DEL", redis_store.keys_of(SHOP)[1])


def asked(world: World) -> int:
    return len(world.queues.messages[RECOMMENDATIONS])


def roll_up_and_refresh(world: World) -> None:
    vote_roll_up.roll_up_votes()
    recommend.refresh_recommendations()
    world.queues.drain()


@pytest.fixture
def slow_machine(monkeypatch: pytest.MonkeyPatch, set_up: Callable[..., None]) -> None:
    """What the test does may take longer than two seconds, and Redis may let it wait."""
    set_up(redis_timeout_s=30)
    monkeypatch.setattr(redis_store, "REBUILD_REQUEST_TTL_MS", 600_000)


def swap(ids: list[int]) -> None:
    rebuild = redis_store.begin_rebuilds([SHOP])
    assert redis_store.replace_lists({SHOP: ReviewList(ids, None)}, rebuild) == [SHOP]


# ---------------------------------------------------------------- order


@pytest.mark.parametrize("seed", range(5))
def test_after_quiet_the_order_is_that_of_mysql(shop: World, seed: int) -> None:
    draw = random.Random(seed)
    ids = draw.sample(range(1, 2**62), 30)
    add_reviews(SHOP, *ids)
    add_reviews(6, 1)
    for _ in range(4):
        for _ in range(40):
            react.react(LIKE, review(draw.choice(ids)), draw.randint(1, 6), draw.random() < 0.7)
        shop.queues.drain()
        roll_up_and_refresh(shop)
        assert recommended() == best_reviews(SHOP)
    assert len(set(votes().values())) > 2, "there are ties and differences"


def test_a_hundred_are_recommended_at_most(shop: World) -> None:
    add_reviews(SHOP, *range(1, 121))
    persist.save([like(review(3), 1)])
    roll_up_and_refresh(shop)
    assert recommended() == [3, *range(120, 21, -1)] == best_reviews(SHOP)


def test_pages_follow_each_other_without_holes_and_repeats(shop: World) -> None:
    add_reviews(SHOP, *range(1, 41))
    persist.save([like(review(n % 7 + 1), n) for n in range(1, 30)])
    roll_up_and_refresh(shop)
    path, seen = f"/shops/{SHOP}/reviews/recommended?limit=7", []
    reply = ask("GET", path, folder="api/recommendations")
    while True:
        assert reply.status == 200
        seen += [int(item["id"]) for item in reply.body["items"]]
        if reply.body["next"] is None:
            break
        reply = ask("GET", f"{path}&cursor={reply.body['next']}", folder="api/recommendations")
    assert seen == best_reviews(SHOP)


@pytest.mark.parametrize("cursor", ["WzEwMV0", "Wy0xXQ", "W10", "WzEsMV0", "nonsense", "WyIxIl0"])
def test_a_cursor_that_we_did_not_give_is_bad_input(shop: World, cursor: str) -> None:
    path = f"/shops/{SHOP}/reviews/recommended?cursor={cursor}"
    assert ask("GET", path, folder="api/recommendations").status == 400


# ---------------------------------------------------------------- who asks


@contextmanager
def own_connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each thread has a connection of its own, as each Lambda has."""
    kept, clients, url = threading.local(), [], settings().redis_url

    def client() -> Any:
        if not hasattr(kept, "client"):
            kept.client = redis.connect(url, cluster=settings().redis_cluster)
            clients.append(kept.client)
        return kept.client

    with monkeypatch.context() as patch:
        patch.setattr(redis, "client", client)
        yield
    for each in clients:
        each.close()


@pytest.mark.usefixtures("slow_machine")
def test_two_hundred_cold_readers_cause_one_rebuild(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(SHOP, 1, 2, 3)
    recommended()  # the shop is known to this process, and the texts are
    redis.execute("FLUSHALL")
    shop.queues.messages.clear()
    start, seen = threading.Barrier(200, timeout=60), []

    def read() -> None:
        start.wait()
        seen.append(recommended())

    with own_connections(monkeypatch):
        readers = [threading.Thread(target=read) for _ in range(200)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert seen == [[]] * 200, "empty for a moment"
    assert asked(shop) == 1
    shop.queues.drain()
    assert recommended() == [3, 2, 1]
    assert asked(shop) == 0


@pytest.mark.usefixtures("slow_machine")
def test_readers_take_the_old_list_while_the_first_asks_for_a_new_one(shop: World) -> None:
    add_reviews(SHOP, 1, 2)
    recommended()
    shop.queues.drain()
    add_reviews(SHOP, 3)
    expire_fresh_key()
    assert [recommended() for _ in range(20)] == [[2, 1]] * 20
    assert asked(shop) == 1
    shop.queues.drain()
    assert recommended() == [3, 2, 1]


def test_a_rebuild_that_failed_is_asked_for_again_two_seconds_later(shop: World) -> None:
    add_reviews(SHOP, 1)
    recommended()
    shop.queues.take(RECOMMENDATIONS)  # and nobody does it
    assert 0 < fresh_ttl_ms() <= 2_000
    recommended()
    assert asked(shop) == 0, "not before"
    expire_fresh_key()
    recommended()
    assert asked(shop) == 1


def test_a_good_rebuild_holds_for_an_hour(shop: World) -> None:
    add_reviews(SHOP, 1)
    recommended()
    shop.queues.drain()
    assert 3_200_000 < fresh_ttl_ms() < 4_000_000
    assert recommended() == [1]
    assert asked(shop) == 0


@pytest.mark.usefixtures("slow_machine")
def test_a_shop_without_reviews_is_asked_about_once_an_hour(shop: World) -> None:
    for _ in range(20):
        assert recommended() == []
    assert asked(shop) == 1
    shop.queues.drain()
    assert 3_000_000 < fresh_ttl_ms() < 4_000_000
    for _ in range(20):
        assert recommended() == []
    assert asked(shop) == 0


def test_of_a_shop_that_does_not_exist_nothing_is_made(plaza: World) -> None:
    reply = ask("GET", "/shops/404/reviews/recommended", folder="api/recommendations")
    assert (reply.status, reply.slug) == (404, "not-found")
    assert asked(plaza) == 0
    assert find_keys("*recommended*") == []


def test_a_queue_that_is_away_keeps_nobody_from_reading(shop: World) -> None:
    add_reviews(SHOP, 1)
    swap([1])
    expire_fresh_key()
    shop.queues.away = True
    assert recommended() == [1]
    shop.queues.away = False
    expire_fresh_key()
    recommended()
    assert asked(shop) == 1


# ---------------------------------------------------------------- replacing


def test_a_reader_never_sees_half_a_list(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [list(range(1, 101)), list(range(1_001, 1_101)), []]
    swap(lists[0])
    seen, done = [], threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(redis_store.read_list(SHOP).review_ids)

    with own_connections(monkeypatch):
        readers = [threading.Thread(target=read) for _ in range(4)]
        for reader in readers:
            reader.start()
        for n in range(600):
            swap(lists[n % 3])
        done.set()
        for reader in readers:
            reader.join()
    assert len(seen) > 100
    assert all(found in lists for found in seen)


def test_a_rebuild_that_is_late_does_not_bring_the_old_list_back(shop: World) -> None:
    add_reviews(SHOP, 1, 2)
    persist.save([like(review(1), 1)])
    vote_roll_up.roll_up_votes()
    rebuild = redis_store.begin_rebuilds([SHOP])
    old = mysql_recommendations.read_best_reviews([SHOP])
    persist.save([like(review(2), actor) for actor in (1, 2)])
    roll_up_and_refresh(shop)
    assert redis_store.replace_lists(old, rebuild) == []
    assert recommended() == [2, 1]


def test_a_late_rebuild_loses_also_when_no_vote_moved_in_between(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A review came after it had read MySQL, and another rebuild has listed it: same watermark."""
    add_reviews(SHOP, 1)
    read_best_reviews = mysql_recommendations.read_best_reviews

    def read_then_be_late(shop_ids: Sequence[int]) -> dict[int, ReviewList]:
        found = read_best_reviews(shop_ids)
        with monkeypatch.context() as patch:
            patch.setattr(mysql_recommendations, "read_best_reviews", read_best_reviews)
            add_reviews(SHOP, 2)
            recommend.rebuild_recommendations([RebuildLists([SHOP])])
        return found

    monkeypatch.setattr(mysql_recommendations, "read_best_reviews", read_then_be_late)
    recommend.rebuild_recommendations([RebuildLists([SHOP])])
    assert recommended() == [2, 1]


def test_a_rebuild_that_is_late_leaves_the_list_due(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one began and may have died: what it would have put in place is still owed."""
    add_reviews(SHOP, 1)
    persist.save([like(review(1), 1)])
    vote_roll_up.roll_up_votes()
    read_best_reviews = mysql_recommendations.read_best_reviews

    def read_while_another_begins(shop_ids: Sequence[int]) -> dict[int, ReviewList]:
        redis_store.begin_rebuilds(shop_ids)
        return read_best_reviews(shop_ids)

    with monkeypatch.context() as patch:
        patch.setattr(mysql_recommendations, "read_best_reviews", read_while_another_begins)
        recommend.rebuild_recommendations([RebuildLists([SHOP])])
    assert recommend.refresh_recommendations() == 1


def test_a_list_stays_due_until_its_rebuild_is_done(shop: World) -> None:
    add_reviews(SHOP, 1, 2)
    persist.save([like(review(1), 1)])
    vote_roll_up.roll_up_votes()
    for _ in range(3):
        assert recommend.refresh_recommendations() == 1
        shop.queues.take(RECOMMENDATIONS)  # lost
    assert recommend.refresh_recommendations() == 1
    shop.queues.drain()
    assert recommend.refresh_recommendations() == 0
    assert recommended() == [1, 2]


def test_what_moves_during_a_rebuild_keeps_the_list_due(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(SHOP, 1, 2)
    persist.save([like(review(1), 1)])
    vote_roll_up.roll_up_votes()
    replace_lists = redis_store.replace_lists

    def slowly(*args: Any) -> list[int]:
        persist.save([like(review(2), actor) for actor in (1, 2)])
        vote_roll_up.roll_up_votes()
        return replace_lists(*args)

    with monkeypatch.context() as patch:
        patch.setattr(redis_store, "replace_lists", slowly)
        recommend.rebuild_recommendations([RebuildLists([SHOP])])
    assert recommended() == [1, 2]
    assert recommend.refresh_recommendations() == 1
    shop.queues.drain()
    assert recommended() == [2, 1]


def test_a_refresh_adds_nothing_to_a_queue_that_is_behind(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_reviews(SHOP, 1)
    persist.save([like(review(1), 1)])
    vote_roll_up.roll_up_votes()
    monkeypatch.setattr(recommend, "_MAX_BACKLOG", 2)
    shop.queues.messages[RECOMMENDATIONS] = ["{}"] * 3
    assert recommend.refresh_recommendations() == 0
    assert asked(shop) == 3


def test_all_shops_that_are_due_are_asked_for_a_page_at_a_time(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recommend, "_SHOPS_PER_PAGE", 25)
    mysql.write(
        "INSERT INTO stale_list (shop_id, seq) VALUES "
        + ",".join(f"({n}, 1)" for n in range(1, 61))
    )
    assert recommend.refresh_recommendations() == 60
    sent = [RebuildLists.from_json(body) for body in shop.queues.messages[RECOMMENDATIONS]]
    assert sorted(shop_id for rebuild in sent for shop_id in rebuild.shop_ids) == [*range(1, 61)]
    shop.queues.drain()
    assert recommend.refresh_recommendations() == 0


def test_a_batch_of_shops_takes_as_much_as_one(shop: World) -> None:
    swap([])  # Redis knows the script
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


# ---------------------------------------------------------------- what is shown


def test_a_deleted_review_is_not_shown_and_the_page_is_full(shop: World) -> None:
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


def test_totals_and_mine_are_live_on_top_of_the_list(shop: World) -> None:
    add_reviews(SHOP, 1, 2)
    recommended()
    shop.queues.drain()
    react.react(LIKE, review(1), 7, True)
    path = f"/shops/{SHOP}/reviews/recommended"
    items = ask("GET", path, user=7, folder="api/recommendations").body["items"]
    assert [(i["id"], i["likes"], i["mine"]) for i in items] == [
        ("2", 0, {"liked": False}),
        ("1", 1, {"liked": True}),
    ]
    items = ask("GET", path, user=None, folder="api/recommendations").body["items"]
    assert [(i["id"], i["likes"], i["mine"], i["shop_id"]) for i in items] == [
        ("2", 0, None, "5"),
        ("1", 1, None, "5"),
    ]


def test_a_page_takes_the_same_round_trips_whatever_its_length(shop: World) -> None:
    add_reviews(SHOP, *range(1, 101))
    recommended()
    shop.queues.drain()
    trips = []
    for limit in (1, 10, 100):
        recommended(limit, actor_id=7)
        as_another_process()
        with counting_work() as work:
            assert len(recommended(limit, actor_id=7)) == limit
        trips.append((work.round_trips, work.statements))
    assert len(set(trips)) == 1, trips
    assert trips[0][0] <= 5, "the shop, the list, the texts, the reactions, the authors"


# ---------------------------------------------------------------- outages


def test_without_redis_the_list_comes_from_mysql_so_many_times(
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
    assert recommended() == [], "cold"
    shop.queues.drain()
    assert recommended() == [2, 3, 1]


def test_a_rebuild_without_redis_comes_again(shop: World, redis_away: Away) -> None:
    add_reviews(SHOP, 1)
    persist.save([like(review(1), 1)])
    vote_roll_up.roll_up_votes()
    with redis_away(), pytest.raises(RedisDown):
        recommend.rebuild_recommendations([RebuildLists([SHOP])])
    assert recommend.refresh_recommendations() == 1, "it is due still"
