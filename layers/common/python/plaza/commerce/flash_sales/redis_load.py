"""Load the state of a sale into Redis: the lease of the process that does, and its progress."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from plaza.commerce.flash_sales.model import SaleGeneration, Voucher
from plaza.commerce.flash_sales.redis_keys import lease_key, state_key
from plaza.commerce.flash_sales.redis_sales import read_term
from plaza.infra.redis import locks, redis
from plaza.infra.redis.scripts import load_script

LEASE_MS = 10_000
MAX_DRAIN_US = 30_000_000
_LUA = Path(__file__).with_name("lua")
LOAD = load_script(_LUA / "load.lua")
OPEN = load_script(_LUA / "open.lua")


class LoadProgress(NamedTuple):
    """What is loaded of a generation, in its ``phase``: the cancelled orders up to id ``after``, or
    with ``stage`` 1 all of them and the successes of buyers up to it, with 2 the waitlist up to a
    seq, too. ``is_current``: the waitlist was read under the current term."""

    sale: SaleGeneration
    phase: str
    stage: int = 0
    after: int = 0
    is_current: bool = True


def acquire_lease(voucher_id: int) -> bool:
    """Return whether the caller may load the state now. Raises RedisDown."""
    return locks.try_lock(lease_key(voucher_id), LEASE_MS / 1000) is not None


def release_lease(voucher_id: int) -> None:
    redis.execute("UNLINK", lease_key(voucher_id))


def read_progress(voucher_id: int) -> LoadProgress | None:
    """Return the progress of the current generation, None without one. Raises RedisDown."""
    names = ("generation", "initial_stock", "phase", "cursor", "term")
    generation, initial_stock, phase, cursor, term = redis.execute(
        "HMGET", state_key(voucher_id), *names
    )
    if generation is None:
        return None
    sale = SaleGeneration(voucher_id, int(generation), int(initial_stock))
    is_current = term == read_term(voucher_id)
    return LoadProgress(sale, phase, *_parse_cursor(cursor), is_current)


def begin_loading(sale: SaleGeneration, voucher: Voucher, max_drain_us: int) -> LoadProgress:
    """Begin a generation unless Redis has one; return its progress. Raises RedisDown."""
    terms = voucher.terms
    args = (sale.generation, sale.initial_stock, terms.opens_us, terms.closes_us, max_drain_us)
    generation, phase, cursor = redis.run(LOAD, (state_key(sale.voucher_id),), args)
    return LoadProgress(sale._replace(generation=int(generation)), phase, *_parse_cursor(cursor))


def advance(progress: LoadProgress) -> None:
    """Record what is loaded. Raises RedisDown."""
    args = (progress.sale.generation, f"{progress.stage}{progress.after:019}", 0, "")
    redis.run(OPEN, (state_key(progress.sale.voucher_id),), args)


def open_sale(sale: SaleGeneration, drained: bool, term: str = "") -> str:
    """Record that everything is loaded, and under which term if the waitlist was read; return as
    open.lua. Raises RedisDown."""
    args = (sale.generation, "", int(drained), term)
    return str(redis.run(OPEN, (state_key(sale.voucher_id),), args))


def _parse_cursor(cursor: str) -> tuple[int, int]:
    # A cursor without a stage is from a version without cancelled orders: load from the start.
    return (int(cursor[0]), int(cursor[1:])) if len(cursor) == 20 else (0, 0)
