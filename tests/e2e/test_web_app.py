"""The web app on the deployed stack, in a browser: the main journey of each page.

Each test ends with an empty console; the refusals that it provoked are named.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from local.load import pictures
from local.load.town import make_voucher
from local.stack.stack import Stack
from tests.e2e.browser import DRAWN, confirm, has_any, needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser]
_ids = count(6_800_001)
LIKE = re.compile("^Like ")
COLLECT = re.compile("^Collect ")


@pytest.fixture
def writer(user: Callable[[int], Client]) -> tuple[int, Client]:
    user_id = next(_ids)
    client = user(user_id)
    client("PATCH", "/users/me", {"nickname": f"Writer {user_id}"})
    return user_id, client


@pytest.fixture
def admin(base_url: str, sign_in: Callable[..., str]) -> Client:
    return Client(base_url, sign_in(6_799_999, role="admin"))


def write_post(client: Client, title: str) -> str:
    body = {"kind": "note", "title": title, "body": "Seen today.\nMore tomorrow."}
    return str(client("POST", "/posts", body).json["id"])


def test_a_user_signs_in_with_the_code_in_the_corner_and_out_again(open_app: OpenApp) -> None:
    app = open_app("/sign-in", refused=(400, 401))
    page = app.page
    page.get_by_label("Phone number").fill("12")
    page.get_by_role("button", name="Send code").click()
    expect(page.get_by_label("Phone number")).to_have_accessible_description(
        "This is not in the expected form. Any valid number: on this stack, texts appear in the"
        " corner."
    )
    expect(page.get_by_label("Phone number")).to_be_focused()
    page.get_by_label("Phone number").fill("+1 415 555 0186")
    page.get_by_role("button", name="Send code").click()
    corner = page.get_by_label("Text message")
    expect(corner).to_contain_text("Your Plaza code is")
    page.get_by_label("Code", exact=True).fill("12345")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".wrong")).to_have_text("This is not in the expected form.")
    shown = corner.locator("b").inner_text()
    page.get_by_label("Code", exact=True).fill("000000" if shown != "000000" else "111111")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("Request ")
    app.check_accessibility()
    corner.get_by_role("button", name="Use it").click()
    expect(page.get_by_text("Your feed is empty")).to_be_visible()
    page.get_by_role("link", name="Profile").click()
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Every like counts once.")).to_be_visible()
    assert page.evaluate("localStorage.length") == 0


def test_pictures_of_the_demo_crowd_are_shown(
    open_app: OpenApp, writer: tuple[int, Client]
) -> None:
    writer_id, client = writer
    avatar = pictures.of_user(0)
    assert client("PATCH", "/users/me", {"avatar": avatar}).status == 200
    post = {"kind": "note", "title": "A day at the harbour", "body": "Boats."}
    images = pictures.of_title(post["title"])
    made = client("POST", "/posts", post | {"images": images})
    app = open_app(f"/posts/{made.json['id']}", writer_id)
    for shown in (".avatar img", ".images img"):
        image = app.page.locator(f"article {shown}").first
        expect(image).to_be_visible()
        expect(image).to_have_js_property("naturalWidth", 200 if "avatar" in shown else 960)


def test_a_follow_fills_the_feed_and_a_like_shows_before_its_answer(
    open_app: OpenApp, writer: tuple[int, Client]
) -> None:
    writer_id, client = writer
    title = f"Harbour {writer_id}"
    post_id = write_post(client, title)
    app = open_app(f"/users/{writer_id}", next(_ids))
    page = app.page
    follow = page.get_by_role("button", name=f"Follow Writer {writer_id}")
    follow.click()
    expect(page.get_by_role("button", name=f"Following Writer {writer_id}")).to_be_visible()
    expect(page.get_by_role("link", name="1 follower")).to_be_visible()
    app.check_accessibility()

    def is_in_feed() -> bool:
        app.open("/")
        page.locator("article, .empty").first.wait_for()
        return page.get_by_role("link", name=title).is_visible()

    wait_until("the post is in the feed", is_in_feed)
    held: list[Route] = []
    page.route(f"**/posts/{post_id}/likes/me", lambda route: held.append(route))
    like = page.get_by_role("button", name=LIKE)
    like.focus()
    page.keyboard.press("Enter")
    expect(like).to_have_attribute("aria-pressed", "true")
    expect(like).to_have_text("Like1")
    for _ in range(2):
        page.keyboard.press("Space")
    wait_until("one request is in flight", lambda: has_any(page, held))
    assert len(held) == 1
    held.pop().continue_()
    page.unroute(f"**/posts/{post_id}/likes/me")
    page.get_by_role("button", name=COLLECT).click()
    read = f"/posts/{post_id}"
    wait_until("both are stored", lambda: totals_of(client("GET", read).json) == (1, 1))
    expect(like).to_have_text("Like1")
    app.check_accessibility()


def test_an_added_kind_has_a_button_that_shows_its_name_and_its_total(
    open_app: OpenApp, writer: tuple[int, Client]
) -> None:
    """The stack has the kind bookmark by its parameter: tests/__init__.py."""
    _, client = writer
    post_id = write_post(client, "The quiet bay")
    path = f"/targets/post/{post_id}/reactions/bookmark/me"
    assert client("PUT", path).json["total"] == 1
    app = open_app(f"/posts/{post_id}", next(_ids))
    bookmark = app.page.get_by_role("button", name=re.compile("^Bookmark "))
    expect(bookmark).to_have_text("Bookmark1")
    expect(bookmark).to_have_attribute("title", "Reaction: Bookmark")
    bookmark.click()
    expect(bookmark).to_have_text("Bookmark2")
    expect(bookmark).to_have_attribute("aria-pressed", "true")
    wait_until("the bookmark is stored", lambda: client("GET", path).json["total"] == 2)
    expect(app.page.locator("article.whole .reaction")).to_have_count(3)
    app.check_accessibility()
    client("DELETE", path)
    expect(bookmark, "the screen follows").to_have_text("Bookmark1")


def totals_of(post: dict[str, Any]) -> tuple[int, int]:
    return post["likes"], post["collects"]


def test_a_refused_like_is_taken_back_and_explained(
    open_app: OpenApp, writer: tuple[int, Client]
) -> None:
    _, client = writer
    post_id = write_post(client, "Soon gone")
    app = open_app(f"/posts/{post_id}", next(_ids), refused=(410,))
    like = app.page.get_by_role("button", name=LIKE)
    expect(like).to_have_text("Like0")
    client("DELETE", f"/posts/{post_id}")
    like.click()
    expect(app.page.locator(".toast")).to_contain_text("deleted")
    expect(like).to_have_text("Like0")
    expect(like).to_have_attribute("aria-pressed", "false")


def test_a_post_has_comments_and_likers(
    open_app: OpenApp, writer: tuple[int, Client], user: Callable[[int], Client]
) -> None:
    _, client = writer
    post_id = write_post(client, "The old town")
    fan_id = next(_ids)
    user(fan_id)("PATCH", "/users/me", {"nickname": "Grace"})
    user(fan_id)("PUT", f"/posts/{post_id}/likes/me")
    likers = f"/posts/{post_id}/likers"
    wait_until("the like is listed", lambda: client("GET", likers).json["items"])
    app = open_app(f"/posts/{post_id}", fan_id, refused=(400,))
    page = app.page
    expect(page.get_by_text("First liked by Grace")).to_be_visible()
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".wrong")).to_have_text("This must not be empty.")
    page.get_by_label("Your comment").fill("I was there!")
    page.get_by_role("button", name="Comment", exact=True).click()
    remark = page.get_by_role("article").filter(has_text="I was there!")
    remark.get_by_role("button", name=LIKE).click()
    expect(remark.get_by_role("button", name=LIKE)).to_have_text("Like1")
    remark.get_by_role("button", name=COLLECT).click()
    expect(remark.get_by_role("button", name=COLLECT)).to_have_text("Collect1")
    app.check_accessibility()
    page.get_by_role("button", name="Likers").click()
    expect(page.get_by_role("listitem").filter(has_text="Grace")).to_be_visible()
    page.get_by_role("button", name="Comments").click()
    confirm(remark.get_by_role("button", name="Delete"), "Delete this comment?")
    expect(page.get_by_text("No comments yet")).to_be_visible()


def test_a_post_is_written_and_deleted(open_app: OpenApp) -> None:
    app = open_app("/write", next(_ids), refused=(400,))
    page = app.page
    page.get_by_label("Image").fill("ftp://pics.example/a.png")
    page.get_by_role("button", name="Publish").click()
    expect(page.locator(".wrong")).to_have_text(
        ["This must not be empty.", "This must not be empty.", "This is not in the expected form."]
    )
    expect(page.get_by_label("Title")).to_be_focused()
    app.check_accessibility()
    page.get_by_label("Title").fill("Night train")
    page.get_by_role("textbox", name="Text").fill("Off to the sea.")
    page.get_by_label("Image").fill("")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name="Night train")).to_be_visible()
    expect(page).to_have_title("Night train · Plaza")
    confirm(page.get_by_role("button", name="Delete"), "Delete this post?")
    expect(page.get_by_role("heading", name="Feed")).to_be_visible()


def test_the_ranking_has_four_windows(
    open_app: OpenApp, writer: tuple[int, Client], stack: Stack
) -> None:
    _, client = writer
    post_id = write_post(client, "Most liked of all")
    client("PUT", f"/posts/{post_id}/likes/me")

    def is_ranked() -> bool:
        stack.invoke("RollUpLikes", {})
        stack.invoke("RefreshRankings", {})
        return bool(client("GET", "/posts/ranking?window=day").json.get("items"))

    wait_until("posts are ranked", is_ranked)
    app = open_app("/ranking")
    page = app.page
    expect(page.get_by_text("Place 1").first).to_be_attached()
    expect(page.get_by_role("link", name="Hot")).to_have_attribute("aria-current", "page")
    for window in ("Today", "Week", "All time"):
        page.get_by_role("link", name=window).click()
        expect(page.get_by_role("link", name=window)).to_have_attribute("aria-current", "page")
        expect(page.get_by_text("Place 1").first).to_be_attached()
    app.check_accessibility()
    page.get_by_role("button", name=LIKE).first.click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_profile_is_changed_and_shows_private_lists_to_its_owner(
    open_app: OpenApp, writer: tuple[int, Client]
) -> None:
    writer_id, client = writer
    post_id = write_post(client, "Kept for later")
    client("PUT", f"/posts/{post_id}/collects/me")
    app = open_app("/settings", writer_id, refused=(400,))
    page = app.page
    page.get_by_label("Time zone").fill("Europe/Nowhere")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Time zone")).to_have_attribute("aria-invalid", "true")
    app.check_accessibility()
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("Name").fill("Ada 🦊")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Ada 🦊")).to_be_visible()
    page.get_by_role("link", name="Collects").click()
    expect(page.get_by_role("link", name="Kept for later")).to_be_visible()
    page.get_by_role("link", name="Orders").click()
    expect(page.get_by_text("No orders yet")).to_be_visible()


def test_shops_are_found_around_a_place_and_reviewed(open_app: OpenApp, admin: Client) -> None:
    number = next(_ids)
    place = {"x": round(number % 1000 / 100, 4), "y": 10.0}
    type_id = admin("POST", "/shop-types", {"name": f"Books {number}", "sort": 1}).json["id"]
    shop = {"name": f"Corner Books {number}", "type_id": type_id, "place": place, "area": "Mitte"}
    shop_id = admin("POST", "/shops", shop).json["id"]
    app = open_app("/shops", number, refused=(400,))
    page = app.page
    page.get_by_text("Coordinates").click()
    page.get_by_label("Latitude").fill("north")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_label("Latitude")).to_have_accessible_description("This must be a number.")
    page.get_by_label("Latitude").fill("10.001")
    page.get_by_label("Longitude").fill(str(place["x"]))
    page.get_by_role("button", name="Show", exact=True).click()
    link = page.get_by_role("link", name=f"Corner Books {number}")
    expect(link).to_contain_text("111 m")
    expect(page.locator(".dot")).to_have_count(1)
    page.get_by_label("Type").select_option(label=f"Books {number}")
    expect(link).to_be_visible()
    app.check_accessibility()
    link.click()
    page.get_by_label("4").check()
    page.get_by_label("Your review").fill("A find!")
    page.get_by_role("button", name="Publish").click()
    review = page.get_by_role("article").filter(has_text="A find!")
    expect(review.get_by_role("img", name="4 of 5")).to_be_visible()
    review.get_by_role("button", name=LIKE).click()
    expect(review.get_by_role("button", name=LIKE)).to_have_text("Like1")
    review.get_by_role("button", name=COLLECT).click()
    expect(review.get_by_role("button", name=COLLECT)).to_have_text("Collect1")
    assert admin("GET", f"/shops/{shop_id}/reviews").json["items"][0]["score"] == 4
    app.check_accessibility()


def test_of_a_last_unit_one_buyer_gets_it_and_the_other_is_told(
    open_app: OpenApp, admin: Client
) -> None:
    shop_id = admin("POST", "/shops", {"name": "Linden Food"}).json["id"]
    later = make_voucher(shop_id, time.time() + 3600) | {"title": "Later"}
    admin("POST", "/vouchers", later)
    running = make_voucher(shop_id, time.time(), stock=1, open_s=1800)
    voucher = admin("POST", "/vouchers", running).json["id"]
    first = open_app(f"/shops/{shop_id}", next(_ids))
    second = open_app(f"/shops/{shop_id}", next(_ids), refused=(409,))
    sales = [app.page.get_by_role("region", name="Dinner for two") for app in (first, second)]
    for sale in sales:
        expect(sale.get_by_role("timer")).to_contain_text("Ends in 29:")
        expect(sale).to_contain_text("1 of 1 left")
    status = f"**/vouchers/{voucher}/status"
    before = admin("GET", f"/vouchers/{voucher}/status").json
    second.page.route(status, lambda route: route.fulfill(json=before))  # it has not heard of it
    soon = first.page.get_by_role("region", name="Later")
    expect(soon.get_by_role("timer")).to_contain_text("Opens in 58:")
    expect(soon.get_by_role("button", name="Buy one")).to_be_disabled()
    sales[0].get_by_role("button", name="Buy one").click()
    expect(sales[0].get_by_role("status")).to_contain_text("It is yours. Order ")
    expect(sales[0]).to_contain_text("0 of 1 left")
    sales[1].get_by_role("button", name="Buy one").click()
    expect(sales[1].get_by_role("status")).to_contain_text("sold")
    second.page.unroute(status)
    expect(sales[1].get_by_role("button", name="Join the waitlist")).to_be_enabled()
    first.page.get_by_role("link", name="Profile").click()
    first.page.get_by_role("link", name="Orders").click()
    expect(first.page.get_by_text("yours")).to_be_visible()


def test_an_order_shows_its_code_and_is_cancelled(
    open_app: OpenApp, admin: Client, user: Callable[[int], Client]
) -> None:
    buyer_id = next(_ids)
    buyer = user(buyer_id)
    voucher = open_sale(admin, stock=1)
    order = buy(buyer, voucher)
    app = open_app(f"/users/{buyer_id}?tab=orders", buyer_id)
    shown = app.page.get_by_role("article", name="Order of Dinner for two")
    expect(shown).to_contain_text("Linden Food")
    shown.get_by_role("button", name="Show the code").click()
    code = shown.get_by_role("status").locator("b")
    expect(code).to_have_text(re.compile(r"^[0-9A-Z]{4}(-[0-9A-Z]{4}){3}$"))
    first = code.inner_text()
    shown.get_by_role("button", name="New code").click()
    expect(code).not_to_have_text(first)
    app.check_accessibility()
    redemption = f"/vouchers/{voucher}/redemptions"
    assert admin("POST", redemption, {"code": first}).status >= 400
    confirm(shown.get_by_role("button", name="Cancel"), "Cancel this order?")
    expect(shown).to_contain_text("cancelled")
    expect(shown.get_by_role("button")).to_have_count(0)
    assert buyer("GET", f"/orders/{order}").json["status"] == "cancelled"


def test_a_buyer_waits_for_a_unit_and_accepts_the_offer(
    open_app: OpenApp, admin: Client, user: Callable[[int], Client]
) -> None:
    first = user(next(_ids))
    voucher = open_sale(admin, stock=1)
    order = buy(first, voucher)
    shop_id = admin("GET", f"/vouchers/{voucher}").json["shop_id"]
    app = open_app(f"/shops/{shop_id}", next(_ids))
    page = app.page
    page.get_by_role("button", name="Join the waitlist").click()
    expect(page.get_by_text("You are number 1 in the waitlist.")).to_be_visible()
    page.get_by_role("button", name="Leave the waitlist").click()
    page.get_by_role("button", name="Join the waitlist").click()
    expect(page.get_by_text("You are number 1 in the waitlist.")).to_be_visible()
    app.check_accessibility()
    assert first("DELETE", f"/orders/{order}").status == 200
    expect(page.get_by_text("A unit is set aside for you")).to_be_visible()
    app.check_accessibility()
    page.get_by_role("button", name="Accept the offer").click()
    expect(page.get_by_text("It is yours.")).to_be_visible()
    expect(page.get_by_role("button", name="Leave the waitlist")).to_have_count(0)
    # A read of the position that was on its way when the caller left, or accepted.
    app.refused.discard(404)


def open_sale(admin: Client, stock: int) -> str:
    """Open a sale of a new shop and return its voucher."""
    shop_id = admin("POST", "/shops", {"name": "Linden Food"}).json["id"]
    body = make_voucher(shop_id, time.time(), stock=stock, open_s=1800)
    return str(admin("POST", "/vouchers", body).json["id"])


def buy(buyer: Client, voucher: str) -> str:
    """Order a unit and return the successful order."""
    order = buyer("POST", f"/vouchers/{voucher}/orders").json["order_id"]
    path = f"/orders/{order}"
    wait_until("the order succeeds", lambda: buyer("GET", path).json["status"] == "success")
    return str(order)


def test_an_author_edits_a_post(open_app: OpenApp, writer: tuple[int, Client]) -> None:
    writer_id, client = writer
    post_id = write_post(client, "The lake")
    images = ["https://images.example/1.jpg", "https://images.example/2.jpg"]
    client("PATCH", f"/posts/{post_id}", {"images": images})
    app = open_app("/shops", writer_id, refused=(400,))
    page = app.page
    page.route("https://images.example/**", lambda route: route.fulfill(status=200))
    app.open(f"/posts/{post_id}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Title").fill("")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Title")).to_have_accessible_description("This must not be empty.")
    app.check_accessibility()
    page.get_by_label("Title").fill("The lake at night")
    page.get_by_label("Image").fill("")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="The lake at night")).to_be_visible()
    expect(page.get_by_role("article").first).to_contain_text("edited")
    changed = client("GET", f"/posts/{post_id}").json
    assert (changed["title"], changed["images"]) == ("The lake at night", images[1:])


def test_a_post_is_reported_and_its_author_blocked(
    open_app: OpenApp, writer: tuple[int, Client], admin: Client, user: Callable[[int], Client]
) -> None:
    writer_id, client = writer
    post_id, reader_id = write_post(client, "Buy now"), next(_ids)
    app = open_app(f"/posts/{post_id}", reader_id)
    page = app.page
    page.get_by_role("button", name="Report").click()
    dialog = page.get_by_role("dialog", name="Report this post")
    dialog.get_by_label("Insult or threat").check()
    dialog.get_by_label("Details").fill("Again and again.")
    app.check_accessibility()
    dialog.get_by_role("button", name="Send").click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".toast")).to_contain_text("A moderator will look at it.")
    [report] = [
        items
        for items in admin("GET", "/ops/reports?limit=100").json["items"]
        if items["reporter_id"] == str(reader_id)
    ]
    assert report["target"] == {"type": "post", "id": post_id}
    assert (report["reason"], report["details"]) == ("abuse", "Again and again.")
    page.get_by_role("link", name=f"Writer {writer_id}").click()
    confirm(page.get_by_role("button", name="Block"), "Block this user?")
    expect(page.get_by_role("button", name="Unblock")).to_be_visible()
    app.check_accessibility()
    blocks = "/users/me/blocks"
    assert len(user(reader_id)("GET", blocks).json["items"]) == 1
    app.open("/settings")
    page.get_by_role("link", name="Blocked users").click()
    page.get_by_role("button", name="Unblock").click()
    expect(page.get_by_role("button", name="Block")).to_be_visible()
    app.check_accessibility()
    assert user(reader_id)("GET", blocks).json["items"] == []


def test_a_check_in_marks_today_in_the_calendar(open_app: OpenApp) -> None:
    app = open_app("/check-ins", next(_ids))
    page = app.page
    page.get_by_role("button", name="Check in now").click()
    expect(page.get_by_role("button", name="Checked in today")).to_be_disabled()
    expect(page.locator("td.today.checked")).to_have_count(1)
    expect(page.locator(".streak")).to_contain_text("1 day in a row")
    app.check_accessibility()
    page.get_by_role("link", name="Month before").click()
    expect(page.locator("td.today")).to_have_count(0)
    expect(page.get_by_role("table")).to_be_visible()


def test_an_unreachable_api_is_reported_and_tried_again(open_app: OpenApp, base_url: str) -> None:
    app = open_app("/check-ins", refused=(404,))
    page = app.page
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    app.open("/posts/1")
    expect(page.get_by_role("alert")).to_contain_text("Post 1 does not exist.")
    app.check_accessibility()
    app.open("/ranking")
    page.route(f"{base_url}/users/999999999", lambda route: route.abort())
    page.evaluate("location.hash = '/users/999999999'")
    expect(page.get_by_role("alert")).to_contain_text("No connection")
    page.unroute(f"{base_url}/users/999999999")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_contain_text("User 999999999 does not exist.")
    app.open("/nowhere")
    expect(page.get_by_text("There is no such page.")).to_be_visible()
    assert [error for error in app.errors if "ERR_FAILED" not in error] == []
    app.errors.clear()


def test_a_link_that_is_followed_while_the_app_is_drawn_is_not_missed(open_app: OpenApp) -> None:
    page = open_app("/nowhere").page
    page.add_init_script(
        """new MutationObserver((_, observer) => {
          if (document.querySelector("h1") === null) return;
          observer.disconnect();
          location.hash = "/shops";
        }).observe(document, { childList: true, subtree: true })"""
    )
    page.reload()
    expect(page.get_by_role("heading", name="Shops", level=1)).to_be_visible()


def test_a_title_takes_the_focus_from_no_field(
    open_app: OpenApp, writer: tuple[int, Client]
) -> None:
    writer_id, client = writer
    page = open_app(f"/posts/{write_post(client, 'The lake')}", writer_id).page
    edit = page.get_by_role("button", name="Edit")
    edit.evaluate(
        """button => {
          new MutationObserver((_, observer) => {
            const field = document.querySelector("input[name=title]");
            if (field === null) return;
            observer.disconnect();
            field.focus();
          }).observe(document, { childList: true, subtree: true });
          button.click();
        }"""
    )
    field = page.get_by_label("Title")
    field.wait_for()
    page.evaluate(DRAWN)
    page.wait_for_timeout(100)
    expect(field).to_be_focused()


def test_the_keyboard_reaches_the_content_first(open_app: OpenApp) -> None:
    app = open_app("/")
    page = app.page
    page.get_by_role("link", name="Sign in with your phone").wait_for()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Every like counts once.")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Sign in with your phone")).to_be_focused()
    app.check_accessibility()
