"""Unknown ids and deleted shops: the responses, and their cost in statements of MySQL."""

from __future__ import annotations

import random
import re
import time
from typing import Any

import pytest

from plaza.commerce.flash_sales import (
    filter_build,
    mysql_vouchers,
    place_order,
    recover_orders,
    redis_keys,
)
from plaza.commerce.flash_sales.model import NotReady, VoucherMissing
from plaza.commerce.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.commerce.shops.model import FILTER, ShopJobStep
from plaza.core.reactions import Target
from plaza.core.targets import lookup
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import clear_caches
from plaza.infra.runtime.settings import settings
from plaza.social.content import mysql_store as content_mysql
from plaza.social.content import queries
from plaza.social.content import redis_store as content_redis
from tests.support import sales
from tests.support.content_api import (
    REVIEW,
    SHOP,
    Reply,
    add_shop,
    add_users,
    as_another_process,
    ask,
    counting_work,
    review,
)
from tests.support.plaza import World
from tests.support.shop_api import build, write
from tests.support.sign_in_client import send

FOLDERS = {
    "reviews": "api/content",
    "reviews/recommended": "api/recommendations",
    "vouchers": "api/flash_sales",
}
LAST = {"reviews": (10**15, 1), "vouchers": (2**62,)}  # cursors before the first item
every_list = pytest.mark.parametrize("what", FOLDERS)


def read(what: str, shop_id: int) -> Reply:
    """The first page of a list of a shop, for an anonymous caller."""
    return ask("GET", f"/shops/{shop_id}/{what}", user=None, folder=FOLDERS[what])


@every_list
def test_an_unknown_shop_costs_one_statement_in_half_a_minute(plaza: World, what: str) -> None:
    with counting_work() as work:
        assert [read(what, 4711).status for _ in range(30)] == [404] * 30
    assert work.statements == 1


@every_list
def test_unknown_shops_do_not_reach_mysql(plaza: World, what: str) -> None:
    add_shop()
    build(ShopJobStep(FILTER))
    chance = random.Random(5)
    with counting_work() as work:
        for _ in range(100):
            assert read(what, chance.randrange(1, 2**63)).status == 404
    assert work.statements <= 2


@every_list
def test_a_deleted_shop_is_a_410(plaza: World, what: str) -> None:
    add_shop()
    assert read(what, SHOP).status == 200
    assert write("DELETE", f"/shops/{SHOP}").status == 204
    as_another_process()
    refused = read(what, SHOP)
    assert (refused.status, refused.slug) == (410, "gone")


def test_a_review_after_the_deletion_of_its_shop_is_refused(plaza: World) -> None:
    """Given that this process and Redis have the shop cached."""
    add_shop()
    assert ask("POST", f"/shops/{SHOP}/reviews", REVIEW).status == 201
    mysql.write("UPDATE shop SET deleted_at = UTC_TIMESTAMP(6)")
    refused = ask("POST", f"/shops/{SHOP}/reviews", REVIEW)
    assert (refused.status, refused.slug) == (410, "gone")
    [(reviews,)] = mysql.fetch_all("SELECT COUNT(*) FROM content WHERE content_type = 'review'")
    assert reviews == 1


def test_an_unknown_voucher_costs_one_statement_in_half_a_minute(plaza: World) -> None:
    with counting_work() as work:
        for _ in range(20):
            clear_caches()  # as in another process
            with pytest.raises(VoucherMissing):
                place_order.place_order(4711, 7)
    assert work.statements == 1


def test_lookups_of_unknown_vouchers_are_limited_by_the_budget(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = TokenBucket(rate_per_s=20, burst=40, clock=lambda: 0.0)
    monkeypatch.setattr("plaza.commerce.flash_sales.voucher_lookup._lookup_budget", bucket)
    with counting_work() as work:
        for voucher_id in range(1, 101):
            with pytest.raises((VoucherMissing, NotReady)):
                place_order.place_order(voucher_id, 7)
    assert work.statements == 40


def order(voucher_id: int) -> Reply:
    return ask("POST", f"/vouchers/{voucher_id}/orders", folder="api/flash_sales")


def test_unknown_vouchers_do_not_reach_mysql_once_the_filter_is_built(plaza: World) -> None:
    voucher = sales.offer()
    filter_build.build_filter()
    chance = random.Random(5)
    with counting_work() as work:
        for _ in range(100):
            assert order(chance.randrange(1, 2**63)).status == 404
    assert work.statements <= 2
    assert order(voucher.id).status == 202


def test_a_voucher_created_during_a_build_is_in_the_filter(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an insert that commits after the build has read: the voucher is added again."""
    insert = mysql_vouchers.insert

    def build_then_insert(*args: Any) -> None:
        filter_build.build_filter()
        insert(*args)

    monkeypatch.setattr(mysql_vouchers, "insert", build_then_insert)
    voucher = sales.offer()
    assert order(voucher.id).status == 202
    clear_caches()
    redis.execute("DEL", redis_keys.state_key(voucher.id))
    assert order(voucher.id).status != 404
    assert not VOUCHER_IDS.query(voucher.id + 1).may_exist


def test_the_recovery_adds_a_voucher_after_its_creator_crashed(plaza: World) -> None:
    voucher = sales.offer()
    VOUCHER_IDS.begin("one", 1)
    VOUCHER_IDS.fill("one", [], last=True)
    assert not VOUCHER_IDS.query(voucher.id).may_exist
    recover_orders.recover_orders()
    assert VOUCHER_IDS.query(voucher.id).may_exist


def test_a_long_build_continues_in_the_next_run(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.commerce.flash_sales.filter_build._PAGE", 2)
    vouchers = [sales.offer().id for _ in range(5)]
    redis.execute("DEL", *VOUCHER_IDS.keys)
    assert [filter_build.build_filter(max_s=0) for _ in range(4)] == [2, 2, 1, 0]
    assert all(VOUCHER_IDS.query(voucher_id).may_exist for voucher_id in vouchers)
    assert not VOUCHER_IDS.query(vouchers[-1] + 1).may_exist


def test_a_voucher_is_found_after_a_lookup_of_its_id_before_its_creation(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.commerce.flash_sales.create_voucher.ids.new_id", lambda: 4711)
    with pytest.raises(VoucherMissing):
        place_order.place_order(4711, 7)
    clear_caches()
    voucher = sales.offer()
    assert voucher.id == 4711
    monkeypatch.undo()


# ---------------------------------------------------------------- targets


def query(post_ids: range) -> Reply:
    asked = [{"type": "post", "id": str(i)} for i in post_ids]
    return ask("POST", "/reactions/query", {"targets": asked}, user=None, folder="api/reactions")


def test_queries_of_unknown_targets_are_limited_by_the_budget(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "_lookup_budget", TokenBucket(0.0001, 5, clock=lambda: 0.0))
    with counting_work() as work:
        replies = [query(range(n, n + 10)) for n in range(1, 301, 10)]
    assert [reply.status for reply in replies] == [200] * 5 + [503] * 25
    assert work.statements == 5
    with counting_work() as work:
        assert query(range(1, 11)).status == 200
    assert work.statements == 0


@pytest.mark.parametrize("path", ["/posts/{}", "/posts/{}/comments", "/users/{}/posts"])
def test_lookups_of_unknown_content_are_limited_by_the_budget(
    plaza: World, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(lookup, "_lookup_budget", TokenBucket(0.0001, 5, clock=lambda: 0.0))
    with counting_work() as work:
        statuses = [ask("GET", path.format(n), user=None).status for n in range(1, 31)]
    assert statuses == [404] * 5 + [503] * 25
    assert work.statements == 5


# ---------------------------------------------------------------- lists without a session


@pytest.fixture
def no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_list_budget", TokenBucket(0.0001, 5, clock=lambda: 0.0))
    vouchers = TokenBucket(0.0001, 5, clock=lambda: 0.0)
    monkeypatch.setattr("plaza.commerce.flash_sales.queries._list_budget", vouchers)


@pytest.mark.parametrize("what", ["reviews", "vouchers"])
def test_pages_that_mysql_reads_are_limited_by_the_budget(
    plaza: World, no_budget: None, what: str
) -> None:
    add_shop()
    after = pack_cursor(*LAST[what])
    replies = [
        ask("GET", f"/shops/{SHOP}/{what}?limit={n}&cursor={after}", folder=FOLDERS[what])
        for n in range(1, 11)
    ]
    assert [reply.status for reply in replies] == [200] * 5 + [503] * 5
    assert replies[-1].headers["retry-after"]


@pytest.mark.parametrize("user", [None, 7])
@pytest.mark.parametrize("what", ["reviews", "vouchers"])
def test_a_first_page_is_read_from_mysql_once_for_all_limits(
    plaza: World, what: str, user: int | None
) -> None:
    add_shop()
    add_users(7)
    made = str(sales.offer().id) if what == "vouchers" else review()
    first = ask("GET", f"/shops/{SHOP}/{what}", user=user, folder=FOLDERS[what])
    assert [item["id"] for item in first.body["items"]] == [made]
    with counting_work() as work:
        for limit in range(1, 21):
            as_another_process()
            path = f"/shops/{SHOP}/{what}?limit={limit}"
            reply = ask("GET", path, user=user, folder=FOLDERS[what])
            assert [item["id"] for item in reply.body["items"]] == [made]
    assert work.statements == 0


@pytest.mark.parametrize("what", ["reviews", "vouchers"])
def test_a_new_item_is_on_the_first_page_at_once(plaza: World, what: str) -> None:
    add_shop()
    assert read(what, SHOP).body["items"] == []
    made = str(sales.offer().id) if what == "vouchers" else review()
    as_another_process()
    assert [item["id"] for item in read(what, SHOP).body["items"]] == [made]


def test_a_deleted_review_leaves_the_first_page_without_a_gap(plaza: World) -> None:
    add_shop()
    made = [review(user) for user in (7, 8, 9, 10)]
    assert len(read("reviews", SHOP).body["items"]) == 4
    assert ask("DELETE", f"/reviews/{made[2]}", user=9).status == 204
    as_another_process()
    page = ask("GET", f"/shops/{SHOP}/reviews?limit=2", user=None).body
    assert [item["id"] for item in page["items"]] == [made[3], made[1]]
    rest = ask("GET", f"/shops/{SHOP}/reviews?limit=2&cursor={page['next']}", user=None).body
    assert ([item["id"] for item in rest["items"]], rest["next"]) == ([made[0]], None)


def test_a_cached_page_with_a_deleted_review_is_read_again(plaza: World) -> None:
    """Given a writer that crashed before it dropped the page, and a refresh of the review."""
    add_shop()
    made = [review(user) for user in (7, 8, 9)]
    read("reviews", SHOP)
    mysql.write("UPDATE content SET deleted_at = UTC_TIMESTAMP(6) WHERE content_id = %s", made[1:2])
    content_redis.store_texts(content_mysql.read([Target("review", int(made[1]))]).values())
    as_another_process()
    page = ask("GET", f"/shops/{SHOP}/reviews?limit=2", user=None).body
    assert ([item["id"] for item in page["items"]], page["next"]) == ([made[2], made[0]], None)


def test_a_hot_first_page_costs_anonymous_callers_no_statement(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = clock.monotonic_s()
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s)
    monkeypatch.setattr(queries._hot_pages, "_hot_per_s", 3)
    add_shop()
    path = f"/shops/{SHOP}/reviews"
    assert [ask("GET", path, user=None).status for _ in range(3)] == [200] * 3
    with counting_work() as work:
        assert [ask("GET", path, user=None).status for _ in range(20)] == [200] * 20
    assert work.statements == 0
    made = ask("POST", path, REVIEW).body["id"]
    assert [item["id"] for item in ask("GET", path).body["items"]] == [made], (
        "the author sees it at once"
    )


# ---------------------------------------------------------------- lists by id

LISTS_BY_ID = {"users": "api/users", "posts": "api/content", "vouchers": "api/flash_sales"}


def left(path: str, ids: range) -> int:
    """Return how many requests the rate limit of the network admits after one for ``ids``."""
    text = ",".join(map(str, ids))
    reply = send("GET", f"/{path}?ids={text}", folder=LISTS_BY_ID[path], source="198.51.100.9")
    assert reply.status == 200
    limit = re.search(r"r=(\d+)", reply.headers["ratelimit"])
    assert limit is not None
    return int(limit[1])


@pytest.mark.parametrize("path", LISTS_BY_ID)
def test_ten_unknown_ids_cost_as_much_as_a_request(plaza: World, path: str) -> None:
    """A page of 100 ids for one token would read all names of users in hours."""
    before, began_s = left(path, range(1, 10)), time.monotonic()
    assert left(path, range(1_001, 1_010)) >= before - 1, "nine cost nothing"
    after = left(path, range(2_001, 2_101))
    refilled = (time.monotonic() - began_s) * settings().anonymous_per_s
    assert after <= before - 1 - 10 + refilled


def test_known_ids_cost_one_request(plaza: World) -> None:
    add_users(*range(3_001, 3_101))
    before = left("users", range(1, 2))
    assert left("users", range(3_001, 3_101)) >= before - 1
