"""A flash sale in the web app: live for all who look, restored after a reload, and offers on all
pages."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import count

import pytest
from playwright.sync_api import Page, expect

from local.load.town import make_voucher
from tests.e2e.browser import has_any, needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp
from tests.e2e.test_web_app import buy
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser]
_ids = count(6_840_001)
FAST_CLOCK = """{
  const { now } = Date;
  Date.now = () => now() + 7_200_000;
}"""
"""Sets the clock of the device two hours fast."""


@pytest.fixture
def admin(base_url: str, sign_in: Callable[..., str]) -> Client:
    return Client(base_url, sign_in(6_849_999, role="admin"))


def open_sale(
    admin: Client, stock: int, opens_in_s: float = 0, open_s: int = 1800
) -> tuple[str, str]:
    """Create a sale of a new shop and return the shop and the voucher."""
    shop_id = str(admin("POST", "/shops", {"name": "Linden Food"}).json["id"])
    opened_s = time.time() + opens_in_s + 60  # a minute after it opens
    body = make_voucher(shop_id, opened_s, stock=stock, open_s=open_s - 60)
    return shop_id, str(admin("POST", "/vouchers", body).json["id"])


def statuses(urls: list[str]) -> list[str]:
    return [url for url in urls if url.endswith("/status")]


def set_hidden(page: Page, hidden: bool) -> None:
    """Let the page be hidden, as behind another tab, or be shown again."""
    page.evaluate(
        """hidden => {
          Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_units_left_and_the_main_button_follow_a_sale_without_a_reload(
    open_app: OpenApp, admin: Client, user: Callable[[int], Client]
) -> None:
    shop_id, voucher = open_sale(admin, stock=2)
    app = open_app(f"/shops/{shop_id}")
    page = app.page
    sale = page.get_by_role("region", name="Dinner for two")
    expect(sale).to_contain_text("2 of 2 left")
    expect(sale.get_by_role("button", name="Buy one")).to_be_enabled()
    for _ in range(2):
        buy(user(next(_ids)), voucher)
    expect(sale).to_contain_text("0 of 2 left")
    expect(sale.get_by_role("button", name="Buy one")).to_have_count(0)
    expect(sale.get_by_role("button", name="Join the waitlist")).to_be_enabled()
    app.check_accessibility()
    admin("DELETE", f"/vouchers/{voucher}")
    expect(sale.get_by_role("button", name="Withdrawn")).to_be_disabled()


def test_a_hidden_page_asks_for_no_status_and_a_shown_one_at_once(
    open_app: OpenApp, admin: Client, user: Callable[[int], Client]
) -> None:
    shop_id, voucher = open_sale(admin, stock=1)
    app = open_app("/nowhere")
    page = app.page
    page.clock.install()
    asked: list[str] = []
    answered: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfinished", lambda request: answered.append(request.url))
    app.open(f"/shops/{shop_id}")
    sale = page.get_by_role("region", name="Dinner for two")
    expect(sale).to_contain_text("1 of 1 left")
    set_hidden(page, hidden=True)

    def are_answered() -> bool:
        return has_any(page, answered) and len(statuses(answered)) == len(statuses(asked)) > 0

    wait_until("no status is on its way, which would be of after the purchase", are_answered)
    asked.clear()
    buy(user(next(_ids)), voucher)
    page.clock.fast_forward(60_000)
    assert statuses(asked) == []
    expect(sale).to_contain_text("1 of 1 left")
    set_hidden(page, hidden=False)
    expect(sale).to_contain_text("0 of 1 left")


def test_the_clock_of_the_device_opens_and_closes_no_sale(open_app: OpenApp, admin: Client) -> None:
    running, _ = open_sale(admin, stock=1)
    coming, _ = open_sale(admin, stock=1, opens_in_s=1800)
    app = open_app("/nowhere")
    app.page.add_init_script(FAST_CLOCK)
    sale = app.page.get_by_role("region", name="Dinner for two")
    app.open(f"/shops/{coming}")
    expect(sale.get_by_role("timer")).to_contain_text("Opens in 29:")
    expect(sale.get_by_role("button", name="Buy one")).to_be_disabled()
    app.open(f"/shops/{running}")
    expect(sale.get_by_role("timer")).to_contain_text("Ends in 29:")
    expect(sale.get_by_role("button", name="Buy one")).to_be_enabled()


def test_a_sale_opens_and_closes_on_a_page_that_waits(open_app: OpenApp, admin: Client) -> None:
    shop_id, _ = open_sale(admin, stock=1, opens_in_s=4, open_s=8)
    page = open_app(f"/shops/{shop_id}").page
    sale = page.get_by_role("region", name="Dinner for two")
    expect(sale.get_by_role("timer")).to_contain_text("Opens")
    expect(sale.get_by_role("button", name="Buy one")).to_be_enabled()
    expect(sale.get_by_role("timer")).to_contain_text("Ends")
    expect(sale.get_by_role("button", name="The sale is over")).to_be_disabled()


@pytest.mark.deep
def test_a_place_and_an_offer_are_shown_after_a_reload_and_the_offer_on_all_pages(
    open_app: OpenApp, admin: Client, user: Callable[[int], Client]
) -> None:
    first = user(next(_ids))
    shop_id, voucher = open_sale(admin, stock=1)
    order = buy(first, voucher)
    app = open_app(f"/shops/{shop_id}", next(_ids))
    # If the page asks for the position while the offer is accepted.
    app.allow(404, f"/vouchers/{voucher}/waitlist/me")
    page = app.page
    sale = page.get_by_role("region", name="Dinner for two")
    notices = page.get_by_role("complementary", name="Notices")
    sale.get_by_role("button", name="Join the waitlist").click()
    expect(sale.get_by_role("status")).to_have_text("You are number 1 in the waitlist.")
    page.reload()
    expect(sale.get_by_role("status")).to_have_text("You are number 1 in the waitlist.")
    expect(sale.get_by_role("button", name="Leave the waitlist")).to_be_visible()
    app.open("/ranking")
    expect(page.get_by_role("heading", name="Ranking")).to_be_visible()
    assert first("DELETE", f"/orders/{order}").status == 200
    offer = notices.get_by_text("A unit of Dinner for two is set aside for you until ")
    expect(offer).to_be_visible()
    app.check_accessibility()
    for path in ("/settings", "/shops", "/"):
        app.open(path)
        expect(offer).to_be_visible()
    notices.get_by_role("link", name="See the offer").click()
    expect(sale.get_by_role("status")).to_contain_text("A unit is set aside for you until ")
    app.check_accessibility()
    sale.get_by_role("button", name="Accept the offer").click()
    expect(sale.get_by_role("status")).to_contain_text("It is yours. Order ")
    expect(offer).to_have_count(0)
    page.reload()
    expect(sale.get_by_role("status")).to_contain_text("It is yours. Order ")
    sale.get_by_role("button", name="Show my order").click()
    expect(page.get_by_role("article", name=re.compile("Order "))).to_contain_text("yours")


def test_an_offer_that_is_not_accepted_leaves_all_pages(
    open_app: OpenApp, admin: Client, user: Callable[[int], Client]
) -> None:
    first, waiting = user(next(_ids)), next(_ids)
    shop_id, voucher = open_sale(admin, stock=1)
    order = buy(first, voucher)
    position = f"/vouchers/{voucher}/waitlist/me"
    assert user(waiting)("PUT", position).status == 200
    assert first("DELETE", f"/orders/{order}").status == 200
    page = open_app(f"/shops/{shop_id}", waiting, refused=(404,)).page
    notices = page.get_by_role("complementary", name="Notices")
    expect(notices.get_by_role("link", name="See the offer")).to_be_visible()
    assert user(waiting)("DELETE", position).status == 204  # as the end of its time does
    expect(page.locator(".toast")).to_have_text("The time of your offer is over.")
    expect(notices.get_by_role("link", name="See the offer")).to_have_count(0)
    expect(page.get_by_role("button", name="Buy one")).to_be_enabled()
