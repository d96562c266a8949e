"""The state of sales in Redis: current generations, counts, phases and their end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plaza.commerce.flash_sales.model import SaleGeneration, Voucher
from plaza.commerce.flash_sales.redis_keys import bucket_key, other_keys, state_key
from plaza.infra.redis import masters, redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import load_script

FINALIZED_TTL_S = 86_400
PER_TRIP = 1_000
_LUA = Path(__file__).with_name("lua")
WITHDRAW = load_script(_LUA / "withdraw.lua")


class SaleCounts(NamedTuple):
    """The counts of a sale in Redis, in units; ``cancelled`` in orders, ``waiting`` in buyers. And
    the ``term`` under which its waitlist was read."""

    generation: int
    live: bool
    initial_stock: int
    stock: int
    pending: int
    sold: int
    cancelled: int
    offered: int
    waiting: int
    term: str

    def lacks_orders(self, voucher: Voucher) -> bool:
        """Return whether MySQL had more decided orders when ``voucher`` was read, before these
        counts. Cancelled orders only grow, and so do successes and cancelled orders together."""
        sold = voucher.terms.stock - voucher.stock
        return (
            self.cancelled < voucher.cancelled
            or self.sold + self.cancelled < sold + voucher.cancelled
        )


def read_all(voucher_id: int) -> dict[str, Any]:
    """Return the state of a sale and the sizes of its other keys, {} without one. Two round trips.
    Raises RedisDown."""
    state = redis.execute("HGETALL", state_key(voucher_id))
    if not state.get("generation"):
        return {}
    sale = SaleGeneration(voucher_id, int(state["generation"]), int(state["initial_stock"]))
    recovery, cancelled, waitlist, offers = other_keys(sale)
    commands: list[tuple[str, str]] = [
        ("LLEN", recovery),
        ("SCARD", cancelled),
        ("ZCARD", waitlist),
        ("ZCARD", offers),
    ]
    names = ("recovery", "cancelled", "waitlist", "offers")
    return {"state": state, **dict(zip(names, redis.pipeline(commands), strict=True))}


def drop_state(voucher_id: int) -> bool:
    """Delete the state of a sale; return whether there was one. One round trip.
    Raises RedisDown."""
    return bool(redis.execute("UNLINK", state_key(voucher_id)))


def find_sales(voucher_ids: Sequence[int]) -> dict[int, SaleGeneration]:
    """Return the current generations in Redis. One round trip. Raises RedisDown."""
    replies = redis.pipeline(
        [("HMGET", state_key(v), "generation", "initial_stock") for v in voucher_ids]
    )
    return {
        voucher_id: SaleGeneration(voucher_id, int(generation), int(initial_stock))
        for voucher_id, (generation, initial_stock) in zip(voucher_ids, replies, strict=True)
        if generation is not None
    }


def read_term(voucher_id: int) -> str:
    """Return the term of the node with a voucher. Raises RedisDown."""
    return masters.find_node(state_key(voucher_id)).term


def read_counts(voucher_ids: Sequence[int]) -> dict[int, SaleCounts]:
    """Return voucher -> counts, of the vouchers in Redis. One round trip. Raises RedisDown."""
    names = ("generation", "phase", "counts", "term", "initial_stock", "sold", "cancelled")
    replies = redis.pipeline([("HMGET", state_key(v), *names) for v in voucher_ids])
    counts_by_id = {}
    for voucher_id, (generation, phase, counts, term, *others) in zip(
        voucher_ids, replies, strict=True
    ):
        if generation is not None:
            stock, pending, offered, waiting = parse_counts(counts)
            initial_stock, sold, cancelled = map(int, others)
            counts_by_id[voucher_id] = SaleCounts(
                int(generation),
                phase == "live",
                initial_stock,
                stock,
                pending,
                sold,
                cancelled,
                offered,
                waiting,
                term,
            )
    return counts_by_id


def parse_counts(counts: str) -> tuple[int, int, int, int]:
    """Return (stock, pending, offered, waiting) of the field ``counts``."""
    stock, pending, offered, waiting, _ = map(int, counts.split(":"))
    return stock, pending, offered, waiting


def withdraw(sales: Sequence[SaleGeneration], withdrawn: bool = True) -> int:
    """Withdraw sales, or load them again if their shop was restored.

    Returns how many phases changed. One round trip. Raises RedisDown.
    """
    phase = "withdrawn" if withdrawn else "loading"
    calls = [Call(WITHDRAW, (state_key(v.voucher_id),), (v.generation, phase)) for v in sales]
    return sum(code == "CHANGED" for [code] in redis.run_all(calls))


def expire(sale: SaleGeneration) -> None:
    """Freeze a sale that is over and let all its keys expire within a day. Raises RedisDown."""
    redis.run(WITHDRAW, (state_key(sale.voucher_id),), (sale.generation, "finalized"))
    keys = [bucket_key(sale, bucket) for bucket in range(sale.buckets)]
    keys += other_keys(sale)
    keys.append(state_key(sale.voucher_id))
    for start in range(0, len(keys), PER_TRIP):
        part = keys[start : start + PER_TRIP]
        redis.pipeline([("EXPIRE", key, FINALIZED_TTL_S) for key in part])


def drop(sale: SaleGeneration) -> None:
    """Delete the buyers and pending orders of an ended generation. Raises RedisDown."""
    keys = other_keys(sale)
    keys += [bucket_key(sale, bucket) for bucket in range(sale.buckets)]
    for start in range(0, len(keys), PER_TRIP):
        redis.pipeline([("UNLINK", key) for key in keys[start : start + PER_TRIP]])
