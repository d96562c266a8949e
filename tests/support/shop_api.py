"""Requests to the shops function in this process, and shops for them."""

from __future__ import annotations

import json
from typing import Any

from plaza.commerce.shops import redis_store
from plaza.commerce.shops.jobs import run_jobs
from plaza.commerce.shops.model import PLACES, ShopJobStep, ShopRefresh
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from tests.support.content_api import Reply
from tests.support.content_api import ask as ask_any

ADMIN = 9
FOOD, SPA = 1, 2
BERLIN = (13.4, 52.52)
NOODLES = {
    "name": "Noodles & Co",
    "type_id": str(FOOD),
    "area": "Mitte",
    "address": "Torstrasse 1",
    "place": {"x": BERLIN[0], "y": BERLIN[1]},
    "images": ["https://pics.example/1.jpg"],
    "avg_price_cents": 1400,
    "open_hours": "Mon-Sat 11-22",
}


def ask(method: str, path: str, body: Any = None, **options: Any) -> Reply:
    """Send one request to the shops function."""
    return ask_any(method, path, body, folder="api/shops", **options)


def write(method: str, path: str, body: Any = None) -> Reply:
    """Send one request of an admin."""
    return ask(method, path, body, user=ADMIN, role="admin")


def add_types() -> None:
    """Insert two types of shops."""
    mysql.write(
        "INSERT IGNORE INTO shop_type (id, name, sort) VALUES (1, 'Food', 2), (2, 'Spa', 1)"
    )


def create(**fields: Any) -> int:
    """Create a shop like NOODLES with other ``fields``; return its id."""
    reply = write("POST", "/shops", NOODLES | fields)
    assert reply.status == 201, reply.body
    return int(reply.body["id"])


def insert(rows: list[tuple[int, int | None, float | None, float | None]]) -> None:
    """Insert shops into MySQL: (id, type, x, y)."""
    values = ",".join(
        f"({i},'shop {i}',{'NULL' if t is None else t},{'NULL' if x is None else repr(x)},"
        f"{'NULL' if y is None else repr(y)})"
        for i, t, x, y in rows
    )
    mysql.write(f"INSERT INTO shop (id, name, type_id, x, y) VALUES {values}")


def build(*steps: ShopJobStep) -> None:
    """Run builds to their end, as the consumer does."""
    run_jobs(list(steps))


def build_places() -> None:
    """Build the places of all shops."""
    build(ShopJobStep(PLACES))


def refresh(*shop_ids: int) -> None:
    """Handle a message that refreshes these shops."""
    run_jobs([ShopRefresh(list(shop_ids))])


def page(shop_id: int) -> dict[str, Any] | None:
    """Return the page of a shop in Redis."""
    value = redis.execute("HGET", redis_store.page_key(shop_id), "value")
    return json.loads(value.partition(";")[2]) if value else None


def make_stale(shop_id: int) -> None:
    """Make the page of a shop stale."""
    key = redis_store.page_key(shop_id)
    text = redis.execute("HGET", key, "value").partition(";")[2]
    redis.execute("HSET", key, "value", f"1;{text}")
