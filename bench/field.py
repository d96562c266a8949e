"""The figures that such products quote, in their units: shop pages, orders and likes a second.

Requests go through the handlers of four processes, as workers of Lambda run them, on a real Redis
and MariaDB. SQS is a server that accepts messages and stores nothing; what it accepted is given to
the consumers afterwards, and the rows in MySQL are counted: all that was accepted must be there.
"""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any, NamedTuple
from unittest import mock

from bench import shops
from bench.api import Event, Handler, like_event, load_handler
from bench.baselines import transaction_order
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness, insert_rows
from local.output import latencies_ms
from local.stack.functions import make_api_event
from plaza.flash_sales import Terms, create_voucher, persist
from plaza.infra import mysql, redis, sqs
from plaza.infra.process import reset_process
from plaza.infra.queues import Queue
from plaza.reactions.persist import REACTIONS
from plaza.shops.jobs import run_jobs
from plaza.shops.model import FILTER, ShopJobStep

WORKERS = 4
PAGES, ORDERS, LIKES = 12_000, 8_000, 12_000
SHOP_PAGES = 2_000
POSTS = range(30_000_001, 30_000_201)
FIRST_USER = 30_000_001
BATCH = 1_000
_TIMEOUT_S = 600

Request = Callable[[], bool]
"""Sends a request; returns whether it succeeded."""


class Load(NamedTuple):
    """What ``WORKERS`` processes did: latencies of their requests, and messages by queue."""

    took_s: float
    latencies_s: list[float]
    errors: int
    messages: list[tuple[str, str]]

    @property
    def rate(self) -> float:
        return (len(self.latencies_s) - self.errors) / self.took_s


def measure(harness: Harness) -> list[Figure]:
    return [*_pages(harness), *_orders(harness), *_likes(harness)]


def _pages(harness: Harness) -> list[Figure]:
    """Compare shop pages of a skewed crowd with the cache, from an empty one, and without."""
    shops.add_shops(SHOP_PAGES)
    handler = load_handler("shops")
    asked = shops.draw(SHOP_PAGES, harness.scale(PAGES))
    requests = [
        ask(handler, make_api_event("GET /shops/{shop_id}", 7, shop_id=shop_id))
        for shop_id in asked
    ]
    harness.clear()
    run_jobs([ShopJobStep(FILTER)])
    cached = play(requests)
    bare = play(requests, shops.bypass_cache)
    peer = Peer("no cache", bare.rate)
    return _describe("shop pages", "pages/s", cached, peer)


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
            ask(
                handler,
                make_api_event("POST /vouchers/{voucher_id}/orders", buyer, voucher_id=voucher.id),
            )
            for buyer in buyers
        ]
    )
    consume(persist.ORDERS, ours)
    saved = _count(f"voucher_order WHERE voucher_id = {voucher.id}")
    bare = play([_buy(voucher.id, buyer) for buyer in buyers])
    peer = Peer("a transaction each", bare.rate)
    return [
        *_describe("orders of one sale", "orders/s", ours, peer),
        _persisted(saved, len(buyers) - ours.errors),
        Figure("  a transaction each: p99", latencies_ms(bare.latencies_s)[1], "ms"),
        Figure("  a transaction each: errors", bare.errors, ""),
    ]


def _likes(harness: Harness) -> list[Figure]:
    harness.clear()
    harness.add_posts(POSTS)
    handler, users = load_handler(), count(FIRST_USER)
    requests = [
        ask(handler, like_event(POSTS[i % len(POSTS)], next(users)))
        for i in range(harness.scale(LIKES))
    ]
    load = play(requests)
    consume(REACTIONS, load)
    saved = _count(f"reaction WHERE target_id BETWEEN {POSTS[0]} AND {POSTS[-1]} AND state = 1")
    return [
        *_describe("likes", "likes/s", load),
        _persisted(saved, len(requests) - load.errors),
    ]


def _describe(name: str, unit: str, load: Load, peer: Peer | None = None) -> list[Figure]:
    median_ms, p99_ms = latencies_ms(load.latencies_s)
    return [
        Figure(f"{name}, {WORKERS} processes", load.rate, unit, peer),
        Figure("  p50", median_ms, "ms"),
        Figure("  p99", p99_ms, "ms"),
        Figure("  errors", load.errors, "", goal=Goal("at most", 0)),
    ]


def _persisted(saved: int, accepted: int) -> Figure:
    missing = Goal("at least", 1, "ratio")
    return Figure("  persisted in the end", saved, "rows", Peer("accepted", accepted), missing)


def ask(handler: Handler, event: Event) -> Request:
    return lambda: handler(event, None)["statusCode"] < 300


def _buy(voucher_id: int, buyer_id: int) -> Request:
    def request() -> bool:
        transaction_order.order(voucher_id, buyer_id)
        return True

    return request


def play(
    requests: Sequence[Request],
    inside: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Load:
    """Share the requests out to processes with connections of their own, ``inside`` a context."""
    fork = multiprocessing.get_context("fork")
    ready = fork.Barrier(WORKERS + 1)
    done: Any = fork.SimpleQueue()

    def work(part: Sequence[Request]) -> None:
        for inherited in (redis._client, mysql._connection, sqs._sender):
            inherited.forget()
        reset_process()  # blocks of ids, too
        sent: list[tuple[str, str]] = []
        send = sqs.send

        def keep(queue: str, body: str, delay_s: int = 0) -> None:
            send(queue, body, delay_s)
            sent.append((queue, body))

        latencies_s, errors = [], 0
        with mock.patch.object(sqs, "send", keep), inside():
            errors += not part[0]()  # connects
            ready.wait()
            for request in part[1:]:
                began_s = time.perf_counter()
                errors += not request()
                latencies_s.append(time.perf_counter() - began_s)
            ready.wait()
        done.put((latencies_s, errors, sent))

    workers = [fork.Process(target=work, args=(requests[i::WORKERS],)) for i in range(WORKERS)]
    for worker in workers:
        worker.start()
    ready.wait(timeout=60)
    began_s = time.perf_counter()
    ready.wait(timeout=_TIMEOUT_S)
    took_s = time.perf_counter() - began_s
    parts = [done.get() for _ in workers]
    for worker in workers:
        worker.join()
    return Load(
        took_s,
        [latency_s for part in parts for latency_s in part[0]],
        sum(part[1] for part in parts),
        [message for part in parts for message in part[2]],
    )


def consume(queue: Queue[Any], load: Load) -> None:
    """Give the messages of a queue to its consumer, in batches."""
    bodies = [body for name, body in load.messages if name == queue.name]
    for first in range(0, len(bodies), BATCH):
        queue.handle([queue.decode(body) for body in bodies[first : first + BATCH]])


def _count(rows: str) -> int:
    return int(mysql.fetch_all(f"SELECT COUNT(*) FROM {rows}")[0][0])
