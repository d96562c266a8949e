"""Two people, or two tabs, edit one thing: the web app overwrites nothing unseen."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from typing import NamedTuple

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser]
_ids = count(7_410_001)
ADMIN = 7_419_999
WARNING = "This was changed since you opened it. Reload the page, then make your change again."


class Edited(NamedTuple):
    """The page of a form, the label of a field, the API's path and field, and who changes it."""

    page: str
    label: str
    path: str
    field: str
    other: Client


def edit_profile(user_id: int, user: Client, admin: Client) -> Edited:
    return Edited("/settings", "Name", "/users/me", "nickname", user)


def edit_post(user_id: int, user: Client, admin: Client) -> Edited:
    post = user("POST", "/posts", {"kind": "note", "title": "Draft", "body": "b"}).json["id"]
    return Edited(f"/posts/{post}", "Title", f"/posts/{post}", "title", user)


def edit_shop(user_id: int, user: Client, admin: Client) -> Edited:
    shop = admin("POST", "/shops", {"name": "Linden Food"}).json["id"]
    assert admin("PUT", f"/shops/{shop}/members/{user_id}", {"role": "owner"}).status == 200
    return Edited(f"/own-shops/{shop}?tab=shop", "Name", f"/shops/{shop}", "name", admin)


def edit_voucher(user_id: int, user: Client, admin: Client) -> Edited:
    shop = admin("POST", "/shops", {"name": "Linden Food"}).json["id"]
    assert admin("PUT", f"/shops/{shop}/members/{user_id}", {"role": "owner"}).status == 200
    body = {"shop_id": shop, "kind": "ordinary", "title": "Soup", "price_cents": 5, "stock": 2}
    voucher = user("POST", "/vouchers", body).json["id"]
    return Edited(f"/own-shops/{shop}?tab=sales", "Title", f"/vouchers/{voucher}", "title", admin)


@pytest.mark.parametrize("prepare", [edit_profile, edit_post, edit_shop, edit_voucher])
def test_a_form_that_is_behind_says_so_and_overwrites_nothing(
    open_app: OpenApp,
    user: Callable[[int], Client],
    admin: Client,
    prepare: Callable[[int, Client, Client], Edited],
) -> None:
    """Given a form that was opened before another change."""
    user_id = next(_ids)
    edited = prepare(user_id, user(user_id), admin)
    app = open_app(edited.page, user_id, refused=(412,))
    page = app.page
    form = page.locator("form", has=page.get_by_role("button", name="Save", exact=True))
    field = form.get_by_label(edited.label, exact=True)

    def open_form() -> None:
        if prepare is edit_post:
            page.get_by_role("button", name="Edit").click()
        # Entering the form of a voucher reads its newest version.
        reads = page.expect_response("**/vouchers/*") if prepare is edit_voucher else nullcontext()
        with reads:
            field.click()

    def read() -> object:
        return edited.other("GET", edited.path).json[edited.field]

    def save(text: str) -> None:
        field.fill(text)
        form.get_by_role("button", name="Save", exact=True).click()

    open_form()
    method = "PUT" if prepare is edit_shop else "PATCH"
    assert edited.other(method, edited.path, {edited.field: "Ada"}).status == 200
    save("Bob")
    expect(page.get_by_role("alert")).to_contain_text(WARNING)
    app.check_accessibility()
    wait_until("the other change is read", lambda: read() == "Ada")  # a process caches for 1 s
    page.reload()
    open_form()
    save("Bob")
    expect(page.locator(".toast")).to_contain_text(
        "Your changes" if prepare is edit_post else "Saved"
    )
    wait_until("the change is read", lambda: read() == "Bob")
