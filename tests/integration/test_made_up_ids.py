"""Made-up ids and deleted shops: what is answered, and what it costs MySQL."""

from __future__ import annotations

import random

import pytest

from plaza import flash_sales
from plaza.content import reading
from plaza.flash_sales.flash_sales import NotReady, VoucherMissing
from plaza.infra import mysql
from plaza.infra.hot_values import HotValues
from plaza.infra.limits import TokenBucket
from plaza.shops import Step
from plaza.shops.shops import FILTER
from tests import sales
from tests.integration.content_api import (
    REVIEW,
    SHOP,
    Reply,
    add_shop,
    as_another_process,
    ask,
    counting_work,
)
from tests.integration.shop_api import build, write
from tests.plaza import World

FOLDERS = {
    "reviews": "api/content",
    "reviews/recommended": "api/recommendations",
    "vouchers": "api/flash_sales",
}
every_list = pytest.mark.parametrize("what", FOLDERS)


def read(what: str, shop_id: int) -> Reply:
    """The first page of a list that a shop has, by somebody without a session."""
    return ask("GET", f"/shops/{shop_id}/{what}", user=None, folder=FOLDERS[what])


@every_list
def test_a_shop_that_is_not_there_costs_one_statement_in_half_a_minute(
    plaza: World, what: str
) -> None:
    with counting_work() as work:
        assert [read(what, 4711).status for _ in range(30)] == [404] * 30
    assert work.statements == 1


@every_list
def test_ids_that_were_made_up_do_not_reach_mysql(plaza: World, what: str) -> None:
    add_shop()
    build(Step(FILTER))
    chance = random.Random(5)
    with counting_work() as work:
        for _ in range(100):
            assert read(what, chance.randrange(1, 2**63)).status == 404
    assert work.statements <= 2


@every_list
def test_a_deleted_shop_is_gone(plaza: World, what: str) -> None:
    add_shop()
    assert read(what, SHOP).status == 200
    assert write("DELETE", f"/shops/{SHOP}").status == 204
    as_another_process()
    refused = read(what, SHOP)
    assert (refused.status, refused.slug) == (410, "gone")


def test_a_review_after_the_deletion_of_its_shop_is_refused(plaza: World) -> None:
    """This process saw the shop a moment ago, and so did Redis."""
    add_shop()
    assert ask("POST", f"/shops/{SHOP}/reviews", REVIEW).status == 201
    mysql.write("UPDATE shop SET deleted_at = UTC_TIMESTAMP(6)")
    refused = ask("POST", f"/shops/{SHOP}/reviews", REVIEW)
    assert (refused.status, refused.slug) == (410, "gone")
    [(reviews,)] = mysql.fetch_all("SELECT COUNT(*) FROM content WHERE content_type = 'review'")
    assert reviews == 1


def test_a_voucher_that_is_not_there_costs_one_statement_in_half_a_minute(plaza: World) -> None:
    with counting_work() as work:
        for _ in range(20):
            flash_sales.forget_sales()  # each time another process
            with pytest.raises(VoucherMissing):
                flash_sales.order(4711, 7)
    assert work.statements == 1


def test_vouchers_that_were_made_up_reach_mysql_as_far_as_the_budget_goes(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = TokenBucket(rate_per_s=20, burst=40, clock=lambda: 0.0)
    monkeypatch.setattr("plaza.flash_sales.lookup._lookup_budget", bucket)
    with counting_work() as work:
        for voucher_id in range(1, 101):
            with pytest.raises((VoucherMissing, NotReady)):
                flash_sales.order(voucher_id, 7)
    assert work.statements == 40


def test_a_voucher_is_found_though_somebody_asked_for_its_id_too_early(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.flash_sales.offering.ids.new_id", lambda: 4711)
    with pytest.raises(VoucherMissing):
        flash_sales.order(4711, 7)
    flash_sales.forget_sales()
    voucher = sales.offer()
    assert voucher.id == 4711
    monkeypatch.undo()


# ---------------------------------------------------------------- lists that anybody can read


@pytest.fixture
def no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_list_budget", TokenBucket(0.0001, 5, clock=lambda: 0.0))
    vouchers = TokenBucket(0.0001, 5, clock=lambda: 0.0)
    monkeypatch.setattr("plaza.flash_sales.reading._list_budget", vouchers)


@pytest.mark.parametrize("what", ["reviews", "vouchers"])
def test_pages_are_read_from_mysql_as_far_as_the_budget_goes(
    plaza: World, no_budget: None, what: str
) -> None:
    add_shop()
    replies = [
        ask("GET", f"/shops/{SHOP}/{what}?limit={n}", folder=FOLDERS[what]) for n in range(1, 11)
    ]
    assert [reply.status for reply in replies] == [200] * 5 + [503] * 5
    assert replies[-1].headers["retry-after"]


def test_a_hot_first_page_costs_anonymous_callers_no_statement(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_hot_pages", HotValues(hot_per_s=3, clock=lambda: 0.0))
    add_shop()
    path = f"/shops/{SHOP}/reviews"
    assert [ask("GET", path, user=None).status for _ in range(3)] == [200] * 3
    with counting_work() as work:
        assert [ask("GET", path, user=None).status for _ in range(20)] == [200] * 20
    assert work.statements == 0
    made = ask("POST", path, REVIEW).body["id"]
    assert [item["id"] for item in ask("GET", path).body["items"]] == [made], "one's own at once"
