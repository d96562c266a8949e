"""Orders in Redis: reserve a unit, acknowledge decided orders, find pending ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

from plaza.commerce.flash_sales import model
from plaza.commerce.flash_sales.model import (
    PENDING,
    NotReady,
    Order,
    OrderEvent,
    OrderRow,
    SaleGeneration,
)
from plaza.commerce.flash_sales.redis_keys import (
    buyers_key,
    offers_key,
    order_keys,
    recovery_keys,
    reserve_keys,
)
from plaza.commerce.flash_sales.redis_sales import PER_TRIP, find_sales
from plaza.commerce.flash_sales.settings import sale_settings
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Argument, Call
from plaza.infra.redis.resends import count_resends
from plaza.infra.redis.scripts import load_script

MAX_ORDERS_PER_CALL = 250
_MAX_ATTEMPTS = 5
_LUA = Path(__file__).with_name("lua")
RESERVE = load_script(_LUA / "reserve.lua")
CONFIRM = load_script(_LUA / "confirm.lua")
RELEASE = load_script(_LUA / "release.lua")
OVERDUE = load_script(_LUA / "overdue.lua")
RECOVER = load_script(_LUA / "recover.lua")
_STALE = "STALE_GENERATION"


class Reservation(NamedTuple):
    """The reply of reserve.lua, and whether the order id is still unused."""

    code: str
    detail: str
    id_unused: bool


class AcknowledgeResult(NamedTuple):
    """How many orders of an older generation were adopted, and how many units were returned."""

    adopted: int
    returned: int


def reserve(sale: SaleGeneration, order_id: int, buyer_id: int) -> Reservation:
    """Reserve one unit for a buyer. One round trip. Raises RedisDown; it may be reserved then.

    The id of a resent command counts as used whatever the reply is: another copy may be executed
    before or after.
    """
    us_per_order, before = ceil(1_000_000 / sale_settings().orders_per_s), count_resends()
    args = (sale.generation, order_id, buyer_id, us_per_order, sale_settings().max_pending_orders)
    code, _, detail = str(redis.run(RESERVE, reserve_keys(sale, buyer_id), args)).partition(" ")
    if code == "EXISTS" and detail == f"{PENDING}:{order_id}":
        code = "RESERVED"  # an earlier copy reserved it; its reply was lost
    return Reservation(code, detail, code != "RESERVED" and count_resends() == before)


def acknowledge(rows: Sequence[OrderRow]) -> AcknowledgeResult:
    """Acknowledge decided orders. Two round trips, unless a generation changes in between.

    Vouchers that are not in Redis are skipped: loading them reads the rows from MySQL. Raises
    RedisDown; NotReady if a generation changed on every attempt.
    """
    todo, adopted, returned = list(rows), 0, 0
    for _ in range(_MAX_ATTEMPTS):
        sales = find_sales(sorted({row.voucher_id for row in todo}))
        todo = [row for row in todo if row.voucher_id in sales]
        if not todo:
            return AcknowledgeResult(adopted, returned)
        releases = _release_calls(todo, sales)
        replies = redis.run_all(releases + _confirm_calls(todo, sales))
        returned += sum(int(count[0]) for _, *count in replies[: len(releases)] if count)
        adopted += sum(max(0, int(count[0])) for _, *count in replies[len(releases) :] if count)
        if not any(code == _STALE for code, *_ in replies):
            return AcknowledgeResult(adopted, returned)
    raise NotReady("The sale was reloaded on every attempt.")


def load_orders(
    sale: SaleGeneration, orders: Sequence[tuple[int, int]], reason: str | None
) -> bool:
    """Load (order, buyer) pairs, successes or cancelled; return False if another generation has
    begun. Raises RedisDown."""
    rows = [OrderRow(order, sale.voucher_id, buyer, reason) for order, buyer in orders]
    sales = {sale.voucher_id: sale}
    calls = _release_calls(rows, sales) + _confirm_calls(rows, sales)
    for start in range(0, len(calls), PER_TRIP):
        replies = redis.run_all(calls[start : start + PER_TRIP])
        if any(code in ("COLD", _STALE) for code, *_ in replies):
            return False
    return True


def find_overdue(
    sales: Sequence[SaleGeneration], resend_after_us: int, limit: int
) -> tuple[list[OrderEvent], list[SaleGeneration]]:
    """Return (the overdue pending orders among the oldest ``limit`` entries of each sale, longest
    overdue first; the sales that may have more). Their next recovery is due after
    ``resend_after_s``.

    Two round trips, one if nothing is overdue. Raises RedisDown.
    """
    due = redis.run_all(
        [
            Call(OVERDUE, recovery_keys(sale), (sale.generation, resend_after_us, limit))
            for sale in sales
        ]
    )
    overdue = [(sale, entries) for sale, entries in zip(sales, due, strict=True) if entries]
    calls = []
    for sale, entries in overdue:
        buckets = [buyers_key(sale, int(entry.split(":")[1])) for entry in entries]
        keys = (*recovery_keys(sale), *buckets)
        calls.append(Call(RECOVER, keys, (sale.generation, *entries)))
    events = [
        OrderEvent(order_id, sale.voucher_id, buyer_id, sale.generation)
        for (sale, _), members in zip(overdue, redis.run_all(calls), strict=True)
        for order_id, buyer_id in (map(int, member.split(":")) for member in members)
    ]
    return events, [sale for sale, entries in overdue if len(entries) >= limit]


def find_order_of_buyer(sale: SaleGeneration, buyer_id: int) -> tuple[Order | None, bool]:
    """Return (the order of a buyer in a generation or None, whether the buyer has an offer). One
    round trip. Raises RedisDown."""
    buyer = str(buyer_id)
    entry, until_us = redis.pipeline(
        [("HGET", buyers_key(sale, buyer_id), buyer), ("ZSCORE", offers_key(sale), buyer)]
    )
    return read_entry(sale, entry), until_us is not None


def read_entry(sale: SaleGeneration, entry: str | None) -> Order | None:
    if entry is None:
        return None
    status, _, order_id = entry.partition(":")
    return Order(int(order_id), sale.voucher_id, status)


def find_orders(buyer_id: int, orders: Mapping[int, int]) -> dict[int, Order]:
    """Return the buyer's orders that Redis has. Two round trips. Raises RedisDown."""
    sales = find_sales(sorted(set(orders.values())))
    entries = redis.pipeline(
        [("HGET", buyers_key(sale, buyer_id), str(buyer_id)) for sale in sales.values()]
    )
    read_orders = (
        read_entry(sale, entry) for sale, entry in zip(sales.values(), entries, strict=True)
    )
    return {
        order.id: order
        for order in read_orders
        if order is not None and orders.get(order.id) == order.voucher_id
    }


def _release_calls(rows: Sequence[OrderRow], sales: Mapping[int, SaleGeneration]) -> list[Call]:
    """Return the calls of release.lua for the rows that are no successes."""
    return [
        Call(
            RELEASE,
            order_keys(sale, row.buyer_id),
            (sale.generation, row.order_id, row.buyer_id, int(row.is_cancelled), model.OFFER_US),
        )
        for row in rows
        if not row.is_success
        for sale in [sales[row.voucher_id]]
    ]


def _confirm_calls(rows: Sequence[OrderRow], sales: Mapping[int, SaleGeneration]) -> list[Call]:
    """Return the calls of confirm.lua for the successes, one bucket each."""
    by_bucket: dict[str, tuple[tuple[str, ...], int, list[Argument]]] = {}
    for row in rows:
        if row.is_success:
            sale = sales[row.voucher_id]
            keys = order_keys(sale, row.buyer_id)
            _, _, orders = by_bucket.setdefault(keys[1], (keys, sale.generation, []))
            orders += (row.order_id, row.buyer_id)
    size = 2 * MAX_ORDERS_PER_CALL
    return [
        Call(CONFIRM, keys, (generation, *orders[start : start + size]))
        for keys, generation, orders in by_bucket.values()
        for start in range(0, len(orders), size)
    ]
