"""Waitlists and offers in Redis; their keys are in ``redis_keys``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plaza.commerce.flash_sales import model, redis_sales
from plaza.commerce.flash_sales.model import Order, SaleGeneration, WaitlistPosition
from plaza.commerce.flash_sales.redis_keys import buyers_key, offers_key, state_key, waitlist_key
from plaza.commerce.flash_sales.redis_orders import MAX_ORDERS_PER_CALL, read_entry
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Argument, Call, Command
from plaza.infra.redis.scripts import load_script

MAX_LEAVING = 500
_MAX_SKEW_US = 60_000_000  # between the clocks of Redis and of a function
_LUA = Path(__file__).with_name("lua")
JOIN = load_script(_LUA / "join.lua")
LEAVE = load_script(_LUA / "leave.lua")


class WaitlistState(NamedTuple):
    """The state of a sale that decides whether buyers may order or wait."""

    phase: str
    opens_us: int
    closes_us: int
    stock: int
    waiting: int


def read_position(
    sale: SaleGeneration, buyer_id: int
) -> tuple[Order | None, WaitlistPosition | None]:
    """Return (the order, the position) of a buyer; None each. One round trip. Raises RedisDown."""
    buyer = str(buyer_id)
    entry, rank, until_us = redis.pipeline(
        [("HGET", buyers_key(sale, buyer_id), buyer), *_position_commands(sale, buyer)]
    )
    return read_entry(sale, entry), _parse_position(rank, until_us)


def read_positions(sales: Sequence[SaleGeneration], buyer_id: int) -> dict[int, WaitlistPosition]:
    """Return voucher -> position of a buyer, where there is one. One round trip. Raises
    RedisDown."""
    replies = redis.pipeline(
        [command for sale in sales for command in _position_commands(sale, str(buyer_id))]
    )
    positions = {
        sale.voucher_id: _parse_position(rank, until_us)
        for sale, rank, until_us in zip(sales, replies[::2], replies[1::2], strict=True)
    }
    return {voucher_id: position for voucher_id, position in positions.items() if position}


def read_state(sale: SaleGeneration) -> WaitlistState:
    """Return what decides whether buyers may order or wait. One round trip. Raises RedisDown."""
    names = ("phase", "opens_us", "closes_us", "counts")
    phase, opens_us, closes_us, counts = redis.execute("HMGET", state_key(sale.voucher_id), *names)
    if phase is None:
        return WaitlistState("loading", 0, 0, 0, 0)
    stock, _, _, waiting = redis_sales.parse_counts(counts)
    return WaitlistState(phase, int(opens_us), int(closes_us), stock, waiting)


def try_join(sale: SaleGeneration, buyer_id: int, seq: int | None, max_waiting: int) -> str:
    """Add a buyer who asks to join, or with ``seq`` None only check whether the buyer may; return
    the code of join.lua. One round trip. Raises RedisDown."""
    keys = _join_keys(sale, buyers_key(sale, buyer_id))
    asked = (buyer_id, "" if seq is None else seq)
    args = (sale.generation, model.OFFER_US, max_waiting, *asked)
    return str(redis.run(JOIN, keys, args)[0])


def join(sale: SaleGeneration, waiting: Sequence[tuple[int, int]]) -> bool:
    """Add (seq, buyer) pairs of MySQL, in each phase; return False if another generation has begun.
    One round trip for 1,000 buckets. Raises RedisDown."""
    by_bucket: dict[str, list[Argument]] = {}
    for seq, buyer_id in waiting:
        by_bucket.setdefault(buyers_key(sale, buyer_id), []).extend((buyer_id, seq))
    size = 2 * MAX_ORDERS_PER_CALL
    calls = [
        Call(
            JOIN,
            _join_keys(sale, bucket),
            (sale.generation, model.OFFER_US, 0, *pairs[start : start + size]),
        )
        for bucket, pairs in by_bucket.items()
        for start in range(0, len(pairs), size)
    ]
    return all(code == "JOINED" for code, *_ in redis.run_all(calls))


def leave(sale: SaleGeneration, buyer_ids: Sequence[int], *, only_ended: bool = False) -> int:
    """Remove at most 500 buyers or, with ``only_ended``, their offers that have ended; then offer
    units to the next buyers. Returns how many are offered. One round trip. Raises RedisDown."""
    keys = (state_key(sale.voucher_id), waitlist_key(sale), offers_key(sale))
    args = (sale.generation, model.OFFER_US, int(only_ended), *buyer_ids)
    _, *offered = redis.run(LEAVE, keys, args)
    return int(offered[0]) if offered else 0


def read_buyers(sale: SaleGeneration) -> list[int]:
    """Return the buyers who wait or have an offer. One round trip. Raises RedisDown."""
    replies = redis.pipeline(
        [("ZRANGE", key, 0, -1) for key in (waitlist_key(sale), offers_key(sale))]
    )
    return [int(buyer_id) for buyer_ids in replies for buyer_id in buyer_ids]


def find_ended(sale: SaleGeneration, now_us: int) -> list[int]:
    """Return at most 500 buyers whose offers have ended. Offers that last longer than a new one
    are cut: a clock went back. One round trip; one more to cut some. Raises RedisDown."""
    key, limit = offers_key(sale), ("LIMIT", 0, MAX_LEAVING)
    ended, too_long = redis.pipeline(
        [
            ("ZRANGEBYSCORE", key, "-inf", now_us, *limit),
            ("ZRANGEBYSCORE", key, now_us + model.OFFER_US + _MAX_SKEW_US, "+inf", *limit),
        ]
    )
    if too_long:
        until_us = now_us + model.OFFER_US
        redis.execute(
            "ZADD", key, "XX", "LT", *(part for buyer in too_long for part in (until_us, buyer))
        )
    return [int(buyer_id) for buyer_id in ended]


def find_offered(sales: Sequence[SaleGeneration], since_us: int) -> dict[int, list[int]]:
    """Return voucher -> at most 500 buyers whose offers end after ``since_us``. One round trip.
    Raises RedisDown."""
    replies = redis.pipeline(
        [
            ("ZRANGEBYSCORE", offers_key(sale), since_us, "+inf", "LIMIT", 0, MAX_LEAVING)
            for sale in sales
        ]
    )
    return {
        sale.voucher_id: [int(buyer_id) for buyer_id in buyer_ids]
        for sale, buyer_ids in zip(sales, replies, strict=True)
    }


def read_offers(pairs: Sequence[tuple[SaleGeneration, int]]) -> list[int | None]:
    """Return when the offers of (sale, buyer) pairs end, None for none. One round trip. Raises
    RedisDown."""
    replies = redis.pipeline(
        [("ZSCORE", offers_key(sale), str(buyer_id)) for sale, buyer_id in pairs]
    )
    return [None if until_us is None else int(float(until_us)) for until_us in replies]


def _position_commands(sale: SaleGeneration, buyer: str) -> list[Command]:
    return [("ZRANK", waitlist_key(sale), buyer), ("ZSCORE", offers_key(sale), buyer)]


def _parse_position(rank: int | None, until_us: str | None) -> WaitlistPosition | None:
    if until_us is not None:
        return WaitlistPosition(None, int(float(until_us)))
    return None if rank is None else WaitlistPosition(int(rank) + 1)


def _join_keys(sale: SaleGeneration, bucket: str) -> tuple[str, str, str, str]:
    return state_key(sale.voucher_id), bucket, waitlist_key(sale), offers_key(sale)
