"""Reservations beside a bare stock script: decisions a second over 50 connections."""

import time
from functools import partial
from pathlib import Path

from bench.figures import Figure, Goal, Peer
from bench.gate import Run, race, run_script
from bench.harness import Harness
from cli.paths import CommandError
from plaza.commerce.flash_sales.model import MAX_STOCK, SaleGeneration, Terms, Voucher
from plaza.commerce.flash_sales.redis_keys import reserve_keys, state_key
from plaza.commerce.flash_sales.redis_load import begin_loading, open_sale
from plaza.commerce.flash_sales.redis_orders import RESERVE
from plaza.commerce.flash_sales.redis_sales import read_counts
from plaza.infra.redis import redis
from plaza.infra.redis.scripts import load_script

BARE_STOCK = load_script(Path(__file__).with_name("baselines") / "bare_stock.lua")
RUNS = 5
DECISIONS = 100_000  # the limit of pending orders
BUCKETS = 2_000  # of about 50 buyers each, as in a real sale
REPEATS = 3_000
NEVER_REACHED = 1_000_000_000
US_PER_ORDER = 1  # no rate limit
NUMBER = "__rand_int__"  # redis-benchmark inserts twelve digits, below BUCKETS
RANDOM_BUYER = NUMBER + NUMBER  # about one in 80 repeats in a run
SALE = SaleGeneration(7, 1, MAX_STOCK)


def measure(harness: Harness) -> list[Figure]:
    calls = harness.scale(DECISIONS)
    benches = (_reserve, _bare, _refuse, _refuse_bare)
    turns = [partial(bench, harness, calls) for bench in benches]
    ours, bare, refused, bare_refused = race(turns, RUNS)
    goal, half = Goal("at least", 0.65, "ratio"), Goal("at least", 0.5, "ratio")
    peer, peer_refused = Peer("bare stock script", bare.rate), Peer("the same", bare_refused.rate)
    return [
        Figure("reserve, one unit taken", ours.rate, "decisions/s", peer, goal),
        Figure("reserve, sold out", refused.rate, "decisions/s", peer_refused, half),
        Figure("  CPU of Redis, taken", ours.cpu_us, "us", Peer("bare", bare.cpu_us)),
        Figure(
            f"orders of one buyer after {REPEATS:,} concurrent clicks",
            _repeat(harness),
            "",
            goal=Goal("at most", 1),
        ),
    ]


def _reserve(harness: Harness, calls: int) -> Run:
    _begin(harness)
    run = run_script(harness, calls, RESERVE, _keys(), _args(RANDOM_BUYER), random_below=BUCKETS)
    counts = read_counts([SALE.voucher_id])[SALE.voucher_id]
    if (
        not calls * 0.98 <= counts.pending <= calls
        or counts.stock + counts.pending != counts.initial_stock
    ):
        raise CommandError(f"of {calls} calls {counts.pending} took a unit: invalid run")
    return run


def _refuse(harness: Harness, calls: int) -> Run:
    _begin(harness)
    redis.execute("HSET", state_key(SALE.voucher_id), "counts", "0:0:0:0:0")
    return run_script(harness, calls, RESERVE, _keys(), _args(RANDOM_BUYER), random_below=BUCKETS)


def _bare(harness: Harness, calls: int) -> Run:
    harness.clear()
    redis.execute("SET", "stock", MAX_STOCK)
    run = _run_bare(harness, calls)
    if not calls * 0.98 <= int(redis.execute("SCARD", "buyers")) <= calls:
        raise CommandError("the bare script sold another number: invalid run")
    return run


def _refuse_bare(harness: Harness, calls: int) -> Run:
    harness.clear()
    redis.execute("SET", "stock", 0)
    return _run_bare(harness, calls)


def _run_bare(harness: Harness, calls: int) -> Run:
    keys, args = ("stock", "buyers"), (RANDOM_BUYER,)
    return run_script(harness, calls, BARE_STOCK, keys, args, random_below=BUCKETS)


def _repeat(harness: Harness) -> int:
    _begin(harness)
    run_script(harness, REPEATS, RESERVE, reserve_keys(SALE, 7), _args("7"), clients=500)
    return read_counts([SALE.voucher_id])[SALE.voucher_id].pending


def _begin(harness: Harness) -> None:
    harness.clear()
    now_us = time.time_ns() // 1000
    terms = Terms(5, "Dinner", 1990, MAX_STOCK, now_us - 1_000_000, now_us + 3_600_000_000)
    begin_loading(SALE, Voucher(SALE.voucher_id, terms, MAX_STOCK, 1, finalized=False), 0)
    if open_sale(SALE, drained=True) != "LIVE":
        raise CommandError("the sale does not open")


def _keys() -> tuple[str, str, str, str]:
    state, buyers, recovery, offers = reserve_keys(SALE, 7)
    return state, f"{buyers.rpartition(':')[0]}:{NUMBER}", recovery, offers


def _args(buyer: str) -> tuple[str | int, ...]:
    return SALE.generation, RANDOM_BUYER, buyer, US_PER_ORDER, NEVER_REACHED
