"""Passkeys in the console, with the virtual authenticator of Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, expect

from local.stack.servers import connect_mysql
from local.stack.stack import Stack
from tests.e2e.browser import AppPage, confirm, needs_browser, open_context
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser]
_ids = count(6_870_001)
_DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


class Device:
    """A browser with an authenticator, at the host that passkeys of the stack belong to."""

    def __init__(self, app: AppPage) -> None:
        self.app, self.page = app, app.page
        self.page.set_viewport_size({"width": 1200, "height": 800})
        self.cdp: CDPSession = self.page.context.new_cdp_session(self.page)
        self.cdp.send("WebAuthn.enable")
        made = self.cdp.send("WebAuthn.addVirtualAuthenticator", {"options": _DEVICE})
        self.authenticator = made["authenticatorId"]

    def verify_users(self, verifies: bool) -> None:
        """Set whether the device recognizes its user."""
        parameters = {"authenticatorId": self.authenticator, "isUserVerified": verifies}
        self.cdp.send("WebAuthn.setUserVerified", parameters)

    def enroll(self, code: str) -> None:
        self.page.get_by_role("button", name="I have a code").click()
        self.page.get_by_label("Code").fill(code)
        self.page.get_by_label("Name of this device").fill("Laptop")
        self.page.get_by_role("button", name="Enroll a passkey").click()

    def sign_in(self) -> None:
        self.page.get_by_role("button", name="Sign in with a passkey").click()


@pytest.fixture
def open_device(browser: Browser, stack: Stack) -> Iterator[Callable[..., Device]]:
    """``open_device(refused)`` shows the console; at the end exactly ``refused`` were refused."""
    opened: list[tuple[AppPage, set[int]]] = []

    def open_one(*refused: int) -> Device:
        url = stack.web_url.replace("127.0.0.1", "localhost")
        app = AppPage(open_context(browser, url).new_page(), f"{url}/console")
        opened.append((app, set(refused)))
        app.open("/")
        return Device(app)

    yield open_one
    for app, refused in opened:
        app.page.context.close()
        assert (app.errors, app.refused) == ([], refused)


@pytest.fixture
def make_code(stack: Stack, sign_in: Callable[..., str]) -> Callable[[str], str]:
    """``make_code("sales")`` makes a user with a role, and a code for the first passkey."""

    def make(role: str) -> str:
        user_id = next(_ids)
        sign_in(user_id, role=role)
        arguments = {"user_id": user_id}
        event = {"command": "make-passkey-code", "arguments": arguments, "caller": "test"}
        result: dict[str, Any] = stack.invoke("Operate", event)
        return str(result["code"])

    return make


def test_an_operator_enrolls_a_passkey_and_signs_in_with_it(
    open_device: Callable[..., Device], make_code: Callable[[str], str]
) -> None:
    device, code = open_device(401), make_code("operator")
    page = device.page
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    device.app.check_accessibility()
    device.enroll(code)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    links = page.get_by_role("navigation")
    expect(links.get_by_role("link", name="Queues")).to_be_visible()
    expect(links.get_by_role("link", name="Moderation")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    device.sign_in()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    device.enroll(code)
    expect(page.get_by_role("alert")).to_contain_text("wrong, used or expired")


def test_a_device_that_does_not_recognize_its_user_opens_no_session(
    open_device: Callable[..., Device], make_code: Callable[[str], str]
) -> None:
    device = open_device()
    device.enroll(make_code("operator"))
    page = device.page
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    device.verify_users(False)
    device.sign_in()
    expect(page.get_by_role("alert")).to_contain_text("no passkey")
    expect(page.get_by_role("navigation").get_by_role("listitem")).to_have_count(0)


def test_a_moderator_opens_moderation_and_ends_the_own_sessions(
    open_device: Callable[..., Device], make_code: Callable[[str], str]
) -> None:
    device = open_device()
    device.enroll(make_code("moderator"))
    page = device.page
    expect(page.get_by_role("heading", name="Moderation")).to_be_visible()
    expect(page.get_by_role("navigation").get_by_role("listitem")).to_have_count(2)
    page.get_by_role("link", name="Account").click()
    sessions = page.get_by_role("region", name="Sessions")
    expect(sessions.get_by_role("row")).to_have_count(3)
    expect(sessions.get_by_role("row", name="this one")).to_contain_text("moderator")
    device.app.check_accessibility()
    confirm(sessions.get_by_role("button", name="End"), "End this session?")
    expect(page.get_by_role("status").filter(has_text="The session has ended")).to_be_visible()
    expect(sessions.get_by_role("row")).to_have_count(2)
    expect(page.get_by_role("region", name="Passkeys")).to_contain_text("Laptop")


def test_a_sign_in_that_is_too_old_is_repeated_in_place(
    open_device: Callable[..., Device], make_code: Callable[[str], str], stack: Stack
) -> None:
    """Given an operator whose session is a day old, and who fills in a form."""
    device = open_device(403)
    device.enroll(make_code("operator"))
    page = device.page
    page.get_by_role("link", name="Server keys").click()
    page.get_by_label("Name").fill("step-up")
    page.get_by_label("act: writes for its users").check()
    user_id = page.evaluate("JSON.parse(localStorage['plaza-session']).user.id")
    with connect_mysql(stack.mysql_url) as mysql, mysql.cursor() as cursor:
        old = "UPDATE session SET signed_in_at = '2026-01-01' WHERE user_id = %s"
        cursor.execute(old, (user_id,))
    with page.expect_response("**/passkey-challenges"):  # the device is asked again
        page.get_by_role("button", name="Make a key").click()
    key = page.get_by_role("status").locator("code").inner_text()
    expect(page.get_by_role("row", name=key.split("_")[1])).to_contain_text("act, read")
    expect(page.get_by_role("heading", level=1)).to_have_text("Server keys")
