"""A day of a shop on the deployed stack: its owner, its staff and two buyers."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

import pytest
from playwright.sync_api import expect

from local.load.town import make_voucher
from tests.e2e.browser import confirm, needs_browser
from tests.e2e.client import Client, problem, wait_until
from tests.e2e.conftest import OpenApp
from tests.support.node import needs_npm_packages

_ids = count(7_300_001)


@pytest.fixture
def admin(base_url: str, sign_in: Callable[..., str]) -> Client:
    return Client(base_url, sign_in(7_299_999, role="admin"))


def buy(buyer: Client, voucher: str) -> str:
    """Order a unit and return the successful order."""
    order = buyer("POST", f"/vouchers/{voucher}/orders").json["order_id"]
    path = f"/orders/{order}"
    wait_until("the order succeeds", lambda: buyer("GET", path).json["status"] == "success")
    return str(order)


def test_a_shop_lives_a_day_without_an_admin(admin: Client, user: Callable[[int], Client]) -> None:
    owner_id, staff_id = next(_ids), next(_ids)
    owner, staff = user(owner_id), user(staff_id)
    first, second = user(next(_ids)), user(next(_ids))
    shop = admin("POST", "/shops", {"name": "Linden Food"}).json
    members = f"/shops/{shop['id']}/members"
    assert admin("PUT", f"{members}/{owner_id}", {"role": "owner"}).status == 200

    # The owner runs the shop.
    assert owner("PUT", f"{members}/{staff_id}", {"role": "staff"}).status == 200
    changed = owner("PUT", f"/shops/{shop['id']}", {"name": "Linden Kitchen"})
    assert (changed.status, changed.json["name"]) == (200, "Linden Kitchen")
    body = make_voucher(shop["id"], time.time(), stock=2, open_s=1800)
    voucher = owner("POST", "/vouchers", body).json
    assert owner("PATCH", f"/vouchers/{voucher['id']}", {"title": "Supper"}).status == 200
    refused = staff("POST", "/vouchers", body)
    assert (refused.status, problem(refused)) == (403, "forbidden")

    # Buyers order, read what they have, and come.
    orders = [buy(buyer, voucher["id"]) for buyer in (first, second)]
    [own] = first("GET", "/users/me/orders").json["items"]
    assert own["voucher"]["title"] == "Supper"
    assert own["voucher"]["shop"] == {"id": shop["id"], "name": "Linden Kitchen"}
    code = first("PUT", f"/orders/{orders[0]}/code").json["code"]
    redemption = f"/vouchers/{voucher['id']}/redemptions"
    assert second("POST", redemption, {"code": code}).status == 403
    assert staff("POST", redemption, {"code": code}).status == 201
    assert first("GET", f"/orders/{orders[0]}").json["status"] == "used"

    # A buyer reviews the order, another one the shop; the shop has the score of both.
    reviews = f"/shops/{shop['id']}/reviews"
    verified = first("POST", reviews, {"score": 5, "body": "Warm.", "order_id": orders[0]})
    assert (verified.status, verified.json["verified"]) == (201, True)
    unused = second("POST", reviews, {"score": 1, "body": "Not yet.", "order_id": orders[1]})
    assert (unused.status, problem(unused)) == (409, "not-reviewable")
    plain = second("POST", reviews, {"score": 4, "title": "Nice", "body": "By the window."})
    assert (plain.status, plain.json["verified"]) == (201, False)
    shown = owner("GET", f"/shops/{shop['id']}").json
    assert (shown["reviews"], shown["score_total"], shown["average_score"]) == (2, 9, 4.5)

    # Owner and staff see the same day.
    for member in (owner, staff):
        [sale] = member("GET", f"/shops/{shop['id']}/sales").json["items"]
        assert (sale["sold"], sale["left"]) == (2, 0)
        [redeemed] = member("GET", f"/shops/{shop['id']}/redemptions").json["items"]
        assert (redeemed["order_id"], redeemed["used_by"]) == (orders[0], str(staff_id))
    assert owner("DELETE", f"{members}/{staff_id}").status == 204
    assert staff("GET", f"/shops/{shop['id']}/sales").status == 403


@pytest.mark.deep
@needs_npm_packages
@needs_browser
def test_an_owner_offers_redeems_and_appoints_in_the_app(
    open_app: OpenApp, admin: Client, user: Callable[[int], Client]
) -> None:
    owner_id, staff_id, buyer_id = next(_ids), next(_ids), next(_ids)
    user(owner_id)
    user(staff_id)("PATCH", "/users/me", {"nickname": "Robin"})
    buyer = user(buyer_id)
    shop = admin("POST", "/shops", {"name": "Linden Food"}).json["id"]
    path = f"/shops/{shop}/members/{owner_id}"
    assert admin("PUT", path, {"role": "owner"}).status == 200
    app = open_app(f"/users/{owner_id}?tab=shops", owner_id)
    page = app.page
    page.get_by_role("link", name="Linden Food").click()
    form = page.locator("form", has=page.get_by_role("heading", name="Offer a voucher"))
    form.get_by_label("Title").fill("Dinner for two")
    form.get_by_label("Price in EUR").fill("19,90")
    form.get_by_label("Units").fill("3")
    app.check_accessibility()
    form.get_by_role("button", name="Offer").click()
    sale = page.get_by_role("article", name="Sale of Dinner for two")
    expect(sale).to_contain_text("3 of 3 left")

    [voucher] = buyer("GET", f"/shops/{shop}/vouchers").json["items"]
    assert (voucher["price_cents"], voucher["kind"]) == (1990, "ordinary")
    code = buyer("PUT", f"/orders/{buy(buyer, voucher['id'])}/code").json["code"]
    page.get_by_label("Code").fill(code)
    page.get_by_role("button", name="Redeem").click()
    expect(sale).to_contain_text("1 sold")
    page.get_by_role("link", name="Redeemed").click()
    expect(page.get_by_role("heading", name="Dinner for two")).to_be_visible()
    app.check_accessibility()

    page.get_by_role("link", name="Members").click()
    page.get_by_label("User id").fill(str(staff_id))
    page.get_by_role("button", name="Appoint").click()
    expect(page.get_by_role("link", name="Robin")).to_be_visible()
    app.check_accessibility()
    page.get_by_role("link", name="Shop", exact=True).click()
    page.get_by_label("Name").fill("Linden Kitchen")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Linden Kitchen")).to_be_visible()
    app.check_accessibility()
    page.get_by_role("link", name="Sales").click()
    sale.get_by_label("Title").fill("Supper")
    sale.get_by_role("button", name="Save").click()
    renamed = page.get_by_role("article", name="Sale of Supper")
    confirm(renamed.get_by_role("button", name="Withdraw"), "Withdraw this voucher?")
    expect(renamed).to_contain_text("withdrawn")
