"""Reserving beside the bare stock script: decisions a second over 50 connections."""

from __future__ import annotations

import time
from pathlib import Path

from bench.figures import Figure, Goal, Peer
from bench.gate import Run, run_script
from bench.stage import Stage
from local.paths import LocalError
from plaza.flash_sales.flash_sales import MOST_STOCK, Life, Terms, Voucher
from plaza.flash_sales.redis_vouchers import (
    RESERVE,
    buyers_key,
    load,
    open_life,
    recovery_key,
    see,
    state_key,
)
from plaza.infra import redis
from plaza.infra.lua import load_script

BARE_STOCK = load_script(Path(__file__).with_name("baselines") / "bare_stock.lua")
RUNS = 5
DECISIONS = 100_000  # the most that may be pending
BUCKETS = 2_000  # so many buckets get about 50 buyers each, as in a real sale
REPEATS = 3_000
NEVER_REACHED = 1_000_000_000
NUMBER = "__rand_int__"  # redis-benchmark puts a number of twelve digits here, below BUCKETS
SOMEBODY = NUMBER + NUMBER  # about one in 80 comes twice in a run
LIFE = Life(7, 1, MOST_STOCK)


def measure(stage: Stage) -> list[Figure]:
    """Units taken, and refusals when nothing is left. They take turns; the best of each counts."""
    calls = stage.some(DECISIONS)
    benches = (_reserve, _bare, _refuse, _refuse_bare)
    rounds = [[bench(stage, calls) for bench in benches] for _ in range(RUNS)]
    ours, bare, refused, bare_refused = (
        Run(max(run.rate for run in runs), min(run.cpu_us for run in runs))
        for runs in zip(*rounds, strict=True)
    )
    least = Goal("at least", 0.5, "ratio")
    peer, peer_refused = Peer("bare stock script", bare.rate), Peer("the same", bare_refused.rate)
    return [
        Figure("reserve, one unit taken", ours.rate, "decisions/s", peer, least),
        Figure("reserve, sold out", refused.rate, "decisions/s", peer_refused, least),
        Figure("  CPU of Redis, taken", ours.cpu_us, "us", Peer("bare", bare.cpu_us)),
        Figure(
            f"orders of one buyer who clicks {REPEATS:,} times at once",
            _repeat(stage),
            "",
            goal=Goal("at most", 1),
        ),
    ]


def _reserve(stage: Stage, calls: int) -> Run:
    _begin(stage, MOST_STOCK)
    run = run_script(stage, calls, RESERVE, _keys(), _args(SOMEBODY), most=BUCKETS)
    seen = see([LIFE.voucher_id])[LIFE.voucher_id]
    if not calls * 0.98 <= seen.pending <= calls or seen.stock + seen.pending != seen.initial:
        raise LocalError(f"of {calls} calls {seen.pending} took a unit: this measures nothing")
    return run


def _refuse(stage: Stage, calls: int) -> Run:
    _begin(stage, MOST_STOCK)
    redis.execute("HSET", state_key(LIFE.voucher_id), "stock", 0)
    return run_script(stage, calls, RESERVE, _keys(), _args(SOMEBODY), most=BUCKETS)


def _bare(stage: Stage, calls: int) -> Run:
    stage.clear()
    redis.execute("SET", "stock", MOST_STOCK)
    run = run_script(stage, calls, BARE_STOCK, ("stock", "buyers"), (SOMEBODY,), most=BUCKETS)
    if not calls * 0.98 <= int(redis.execute("SCARD", "buyers")) <= calls:
        raise LocalError("the bare script sold something else: this measures nothing")
    return run


def _refuse_bare(stage: Stage, calls: int) -> Run:
    stage.clear()
    redis.execute("SET", "stock", 0)
    return run_script(stage, calls, BARE_STOCK, ("stock", "buyers"), (SOMEBODY,), most=BUCKETS)


def _repeat(stage: Stage) -> int:
    """How many orders one buyer has after all their clicks."""
    _begin(stage, MOST_STOCK)
    keys = (state_key(LIFE.voucher_id), buyers_key(LIFE, 7), recovery_key(LIFE))
    run_script(stage, REPEATS, RESERVE, keys, _args("7"), clients=500)
    return see([LIFE.voucher_id])[LIFE.voucher_id].pending


def _begin(stage: Stage, stock: int) -> None:
    """A sale that has begun and lets everybody in."""
    stage.clear()
    now_us = time.time_ns() // 1000
    terms = Terms(5, "Dinner", 1990, stock, now_us - 1_000_000, now_us + 3_600_000_000)
    load(LIFE, Voucher(LIFE.voucher_id, terms, stock, 1, settled=False), 0)
    if open_life(LIFE, None, drained=True) != "LIVE":
        raise LocalError("the sale does not open")


def _keys() -> tuple[str, str, str]:
    buyers, _, _ = buyers_key(LIFE, 7).rpartition(":")
    return state_key(LIFE.voucher_id), f"{buyers}:{NUMBER}", recovery_key(LIFE)


def _args(buyer: str) -> tuple[str | int, ...]:
    return LIFE.epoch, SOMEBODY, buyer, NEVER_REACHED, NEVER_REACHED, NEVER_REACHED
