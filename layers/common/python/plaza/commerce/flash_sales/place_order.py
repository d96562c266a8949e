"""Place an order: reserve a unit in Redis, publish the event, return the id.

An id is returned only after its order has two copies: in Redis and on the queue, or in Redis and
MySQL if SQS refuses. The buyer's pointer is written after the second copy, so a pending order
without a pointer is published again by the next request.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import ceil

from plaza.commerce.flash_sales import (
    backlog,
    load_sale,
    mysql_orders,
    mysql_waitlist,
    redis_orders,
    redis_pointers,
    redis_sales,
)
from plaza.commerce.flash_sales.model import (
    PENDING,
    NotOpen,
    NotReady,
    Order,
    OrderEvent,
    OrderRateExceeded,
    SaleGeneration,
    SoldOut,
    VoucherMissing,
    VoucherWithdrawn,
)
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.infra.derived import ids
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import PlazaError
from plaza.infra.runtime.observability import current_request_id, error_fields, record
from plaza.infra.runtime.process import LocalCache, on_reset

REFUSAL_TTL_S = 1.0
_SPARE_ID_TTL_S = 1
_MAX_ATTEMPTS = 5
_MAX_CACHED = 10_000

_sales: LocalCache[int, SaleGeneration] = LocalCache(_MAX_CACHED)
_refusals: LocalCache[int, PlazaError] = LocalCache(_MAX_CACHED, REFUSAL_TTL_S)
_spare_ids: list[int] = []  # at most one
# Limits the reads of one process for repeats of successful orders. Without a token the answer comes
# from Redis, which may not know yet that the order was used or cancelled.
_success_budget = TokenBucket(rate_per_s=20, burst=40)
on_reset(_spare_ids.clear)


class _NotOpenYet(NotOpen):
    """The sale has not begun, so no buyer has an order."""


def place_order(voucher_id: int, buyer_id: int) -> tuple[Order, bool]:
    """Return (the buyer's order, whether this call created it).

    Two round trips and one message for a new order of a sale that this process has used; a
    statement for a repeat of a success. Raises VoucherMissing, VoucherWithdrawn, NotOpen, SoldOut,
    OrderRateExceeded; after NotReady, RedisDown and MysqlDown the buyer may have an order: repeat
    the call.
    """
    if existing := _check_cached_refusal(voucher_id, buyer_id):
        return existing, False
    for _ in range(_MAX_ATTEMPTS):
        sale = _sales.get(voucher_id) or _find_sale(voucher_id)
        if sale is None:
            order, is_new = _load_or_find_order(voucher_id, buyer_id), False
        else:
            order, is_new = _reserve(sale, buyer_id)
        if order is not None:
            return order, is_new
    raise NotReady("This sale was reloaded on every attempt; retry after 2 s.")


def _check_cached_refusal(voucher_id: int, buyer_id: int) -> Order | None:
    """Raise the cached refusal of a sale, if there is one and it applies to the buyer: not if the
    buyer has an offer, or an order, which is returned."""
    refusal = _refusals.get(voucher_id)
    if refusal is None:
        return None
    sale = _sales.get(voucher_id)
    if isinstance(refusal, _NotOpenYet | VoucherMissing) or sale is None:
        raise refusal
    known, has_offer = redis_orders.find_order_of_buyer(sale, buyer_id)
    if known is None and not has_offer:
        raise refusal
    return known and _return_existing(sale, buyer_id, known)


def _reserve(sale: SaleGeneration, buyer_id: int) -> tuple[Order | None, bool]:
    """Reserve a unit; return (the buyer's order, whether it is new). None: the state of the sale
    was in the way, and has changed. Raises the refusals of ``place_order``."""
    order_id = _next_order_id()
    code, detail, id_unused = redis_orders.reserve(sale, order_id, buyer_id)
    if code == "RESERVED":
        event = OrderEvent(order_id, sale.voucher_id, buyer_id, sale.generation)
        return _complete(event, by_offer=detail == "offer"), True
    if id_unused:
        _spare_ids[:] = [order_id]
    if code == "EXISTS":
        known = redis_orders.read_entry(sale, detail)
        return known and _return_existing(sale, buyer_id, known), False
    _check_refusal(sale.voucher_id, code, detail)
    _change_state(sale, code)
    return None, False


def _complete(event: OrderEvent, *, by_offer: bool) -> Order:
    order = _publish_and_point(event)
    if by_offer:
        with suppress(MysqlDown):  # else the recovery deletes it
            mysql_waitlist.delete([(event.voucher_id, event.buyer_id)])
    return order


def _check_refusal(voucher_id: int, code: str, detail: str) -> None:
    """Raise the refusal of a reply of reserve.lua; cached, unless it is one of the rate limit."""
    match code:
        case "SOLD_OUT":
            raise _cache_refusal(voucher_id, SoldOut())
        case "WITHDRAWN":
            raise _cache_refusal(voucher_id, VoucherWithdrawn("This voucher was withdrawn."))
        case "CLOSED":
            raise _cache_refusal(voucher_id, NotOpen("This sale is over."))
        case "NOT_OPEN_YET":
            refusal = _NotOpenYet("This sale has not begun.")
            raise _cache_refusal(voucher_id, refusal, int(detail) / 1e6)
        case "RATE_LIMITED":
            wait_s = max(1, ceil(int(detail) / 1e6))
            raise OrderRateExceeded(f"Too many orders; retry after {wait_s} s.", wait_s)


def _change_state(sale: SaleGeneration, code: str) -> None:
    """Do what a sale that takes no orders yet waits for."""
    match code:
        case "DRAINING":
            load_sale.open_if_drained(sale)
        case "LOADING":
            load_sale.load_sale(sale.voucher_id)
        case "COLD" | "STALE_GENERATION":
            _sales.drop(sale.voucher_id)


def publish(event: OrderEvent) -> bool:
    """Send a reservation to the queue, or store it in MySQL if SQS refuses (returns False).

    Raises MysqlDown if both failed: it is in Redis alone, and the recovery sends it later.
    """
    try:
        ORDERS.send(event)
    except QueueDown as error:
        backlog.mark_unavailable()
        mysql_orders.spill(replace(event, request_id=current_request_id()))
        record(
            "order_spilled",
            {"orders_spilled": 1},
            order_id=event.order_id,
            **error_fields(error),
        )
        return False
    return True


def _publish_and_point(event: OrderEvent) -> Order:
    publish(event)
    redis_pointers.write_pointer(event.buyer_id, event.order_id, event.voucher_id)
    return Order(event.order_id, event.voucher_id, PENDING)


def _return_existing(sale: SaleGeneration, buyer_id: int, known: Order) -> Order | None:
    """Publish again if the pointer is missing: the first request ended early. Return None for a
    success that was cancelled, by a request that ended before it returned the unit in Redis."""
    if known.status == PENDING and not redis_pointers.has_pointer(known, buyer_id):
        _publish_and_point(OrderEvent(known.id, known.voucher_id, buyer_id, sale.generation))
    if known.status != PENDING and _success_budget.take():
        with suppress(MysqlDown):
            row = mysql_orders.read(known.id)
            if row is not None and row.is_cancelled:
                redis_orders.acknowledge([row])
                return None
            return row.order if row is not None else known
    return known


def _load_or_find_order(voucher_id: int, buyer_id: int) -> Order | None:
    """Load the state into Redis, or return the buyer's success if the sale is over."""
    try:
        load_sale.load_sale(voucher_id)
    except (NotOpen, VoucherWithdrawn):
        row = mysql_orders.read_of_holder(voucher_id, buyer_id)
        if row is None:
            raise
        return row.order
    except VoucherMissing as error:
        raise _cache_refusal(voucher_id, error) from None
    return None


def _find_sale(voucher_id: int) -> SaleGeneration | None:
    sale = redis_sales.find_sales([voucher_id]).get(voucher_id)
    if sale is not None:
        _sales.put(voucher_id, sale)
    return sale


def _next_order_id() -> int:
    """Return a new id, or an unused one that is at most 1 s old."""
    spare = _spare_ids.pop() if _spare_ids else None
    if spare is not None and ids.created_at_s(spare) >= clock.now_s() - _SPARE_ID_TTL_S:
        return spare
    return ids.new_id()


def _cache_refusal(
    voucher_id: int, refusal: PlazaError, max_ttl_s: float = REFUSAL_TTL_S
) -> PlazaError:
    """Cache a refusal for 1 s, or for ``max_ttl_s`` if that is less; return it."""
    _refusals.put(voucher_id, refusal, max_ttl_s)
    return refusal
