"""Keys and scripts of sales in Redis.

All keys of a voucher have the hash tag of its shard. Under ``{<shard>}:voucher:<id>``:

    :sale      hash    the state: generation; phase: loading, draining, live, withdrawn or
                       finalized; counts: <stock>:<pending>:<offered>:<waiting>:<full_us>; sold;
                       initial_stock = stock + pending + sold + offered, at every instant;
                       cancelled, waiting: the sizes of the set and of the waitlist;
                       opens_us, closes_us; drain_until_us, the end of the drain;
                       cursor: what is loaded, as in open.lua;
                       reign: under which the waitlist was read from MySQL (``infra.redis.redis``);
                       under another one the node may lack buyers and orders, and offers no unit
                       until they are read again; full_us: when the token bucket of orders is full
                       again
    :lease     string  held by the process that loads the state
    :<generation>:buyers:<bucket>  hash  buyer -> status:order; the pending entries are exactly
                                         the pending orders
    :<generation>:recovery         list  order:buyer:second, when it was reserved or last recovered;
                                         all pending orders, and decided ones of the last minutes;
                                         removed when no order is pending
    :<generation>:cancelled        set   order:buyer, the orders that were cancelled, so that no
                                         late message confirms them
    :<generation>:waitlist         zset  buyer -> seq, the order of offers
    :<generation>:offers           zset  buyer -> when the offer ends; exactly the offered units

Per buyer, in the buyer's shard, ``{<shard>}:user:<id>:orders``: zset, order:voucher -> the second
in the order's id. A pointer is written after the order has its second copy, on the queue or in
MySQL, and before its id is returned: an order with a pointer is decided whatever Redis loses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from plaza.flash_sales.model import (
    PENDING,
    NotReady,
    Order,
    OrderEvent,
    OrderRow,
    SaleGeneration,
    Voucher,
)
from plaza.infra.redis import redis
from plaza.infra.redis.hot_keys import Argument
from plaza.infra.redis.redis import Call
from plaza.infra.redis.resends import count_resends
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime.settings import settings

LEASE_MS = 10_000
MAX_DRAIN_US = 30_000_000
POINTERS_KEPT = 200
POINTERS_TTL_S = 7 * 86_400
FINALIZED_TTL_S = 86_400
_MAX_ATTEMPTS = 5
_PER_TRIP = 1_000
MAX_ORDERS_PER_CALL = 250
OFFER_US = 900_000_000
"""The time to accept an offer."""

_LUA = Path(__file__).with_name("lua")
LOAD = load_script(_LUA / "load.lua")
OPEN = load_script(_LUA / "open.lua")
RESERVE = load_script(_LUA / "reserve.lua")
CONFIRM = load_script(_LUA / "confirm.lua")
RELEASE = load_script(_LUA / "release.lua")
OVERDUE = load_script(_LUA / "overdue.lua")
RECOVER = load_script(_LUA / "recover.lua")
JOIN = load_script(_LUA / "join.lua")
LEAVE = load_script(_LUA / "leave.lua")
WITHDRAW = load_script(_LUA / "withdraw.lua")
_STALE = "STALE_GENERATION"


class AcknowledgeResult(NamedTuple):
    """How many orders of an older generation were adopted, and how many units were returned."""

    adopted: int
    returned: int


class Reservation(NamedTuple):
    """The reply of reserve.lua, and whether the order id is still unused."""

    code: str
    detail: str
    id_unused: bool


class LoadProgress(NamedTuple):
    """What is loaded of a generation, in its ``phase``: the cancelled orders up to id ``after``, or
    with ``stage`` 1 all of them and the successes of buyers up to it, with 2 the waitlist up to a
    seq, too. ``is_current``: the waitlist was read under the current reign."""

    sale: SaleGeneration
    phase: str
    stage: int = 0
    after: int = 0
    is_current: bool = True


class SaleCounts(NamedTuple):
    """The counts of a sale in Redis, in units; ``cancelled`` in orders, ``waiting`` in buyers. And
    the ``reign`` under which its waitlist was read, None if the version before read it."""

    generation: int
    live: bool
    initial_stock: int
    stock: int
    pending: int
    sold: int
    cancelled: int
    offered: int
    waiting: int
    reign: str | None

    def lacks_orders(self, voucher: Voucher) -> bool:
        """Return whether MySQL had more decided orders when ``voucher`` was read, before these
        counts. Cancelled orders only grow, and so do successes and cancelled orders together."""
        sold = voucher.terms.stock - voucher.stock
        return (
            self.cancelled < voucher.cancelled
            or self.sold + self.cancelled < sold + voucher.cancelled
        )


def state_key(voucher_id: int) -> str:
    return f"{_base(voucher_id)}:sale"


def recovery_key(sale: SaleGeneration) -> str:
    return f"{_base(sale.voucher_id)}:{sale.generation}:recovery"


def cancelled_key(sale: SaleGeneration) -> str:
    return f"{_base(sale.voucher_id)}:{sale.generation}:cancelled"


def waitlist_key(sale: SaleGeneration) -> str:
    return f"{_base(sale.voucher_id)}:{sale.generation}:waitlist"


def offers_key(sale: SaleGeneration) -> str:
    return f"{_base(sale.voucher_id)}:{sale.generation}:offers"


def buyers_key(sale: SaleGeneration, buyer_id: int) -> str:
    return _bucket_key(sale, crc32(b"%d" % buyer_id) % sale.buckets)


def reserve_keys(sale: SaleGeneration, buyer_id: int) -> tuple[str, str, str, str]:
    """Return the keys of reserve.lua."""
    state, buyers = state_key(sale.voucher_id), buyers_key(sale, buyer_id)
    return state, buyers, recovery_key(sale), offers_key(sale)


def pointers_key(buyer_id: int) -> str:
    return f"{{{shard_of(f'user:{buyer_id}')}}}:user:{buyer_id}:orders"


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


def acquire_lease(voucher_id: int) -> bool:
    """Return whether the caller may load the state now. Raises RedisDown."""
    return redis.try_lock(f"{_base(voucher_id)}:lease", LEASE_MS / 1000) is not None


def release_lease(voucher_id: int) -> None:
    redis.execute("UNLINK", f"{_base(voucher_id)}:lease")


def read_progress(voucher_id: int) -> LoadProgress | None:
    """Return the progress of the current generation, None without one. Raises RedisDown."""
    names = ("generation", "initial_stock", "phase", "cursor", "reign")
    generation, initial_stock, phase, cursor, reign = redis.execute(
        "HMGET", state_key(voucher_id), *names
    )
    if generation is None:
        return None
    sale = SaleGeneration(voucher_id, int(generation), int(initial_stock))
    is_current = reign in (None, read_reign(voucher_id))
    return LoadProgress(sale, phase, *_parse_cursor(cursor), is_current)


def read_reign(voucher_id: int) -> str:
    """Return the reign of the node with a voucher. Raises RedisDown."""
    return redis.find_node(state_key(voucher_id)).reign


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


def open_sale(sale: SaleGeneration, drained: bool, reign: str = "") -> str:
    """Record that everything is loaded, and under which reign if the waitlist was read; return as
    open.lua. Raises RedisDown."""
    args = (sale.generation, "", int(drained), reign)
    return str(redis.run(OPEN, (state_key(sale.voucher_id),), args))


def reserve(sale: SaleGeneration, order_id: int, buyer_id: int) -> Reservation:
    """Reserve one unit for a buyer. One round trip. Raises RedisDown; it may be reserved then.

    The id of a resent command counts as used whatever the reply is: another copy may be executed
    before or after.
    """
    us_per_order, before = ceil(1_000_000 / settings().orders_per_s), count_resends()
    args = (sale.generation, order_id, buyer_id, us_per_order, settings().max_pending_orders)
    code, _, detail = str(redis.run(RESERVE, reserve_keys(sale, buyer_id), args)).partition(" ")
    if code == "EXISTS" and detail == f"{PENDING}:{order_id}":
        code = "RESERVED"  # an earlier copy reserved it; its reply was lost
    return Reservation(code, detail, code != "RESERVED" and count_resends() == before)


def withdraw(sales: Sequence[SaleGeneration], withdrawn: bool = True) -> int:
    """Withdraw sales, or load them again if their shop was restored.

    Returns how many phases changed. One round trip. Raises RedisDown.
    """
    phase = "withdrawn" if withdrawn else "loading"
    calls = [Call(WITHDRAW, (state_key(v.voucher_id),), (v.generation, phase)) for v in sales]
    return sum(code == "CHANGED" for [code] in redis.run_all(calls))


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
    for start in range(0, len(calls), _PER_TRIP):
        replies = redis.run_all(calls[start : start + _PER_TRIP])
        if any(code in ("COLD", _STALE) for code, *_ in replies):
            return False
    return True


def find_overdue(
    sales: Sequence[SaleGeneration], grace_us: int, limit: int
) -> tuple[list[OrderEvent], list[SaleGeneration]]:
    """Return (the overdue pending orders among the oldest ``limit`` entries of each sale, longest
    overdue first; the sales that may have more). Their next recovery is due after the grace.

    Two round trips, one if nothing is overdue. Raises RedisDown.
    """
    due = redis.run_all(
        [Call(OVERDUE, _recovery_keys(sale), (sale.generation, grace_us, limit)) for sale in sales]
    )
    overdue = [(sale, entries) for sale, entries in zip(sales, due, strict=True) if entries]
    calls = []
    for sale, entries in overdue:
        buckets = [buyers_key(sale, int(entry.split(":")[1])) for entry in entries]
        keys = (*_recovery_keys(sale), *buckets)
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


def write_pointer(buyer_id: int, order_id: int, voucher_id: int) -> None:
    """Store from which voucher an order is. One round trip. Raises RedisDown."""
    key = pointers_key(buyer_id)
    redis.pipeline(
        [
            ("ZADD", key, order_id >> 32, f"{order_id}:{voucher_id}"),
            ("ZREMRANGEBYRANK", key, 0, -POINTERS_KEPT - 1),
            ("EXPIRE", key, POINTERS_TTL_S),
        ]
    )


def has_pointer(order: Order, buyer_id: int) -> bool:
    """Return whether an order has a pointer, and so its second copy. Raises RedisDown."""
    member = f"{order.id}:{order.voucher_id}"
    return redis.execute("ZSCORE", pointers_key(buyer_id), member) is not None


def read_pointer(buyer_id: int, order_id: int) -> int | None:
    """Return the voucher id of a buyer's order, None without a pointer. Raises RedisDown."""
    second = order_id >> 32
    for member in redis.execute("ZRANGEBYSCORE", pointers_key(buyer_id), second, second):
        pointed_id, _, voucher_id = member.partition(":")
        if int(pointed_id) == order_id:
            return int(voucher_id)
    return None


def read_pointers(buyer_id: int) -> dict[int, int]:
    """Return order -> voucher of a buyer's newest 200 orders. Raises RedisDown."""
    members = redis.execute("ZRANGE", pointers_key(buyer_id), 0, -1)
    return {int(order): int(voucher) for order, voucher in (m.split(":") for m in members)}


def read_counts(voucher_ids: Sequence[int]) -> dict[int, SaleCounts]:
    """Return voucher -> counts, of the vouchers in Redis. One round trip. Raises RedisDown."""
    names = ("generation", "phase", "counts", "reign", "initial_stock", "sold", "cancelled")
    replies = redis.pipeline([("HMGET", state_key(v), *names) for v in voucher_ids])
    counts_by_id = {}
    for voucher_id, (generation, phase, counts, reign, *others) in zip(
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
                reign,
            )
    return counts_by_id


def parse_counts(counts: str) -> tuple[int, int, int, int]:
    """Return (stock, pending, offered, waiting) of the field ``counts``."""
    stock, pending, offered, waiting, _ = map(int, counts.split(":"))
    return stock, pending, offered, waiting


def expire(sale: SaleGeneration) -> None:
    """Freeze a sale that is over and let all its keys expire within a day. Raises RedisDown."""
    redis.run(WITHDRAW, (state_key(sale.voucher_id),), (sale.generation, "finalized"))
    keys = [_bucket_key(sale, bucket) for bucket in range(sale.buckets)]
    keys += _other_keys(sale)
    keys.append(state_key(sale.voucher_id))
    for start in range(0, len(keys), _PER_TRIP):
        part = keys[start : start + _PER_TRIP]
        redis.pipeline([("EXPIRE", key, FINALIZED_TTL_S) for key in part])


def drop(sale: SaleGeneration) -> None:
    """Delete the buyers and pending orders of an ended generation. Raises RedisDown."""
    keys = _other_keys(sale)
    keys += [_bucket_key(sale, bucket) for bucket in range(sale.buckets)]
    for start in range(0, len(keys), _PER_TRIP):
        redis.pipeline([("UNLINK", key) for key in keys[start : start + _PER_TRIP]])


@lru_cache(maxsize=1024)
def _base(voucher_id: int) -> str:
    name = f"voucher:{voucher_id}"
    return f"{{{shard_of(name)}}}:{name}"


def _bucket_key(sale: SaleGeneration, bucket: int) -> str:
    return f"{_base(sale.voucher_id)}:{sale.generation}:buyers:{bucket}"


def _recovery_keys(sale: SaleGeneration) -> tuple[str, str]:
    return state_key(sale.voucher_id), recovery_key(sale)


def _order_keys(sale: SaleGeneration, buyer_id: int) -> tuple[str, ...]:
    return (state_key(sale.voucher_id), buyers_key(sale, buyer_id), *_other_keys(sale))


def _other_keys(sale: SaleGeneration) -> list[str]:
    return [recovery_key(sale), cancelled_key(sale), waitlist_key(sale), offers_key(sale)]


def _parse_cursor(cursor: str) -> tuple[int, int]:
    # A cursor without a stage is from a version without cancelled orders: load from the start.
    return (int(cursor[0]), int(cursor[1:])) if len(cursor) == 20 else (0, 0)


def _release_calls(rows: Sequence[OrderRow], sales: Mapping[int, SaleGeneration]) -> list[Call]:
    """Return the calls of release.lua for the rows that are no successes."""
    return [
        Call(
            RELEASE,
            _order_keys(sale, row.buyer_id),
            (sale.generation, row.order_id, row.buyer_id, int(row.is_cancelled), OFFER_US),
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
            keys = _order_keys(sale, row.buyer_id)
            _, _, orders = by_bucket.setdefault(keys[1], (keys, sale.generation, []))
            orders += (row.order_id, row.buyer_id)
    size = 2 * MAX_ORDERS_PER_CALL
    return [
        Call(CONFIRM, keys, (generation, *orders[start : start + size]))
        for keys, generation, orders in by_bucket.values()
        for start in range(0, len(orders), size)
    ]
