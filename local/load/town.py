"""The town of the demo crowd: shop types, shops, reviews, and a running flash sale.

An admin and some of the crowd create all of it through the API.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from cli.paths import CommandError
from local.load.crowd import Client
from local.load.requests import Call
from local.stack.stack import Stack
from local.stack.tokens import create_users, open_sessions

ADMIN = 8_999_999
BERLIN = (13.405, 52.52)
TYPES = ("Food", "Coffee", "Books", "Music")
SHOPS = 16
REVIEWS = 40
STOCK = 100
BUYERS = 24
OPEN_S = 24 * 3600
MAX_ATTEMPTS = 12  # a minute
_NAMES = ("Linden", "Harbour", "Corner", "Garden")
_OPINIONS = ("I come back every week.", "Good, but crowded.", "A find!", "Friendly people.")


class Town(NamedTuple):
    types: int
    shops: int
    reviews: int
    voucher: str
    orders: int


def build(
    stack: Stack, user_ids: Sequence[int], seed: int, on_progress: Callable[[str], None]
) -> Town:
    """Create the town. ``on_progress`` gets each step. Raises CommandError when a request fails."""
    create_users(stack.mysql_url, [ADMIN], "admin")
    tokens = dict(zip(user_ids, open_sessions(stack, user_ids), strict=True))
    [tokens[ADMIN]] = open_sessions(stack, [ADMIN], "admin")
    town = asyncio.run(_build(stack.base_url, tokens, user_ids, random.Random(seed), on_progress))
    on_progress("rankings")
    stack.invoke("RefreshRankings", {})
    return town


async def _build(
    base_url: str,
    tokens: Mapping[int, str],
    user_ids: Sequence[int],
    chance: random.Random,
    on_progress: Callable[[str], None],
) -> Town:
    async with Client(base_url, tokens, 1, max_attempts=MAX_ATTEMPTS) as client:
        on_progress("shops")
        types = [await _create(client, "/shop-types", ADMIN, kind) for kind in make_types()]
        made = make_shops([kind["id"] for kind in types], chance)
        shops = [(await _create(client, "/shops", ADMIN, shop))["id"] for shop in made]
        on_progress("reviews")
        reviews = make_reviews(shops, user_ids, chance)
        for shop_id, author_id, review in reviews:
            await _create(client, f"/shops/{shop_id}/reviews", author_id, review)
        on_progress("a flash sale")
        voucher = make_voucher(shops[0], time.time())
        voucher_id = (await _create(client, "/vouchers", ADMIN, voucher))["id"]
        for buyer_id in user_ids[:BUYERS]:
            await _create(client, f"/vouchers/{voucher_id}/orders", buyer_id, None, status=202)
    orders = min(BUYERS, len(user_ids))
    return Town(len(types), len(shops), len(reviews), voucher_id, orders)


def make_types() -> list[dict[str, Any]]:
    return [{"name": name, "sort": place} for place, name in enumerate(TYPES)]


def make_shops(type_ids: Sequence[str], chance: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "name": f"{_NAMES[number // len(TYPES) % len(_NAMES)]} {TYPES[number % len(TYPES)]}",
            "type_id": type_ids[number % len(type_ids)],
            "area": "Mitte",
            "place": {
                "x": round(BERLIN[0] + chance.gauss(0, 0.02), 6),
                "y": round(BERLIN[1] + chance.gauss(0, 0.01), 6),
            },
            "avg_price_cents": chance.randrange(500, 6000, 50),
            "open_hours": "Mon-Sat 10-20",
        }
        for number in range(SHOPS)
    ]


def make_reviews(
    shops: Sequence[str], user_ids: Sequence[int], chance: random.Random
) -> list[tuple[str, int, dict[str, Any]]]:
    """Return (shop, author, review), once each; the first shops have the most reviews."""
    reviews: dict[tuple[str, int], dict[str, Any]] = {}
    while len(reviews) < min(REVIEWS, len(shops) * len(user_ids)):
        pair = shops[int(len(shops) * chance.random() ** 2)], chance.choice(user_ids)
        reviews[pair] = {"score": chance.choice((3, 4, 4, 5, 5)), "body": chance.choice(_OPINIONS)}
    return [(*pair, review) for pair, review in reviews.items()]


def make_voucher(
    shop_id: str, now_s: float, stock: int = STOCK, open_s: float = OPEN_S
) -> dict[str, Any]:
    """Return a flash sale that opened a minute ago and closes in ``open_s``, by default a day."""
    return {
        "shop_id": shop_id,
        "title": "Dinner for two",
        "price_cents": 1990,
        "stock": stock,
        "opens_at": _format_time(now_s - 60),
        "closes_at": _format_time(now_s + open_s),
    }


async def _create(
    client: Client,
    path: str,
    user_id: int,
    body: Mapping[str, Any] | None,
    status: int = 201,
) -> Mapping[str, Any]:
    """Send a POST. Raises CommandError for another status than 200 and ``status``."""
    answer = await client.send(Call("POST", path, body), user_id)
    if answer.status not in (status, 200):
        raise CommandError(f"POST {path} answers {answer}")
    return answer.body


def _format_time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat()
