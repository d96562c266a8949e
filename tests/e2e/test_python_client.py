"""The Python client on the deployed stack: posts, likes, a sale, a server that acts for users."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cli.paths import ROOT
from local.load.town import make_voucher
from local.stack.stack import Stack
from plaza_client import AsyncPlaza, Plaza, Totals, problems
from tests.e2e.client import Client, read_like_totals, wait_until
from tests.support.guide_apps import APPS, GUIDE, open_browser

ADMIN, ADA, BO, ASYNC_USERS = 6_990_001, 6_990_002, 6_990_003, range(6_990_004, 6_990_012)


@pytest.fixture(scope="module")
def key(stack: Stack) -> str:
    """A key of a server, made as the guide prints it."""
    [command] = re.findall(r"^export PLAZA_KEY=\$\(\S+ -m ops (.*)\)$", GUIDE.read_text(), re.M)
    words = [sys.executable, "-m", "ops", "--dir", str(stack.directory), *command.split()]
    made = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return made.stdout.strip()


@pytest.fixture
def ada(user: Callable[[int], Client]) -> Plaza:
    return user(ADA).plaza


@pytest.fixture
def bo(user: Callable[[int], Client]) -> Plaza:
    return user(BO).plaza


def test_two_users_meet_and_everything_is_counted_once(
    ada: Plaza, bo: Plaza, rows: Callable[..., Any]
) -> None:
    post = ada.posts.create(
        {"kind": "note", "title": "Hello", "body": "First post"}, idempotency_key="journey"
    )
    again = ada.posts.create(
        {"kind": "note", "title": "Hello", "body": "First post"}, idempotency_key="journey"
    )
    assert again["id"] == post["id"]
    with pytest.raises(problems.IdempotencyKeyReused):
        ada.posts.create({"kind": "note", "title": "Other", "body": "-"}, idempotency_key="journey")
    with pytest.raises(problems.InvalidRequest) as refused:
        ada.posts.create({"kind": "note", "title": " ", "body": "-"})
    assert refused.value.field("title")
    assert refused.value.request_id
    second = ada.posts.create({"kind": "note", "title": "Again", "body": "-"})

    assert bo.users.follow(str(ADA))["following"]
    wait_until(
        "both posts are in the feed, page by page",
        lambda: (
            [item["id"] for item in bo.feed.list_posts(limit=1)][:2] == [second["id"], post["id"]]
        ),
    )
    totals = Totals()
    for _ in range(2):
        assert bo.posts.like(post["id"])["likes"] == 1
    bo.posts.collect(post["id"])
    seen = ada.posts.get(post["id"])
    assert (seen["likes"], seen["collects"], seen["mine"]) == (
        1,
        1,
        {"liked": False, "collected": False},
    )
    assert totals.offer("post", seen)
    assert totals.of("post", post["id"])["likes"].total == 1
    wait_until("MySQL has one like", lambda: read_like_totals(rows, int(post["id"])) == (1, 1))
    likers = wait_until("the like is listed", lambda: [*ada.posts.list_likers(post["id"])])
    assert [liker["user_id"] for liker in likers] == [str(BO)]
    ada.posts.delete(post["id"])
    with pytest.raises(problems.Gone):
        bo.posts.like(post["id"])


def test_two_buyers_of_one_unit_get_it_once(
    base_url: str, sign_in: Callable[..., str], ada: Plaza, bo: Plaza
) -> None:
    admin = Client(base_url, sign_in(ADMIN, role="admin")).plaza
    shop = admin.shops.create({"name": "Corner Books"})["id"]
    offer: Any = make_voucher(shop, time.time(), stock=1)
    voucher = admin.vouchers.create(offer)["id"]

    def buy(plaza: Plaza) -> str:
        try:
            order = plaza.buy(voucher)
        except (problems.SoldOut, problems.AlreadyOrdered):
            return "refused"
        return order["order_id"] if order["status"] == "success" else order["status"]

    with ThreadPoolExecutor(4) as buyers:
        outcomes = {*buyers.map(buy, [ada, bo, ada, bo])}
    assert len(outcomes - {"refused", "failed"}) == 1


def test_many_tasks_share_a_client_and_each_acts_for_its_own_user(
    base_url: str, sign_in: Callable[..., str], key: str, add: Callable[..., int]
) -> None:
    post = str(add())
    tokens = {user: sign_in(user) for user in ASYNC_USERS}

    async def like_all() -> list[str]:
        async with AsyncPlaza(base_url, token=key) as plaza:

            async def like(user: int) -> None:
                acting = plaza.act_as(str(user)) if user % 2 else plaza.with_token(tokens[user])
                assert (await acting.posts.like(post))["changed"]
                assert (await acting.users.get_my_profile())["id"] == str(user)

            await asyncio.gather(*map(like, ASYNC_USERS))
            assert (await plaza.posts.get(post))["likes"] == len(ASYNC_USERS)
            while len(ids := [u["user_id"] async for u in plaza.posts.list_likers(post)]) < len(
                ASYNC_USERS
            ):
                await asyncio.sleep(0.1)
            return ids

    liked = asyncio.run(asyncio.wait_for(like_all(), 30))
    assert sorted(liked) == sorted(map(str, ASYNC_USERS))


def test_a_key_refuses_what_it_has_no_scope_for(base_url: str, key: str) -> None:
    with Plaza(base_url, token=key) as plaza:
        with pytest.raises(problems.Forbidden):
            plaza.act_as(str(ADA)).ops.get_lag()
        with pytest.raises(problems.Unauthenticated):
            plaza.users.get_my_profile()


@pytest.mark.parametrize("app", APPS)
def test_a_server_rendered_button_is_pressed_by_a_user_of_its_app(
    app: str, base_url: str, key: str, add: Callable[..., int], rows: Callable[..., Any]
) -> None:
    post = add()
    with open_browser(app, base_url, key) as browser:
        button = browser.open(post)
        assert (button.text, button.pressed) == ("♡ 0", False)
        button = browser.press(button)
        assert (button.text, button.pressed) == ("♥ 1", True)
        wait_until("MySQL has one like", lambda: read_like_totals(rows, post) == (1, 1))
        assert browser.press(button).text == "♡ 0"
        assert browser.open(999_999_999_999).text == "This post does not exist."
    wait_until("MySQL has no like", lambda: read_like_totals(rows, post) == (0, 0))
