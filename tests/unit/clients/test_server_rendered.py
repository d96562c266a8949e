"""The apps of docs/guides/server-rendered.md, on a stand-in for Plaza."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from plaza_client.testing import ExampleTransport
from tests.support.guide_apps import APPS, USER, AppBrowser, open_browser

URL = "https://plaza.test"
POST: dict[str, Any] = {"title": "<script>", "likes": 42, "mine": {"liked": False}}
LIKED = POST | {"likes": 43, "mine": {"liked": True}}


@pytest.fixture(params=APPS)
def app(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def transport() -> ExampleTransport:
    """Given a post that the user does not like."""
    made = ExampleTransport()
    made.answer("posts.get", POST)
    return made


@pytest.fixture
def browser(app: str, transport: ExampleTransport) -> Iterator[AppBrowser]:
    with open_browser(app, URL, "sk_1_key", transport) as opened:
        yield opened


def test_the_button_is_rendered_and_pressed_as_the_user_of_the_app(
    browser: AppBrowser, transport: ExampleTransport
) -> None:
    button = browser.open("12")
    assert (button.text, button.pressed) == ("♡ 42", False)
    transport.answer("posts.get", LIKED)
    button = browser.press(button)
    assert (button.text, button.pressed) == ("♥ 43", True)
    transport.answer("posts.get", POST)
    assert browser.press(button).text == "♡ 42"
    assert transport.names == ["posts.get", "posts.like", "posts.get", "posts.unlike", "posts.get"]
    assert {request.headers["plaza-user"] for request in transport.requests} == {f"my-app|{USER}"}
    assert {request.url.path for request in transport.requests} == {
        "/posts/12",
        "/posts/12/likes/me",
    }


def test_texts_of_users_are_escaped(browser: AppBrowser) -> None:
    page = browser.client.get("/posts/12/", follow=True).content.decode()
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


@pytest.mark.parametrize(("slug", "status"), [("not-found", 404), ("gone", 404)])
def test_a_post_that_does_not_exist_is_a_page_that_says_so(
    browser: AppBrowser, transport: ExampleTransport, slug: str, status: int
) -> None:
    transport.refuse("posts.get", slug)
    assert browser.open("12")[:2] == (status, "This post does not exist.")


def test_a_press_that_was_not_saved_is_a_page_that_says_so(
    browser: AppBrowser, transport: ExampleTransport
) -> None:
    button = browser.open("12")
    transport.refuse("posts.like", "unavailable", times=1)
    transport.fail("posts.like", times=1)
    for _ in range(2):
        assert browser.press(button)[:2] == (503, "This was not saved. Try again.")


def test_a_press_without_a_user_or_without_the_token_of_the_form_reaches_no_like(
    app: str, transport: ExampleTransport
) -> None:
    with open_browser(app, URL, "sk_1_key", transport, signed_in=False) as anonymous:
        answered = anonymous.client.post("/posts/12/like", {}, follow=False)
        assert answered.status_code in (302, 401, 403)
    if app == "django":
        with open_browser(app, URL, "sk_1_key", transport) as forged:
            assert forged.client.post("/posts/12/like", {}, follow=False).status_code == 403
    assert transport.names == []
