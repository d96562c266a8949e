"""Pages of shops with and without the cache: database reads, requests, CPU.

Popularity follows Zipf's law, and the cache begins empty: only repeated reads of a page are saved.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any
from unittest import mock

from bench.api import load_handler
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness, insert_rows
from bench.meters import cpu_ms
from bench.round_trips import count_round_trips
from bench.workers import Request, build_request, play
from cli.paths import CommandError
from local.load.crowd import WORKERS
from local.stack.functions import make_api_event
from plaza.commerce.shops import queries
from plaza.commerce.shops.jobs import run_jobs
from plaza.commerce.shops.model import FILTER, ShopJobStep
from plaza.infra.derived.cache import CachedValue
from plaza.infra.mysql import mysql
from plaza.social.shop_scores import mysql_store as shop_scores

SHOPS = 2_000
REQUESTS = 12_000
ROUNDS = 3
_PAGE = (
    "'Torstrasse 1, 10119 Berlin', 13.4, 52.52, 1400, 'Mon-Sat 11-22',"
    '\'["https://pics.example/1.jpg", "https://pics.example/2.jpg"]\''
)


def measure(harness: Harness) -> list[Figure]:
    """Measure the same requests with and without the cache, in turns; the best of three rounds."""
    shops, requests = harness.scale(SHOPS), harness.scale(REQUESTS)
    add_shops(shops)
    pages = build_requests(draw(shops, requests))

    harness.clear()
    run_jobs([ShopJobStep(FILTER)])
    with _count_reads() as cached:
        _serve(pages)
    with bypass_cache(), _count_reads() as bare:
        _serve(pages)
    with count_round_trips() as sent:
        _serve(pages[:1])

    rates, bare_rates, took_ms, bare_ms = [], [], [], []
    serve = partial(_serve, pages)
    for _ in range(ROUNDS):
        rates.append(_rate(pages))
        took_ms.append(cpu_ms(serve) / requests)
        with bypass_cache():
            bare_rates.append(_rate(pages))
            bare_ms.append(cpu_ms(serve) / requests)
    reads, bare_reads = cached.call_count, bare.call_count
    rate = Peer("no cache", max(bare_rates))
    return [
        Figure("shop page, warm, Redis round trips", sent.sent, "", goal=Goal("at most", 1)),
        Figure(
            "shop pages served by one database read",
            bare_reads / max(reads, 1),
            "",
            Peer("no cache", 1.0),
            Goal("at least", 5, "ratio"),
        ),
        Figure(
            f"  database reads of {requests:,}",
            cached.call_count,
            "",
            Peer("no cache", bare.call_count),
        ),
        Figure(f"  requests/s, {WORKERS} processes", max(rates), "requests/s", rate),
        Figure("  CPU of a page", min(took_ms), "ms", Peer("no cache", min(bare_ms))),
    ]


def _count_reads() -> Any:
    """Count the statements that read, as ``call_count`` of a mock."""
    return mock.patch.object(mysql, "fetch_all", wraps=mysql.fetch_all)


@contextmanager
def bypass_cache() -> Iterator[None]:
    """Read each page, and the totals of its reviews, from MySQL."""

    def load(shop_id: int, _: object = None) -> queries._Page:
        version, shop = queries._load(shop_id)
        return queries._Page(CachedValue(version, shop, stale=False), shop_scores.load(shop_id))

    with mock.patch.object(queries, "_find_page", load):
        yield


def add_shops(count: int) -> None:
    insert_rows(
        "shop (id, name, type_id, address, x, y, avg_price_cents, open_hours, images)",
        (f"({i},'Noodles {i}',1,{_PAGE})" for i in range(1, count + 1)),
    )


def draw(shops: int, requests: int) -> list[int]:
    weights = list(accumulate(1 / rank for rank in range(1, shops + 1)))
    return random.Random(7).choices(range(1, shops + 1), cum_weights=weights, k=requests)


def build_requests(asked: Sequence[int]) -> list[Request]:
    """Return a request for the page of each shop."""
    handler = load_handler("shops")
    events = [make_api_event("GET /shops/{shop_id}", 7, shop_id=shop_id) for shop_id in asked]
    return [build_request(handler, event) for event in events]


def _serve(requests: Sequence[Request]) -> None:
    if not all(request() for request in requests):
        raise CommandError("a shop page is an error")


def _rate(requests: Sequence[Request]) -> float:
    """Return the pages a second of several processes. Raises CommandError after an error."""
    load = play(requests)
    if load.tally.errors:
        raise CommandError(f"{load.tally.errors} shop pages are errors")
    return load.tally.rate
