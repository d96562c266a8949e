"""The figures that such products quote, in their units: shop pages, orders and likes a second.

Requests go through the handlers of four processes, as workers of Lambda run them, on a real Redis
and MariaDB. SQS is a server that accepts messages and stores nothing; what it accepted is given to
the consumers afterwards, and the rows in MySQL are counted: all that was accepted must be there.
"""

import time
from itertools import count
from typing import Any

from bench import shops
from bench.api import like_event, load_handler
from bench.baselines import transaction_order
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness, insert_rows
from bench.workers import Load, Request, build_request, play
from local.load.crowd import WORKERS
from local.stack.functions import make_api_event
from plaza.commerce.flash_sales import Terms, create_voucher, persist
from plaza.commerce.shops.jobs import run_jobs
from plaza.commerce.shops.model import FILTER, ShopJobStep
from plaza.core.reactions.persist import REACTIONS
from plaza.infra.mysql import mysql
from plaza.infra.queues.queue import Queue

PAGES, ORDERS, LIKES = 12_000, 8_000, 12_000
SHOP_PAGES = 2_000
POSTS = range(30_000_001, 30_000_201)
FIRST_USER = 30_000_001
BATCH = 1_000


def measure(harness: Harness) -> list[Figure]:
    return [*_pages(harness), *_orders(harness), *_likes(harness)]


def _pages(harness: Harness) -> list[Figure]:
    """Compare shop pages of a skewed crowd with the cache, from an empty one, and without."""
    shops.add_shops(SHOP_PAGES)
    requests = shops.build_requests(shops.draw(SHOP_PAGES, harness.scale(PAGES)))
    harness.clear()
    run_jobs([ShopJobStep(FILTER)])
    cached = play(requests)
    bare = play(requests, shops.bypass_cache)
    peer = Peer("no cache", bare.tally.rate)
    return [
        *_describe("shop pages", "pages/s", cached, peer),
        *_describe_peer("no cache", bare),
    ]


def _orders(harness: Harness) -> list[Figure]:
    """Compare orders of one sale with a synchronous transaction for each."""
    count_ = harness.scale(ORDERS)
    buyers = range(FIRST_USER, FIRST_USER + count_)
    harness.clear()
    for table in transaction_order.TABLES:
        mysql.write(table)
    insert_rows("shop (id, name)", ["(5,'Bistro')"])
    now_us = time.time_ns() // 1000
    terms = Terms(5, "Dinner", 1990, count_, now_us - 1_000_000, now_us + 3_600_000_000)
    voucher = create_voucher.create_voucher(terms, FIRST_USER)
    mysql.write(f"INSERT INTO transaction_stock VALUES ({voucher.id}, {count_})")
    handler = load_handler("flash_sales")
    ours = play(
        [
            build_request(
                handler,
                make_api_event("POST /vouchers/{voucher_id}/orders", buyer, voucher_id=voucher.id),
            )
            for buyer in buyers
        ]
    )
    _consume(persist.ORDERS, ours)
    saved = _count(f"voucher_order WHERE voucher_id = {voucher.id}")
    bare = play([_buy(voucher.id, buyer) for buyer in buyers])
    peer = Peer("a transaction each", bare.tally.rate)
    return [
        *_describe("orders of one sale", "orders/s", ours, peer),
        _persisted(saved, len(buyers) - ours.tally.errors),
        *_describe_peer("a transaction each", bare),
    ]


def _likes(harness: Harness) -> list[Figure]:
    harness.clear()
    harness.add_posts(POSTS)
    handler, users = load_handler(), count(FIRST_USER)
    requests = [
        build_request(handler, like_event(POSTS[i % len(POSTS)], next(users)))
        for i in range(harness.scale(LIKES))
    ]
    load = play(requests)
    _consume(REACTIONS, load)
    saved = _count(f"reaction WHERE target_id BETWEEN {POSTS[0]} AND {POSTS[-1]} AND state = 1")
    return [
        *_describe("likes", "likes/s", load),
        _persisted(saved, len(requests) - load.tally.errors),
    ]


def _describe(name: str, unit: str, load: Load, peer: Peer | None = None) -> list[Figure]:
    percentiles = load.tally.percentiles
    return [
        Figure(f"{name}, {WORKERS} processes", load.tally.rate, unit, peer),
        Figure("  p50", percentiles.p50_ms, "ms"),
        Figure("  p99", percentiles.p99_ms, "ms"),
        Figure("  errors", load.tally.errors, "", goal=Goal("at most", 0)),
    ]


def _describe_peer(name: str, load: Load) -> list[Figure]:
    percentiles = load.tally.percentiles
    return [
        Figure(f"  {name}: p50", percentiles.p50_ms, "ms"),
        Figure(f"  {name}: p99", percentiles.p99_ms, "ms"),
        Figure(f"  {name}: errors", load.tally.errors, ""),
    ]


def _persisted(saved: int, accepted: int) -> Figure:
    missing = Goal("at least", 1, "ratio")
    return Figure("  persisted in the end", saved, "rows", Peer("accepted", accepted), missing)


def _buy(voucher_id: int, buyer_id: int) -> Request:
    def request() -> bool:
        transaction_order.order(voucher_id, buyer_id)
        return True

    return request


def _consume(queue: Queue[Any], load: Load) -> None:
    """Give the messages of a queue to its consumer, in batches."""
    bodies = [body for name, body in load.messages if name == queue.name]
    for first in range(0, len(bodies), BATCH):
        queue.handle([queue.decode(body) for body in bodies[first : first + BATCH]])


def _count(rows: str) -> int:
    return int(mysql.fetch_all(f"SELECT COUNT(*) FROM {rows}")[0][0])
