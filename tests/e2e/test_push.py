"""Push messages through the whole stack, to a push service on loopback; and the service worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import find_wide, needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp
from tests.support.push_service import FakePushService, serving_pushes

AUTHOR, FAN, READER = 5_970_001, 5_970_002, 5_970_003
POST = {"kind": "note", "title": "The thick ones", "body": "Ask for them."}
_SHOWN = """async () => {
  const registration = await navigator.serviceWorker.getRegistration();
  const shown = await registration.getNotifications();
  return shown.map(({ body, tag, lang, data }) => [body, tag, lang, data.href]);
}"""
_REGISTERED = """async () => {
  const url = new URL('push-worker.js', document.baseURI);
  await navigator.serviceWorker.register(url);
  await navigator.serviceWorker.ready;
}"""
# A Chromium without a way to a push service cannot subscribe.
_SUBSCRIBES = """
  const subscription = {
    toJSON: () => ({ endpoint: ENDPOINT, expirationTime: null, keys: KEYS }),
    unsubscribe: async () => { localStorage.removeItem('subscribed'); return true; },
  };
  PushManager.prototype.subscribe = async (options) => {
    localStorage.setItem('subscribed', options.applicationServerKey);
    return subscription;
  };
  PushManager.prototype.getSubscription = async () =>
    localStorage.getItem('subscribed') === null ? null : subscription;
"""


@pytest.fixture
def service() -> Iterator[FakePushService]:
    with serving_pushes() as served:
        yield served


@pytest.mark.deep
def test_likes_of_half_a_minute_reach_a_browser_as_one_push(
    service: FakePushService, user: Callable[[int], Client]
) -> None:
    author, phone = user(AUTHOR), service.subscribe("phone")
    endpoint, public_key, auth = phone.subscription
    body = {"endpoint": endpoint, "keys": {"p256dh": public_key, "auth": auth}}
    subscription = author("PUT", "/push-subscriptions", body)
    assert subscription.status == 200, subscription
    post_id = author("POST", "/posts", POST).json["id"]
    for fan in (FAN, READER):
        user(fan)("PUT", f"/posts/{post_id}/likes/me")
    wait_until("it is pushed", lambda: len(phone.requests) > 0, 90)
    [push] = phone.read()
    assert (push["kind"], push["fresh"], push["subject"]["text"]) == ("like", 2, "The thick ones")
    assert push["unread"] == author("GET", "/users/me/notifications/unread").json["unread"]
    assert author("DELETE", f"/push-subscriptions/{subscription.json['id']}").status == 204


def deliver(page: Page, push: dict[str, Any]) -> None:
    """Deliver a push to the service worker of a page, as a push service does."""
    session = page.context.new_cdp_session(page)
    registrations: list[dict[str, Any]] = []
    session.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: registrations.extend(event["registrations"]),
    )
    session.send("ServiceWorker.enable")
    while not registrations:
        page.wait_for_timeout(20)
    session.send(
        "ServiceWorker.deliverPushMessage",
        {
            "origin": page.evaluate("location.origin"),
            "registrationId": registrations[-1]["registrationId"],
            "data": json.dumps(push),
        },
    )
    session.detach()


@needs_browser
@pytest.mark.parametrize(
    ("locale", "text"),
    [
        ("en-GB", "2 new likes on “Noodles”"),
        ("zh-CN", "“Noodles”有 2 个新赞"),
        ("ru-RU", "Новых отметок «нравится»: 2 — «Noodles»"),
    ],
)
def test_the_service_worker_shows_a_push_and_replaces_an_older_one(
    open_app: OpenApp, locale: str, text: str
) -> None:
    page = open_app("/", locale=locale).page
    page.context.grant_permissions(["notifications"])
    page.evaluate(_REGISTERED)
    push = {
        "topic": "t" * 32,
        "user_id": str(AUTHOR),
        "kind": "like",
        "subject": {"type": "post", "id": "12", "text": "Noodles"},
        "fresh": 2,
        "what": None,
        "unread": 1,
        "at": "1--F-----b",
    }
    deliver(page, {**push, "fresh": 1, "at": "1--F-----a"})
    deliver(page, push)
    deliver(page, {**push, "fresh": 9, "at": "1--F-----a"})  # it was late
    deliver(page, {**push, "topic": "o" * 32, "kind": "order", "what": "success"})

    def shown() -> list[list[str]]:
        notifications: list[list[str]] = page.evaluate(_SHOWN)
        return sorted(notifications)

    wait_until("both are shown", lambda: len(shown()) == 2)
    assert [text, "t" * 32, locale[:2], "#/posts/12"] in shown()


@needs_browser
def test_a_user_chooses_what_is_pushed_to_a_browser(
    service: FakePushService, open_app: OpenApp, rows: Callable[..., Any]
) -> None:
    app = open_app("/", READER)
    page, browser = app.page, service.subscribe("laptop")
    endpoint, public_key, auth = browser.subscription
    keys = json.dumps({"p256dh": public_key, "auth": auth})
    script = f"const ENDPOINT = {json.dumps(endpoint)}, KEYS = {keys};{_SUBSCRIBES}"
    page.add_init_script(script)
    page.context.grant_permissions(["notifications"])
    page.reload()
    app.open("/settings")
    assert find_wide(page) == []
    app.check_accessibility()
    page.get_by_role("button", name="Push to this browser").click()
    expect(page.get_by_role("button", name="Stop pushing to this browser")).to_be_visible()
    assert rows("SELECT endpoint FROM push_subscription WHERE user_id = %s", READER) == (
        (endpoint,),
    )
    assert page.evaluate("localStorage.getItem('subscribed')")
    page.get_by_label("Likes").uncheck()
    wait_until(
        "it is stored",
        lambda: (
            rows("SELECT kind, is_on FROM notification_preference WHERE user_id = %s", READER)
            == (("like", 0),)
        ),
    )
    page.get_by_role("button", name="Sign out").click()
    wait_until(
        "it ended",
        lambda: rows("SELECT endpoint FROM push_subscription WHERE user_id = %s", READER) == (),
    )
