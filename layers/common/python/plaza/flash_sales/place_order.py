"""Ordering: a reservation in Redis, an event on the queue, and an id that its buyer can ask about.

Nobody is told an id before its order has two copies: Redis and the queue, or Redis and MySQL when
SQS refuses. The pointer of the buyer is written after the second copy, so who finds an order
without a pointer publishes it again.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from plaza.flash_sales import backlog, load_sale, mysql_orders, redis_store
from plaza.flash_sales.model import (
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
from plaza.flash_sales.queues import ORDERS
from plaza.infra import clock, ids
from plaza.infra.errors import PlazaError
from plaza.infra.observability import current_request_id, error_fields, record
from plaza.infra.process import LocalCache, on_reset
from plaza.infra.queues import QueueDown

REFUSAL_TTL_S = 1.0
_SPARE_ID_TTL_S = 1
_MAX_ATTEMPTS = 5
_MAX_CACHED = 10_000

_sales: LocalCache[int, SaleGeneration] = LocalCache(_MAX_CACHED)
_refusals: LocalCache[int, PlazaError] = LocalCache(_MAX_CACHED, REFUSAL_TTL_S)
_spare_ids: list[int] = []  # at most one
on_reset(_spare_ids.clear)


class _NotOpenYet(NotOpen):
    """The sale has not begun: nobody can have an order."""


def place_order(voucher_id: int, buyer_id: int) -> tuple[Order, bool]:
    """(The order that the buyer has now, whether this made it).

    Raises VoucherMissing, VoucherWithdrawn, NotOpen, SoldOut, OrderRateExceeded; NotReady, RedisDown, MysqlDown:
    try again, they may have an order.
    """
    if refusal := _refusals.get(voucher_id):
        sale = _sales.get(voucher_id)
        if isinstance(refusal, _NotOpenYet | VoucherMissing) or sale is None:
            raise refusal
        # Who has an order gets it whatever is said to others.
        if found := redis_store.find_order_of_buyer(sale, buyer_id):
            return _return_existing(sale, buyer_id, found), False
        raise refusal
    for _ in range(_MAX_ATTEMPTS):
        sale = _sales.get(voucher_id) or _find_sale(voucher_id)
        if sale is None:
            if found := _load_or_find_order(voucher_id, buyer_id):
                return found, False
            continue
        order_id = _next_order_id()
        code, detail, id_unused = redis_store.reserve(sale, order_id, buyer_id)
        if code == "RESERVED":
            return _publish_and_point(
                OrderEvent(order_id, voucher_id, buyer_id, sale.generation)
            ), True
        if id_unused:
            _spare_ids[:] = [order_id]
        match code:
            case "EXISTS":
                found = redis_store.read_entry(sale, detail)
                if found is not None:
                    return _return_existing(sale, buyer_id, found), False
            case "SOLD_OUT":
                raise _cache_refusal(voucher_id, SoldOut("Nothing is left"))
            case "WITHDRAWN":
                raise _cache_refusal(
                    voucher_id, VoucherWithdrawn("The shop of this voucher was deleted")
                )
            case "CLOSED":
                raise _cache_refusal(voucher_id, NotOpen("This sale is over"))
            case "NOT_OPEN_YET":
                refusal = _NotOpenYet("This sale has not begun")
                raise _cache_refusal(voucher_id, refusal, int(detail) / 1e6)
            case "RATE_LIMITED":
                raise OrderRateExceeded("Many want this right now", max(1, ceil(int(detail) / 1e6)))
            case "DRAINING":
                load_sale.open_if_drained(sale)
            case "LOADING":
                load_sale.load_sale(voucher_id)
            case "COLD" | "STALE_GENERATION":
                _sales.drop(voucher_id)
    raise NotReady("The sale was brought back each time it was asked")


def publish(event: OrderEvent) -> bool:
    """Give a reservation its second copy: on the queue, or in MySQL when SQS refuses (False).

    Raises MysqlDown when neither took it: it is in Redis alone, and the recovery sends it later.
    """
    try:
        ORDERS.send(event)
    except QueueDown as error:
        backlog.mark_unavailable()
        mysql_orders.add_to_outbox(replace(event, request_id=current_request_id()))
        record(
            "order_stored_in_outbox",
            {"orders_stored_in_outbox": 1},
            order_id=event.order_id,
            **error_fields(error),
        )
        return False
    return True


def _publish_and_point(event: OrderEvent) -> Order:
    publish(event)
    redis_store.write_pointer(event.buyer_id, event.order_id, event.voucher_id)
    return Order(event.order_id, event.voucher_id, PENDING)


def _return_existing(sale: SaleGeneration, buyer_id: int, found: Order) -> Order:
    """Without a pointer, whoever made it died before its second copy, or before its answer."""
    if found.status == PENDING and not redis_store.has_pointer(found, buyer_id):
        _publish_and_point(OrderEvent(found.id, found.voucher_id, buyer_id, sale.generation))
    return found


def _load_or_find_order(voucher_id: int, buyer_id: int) -> Order | None:
    """The voucher's state is in Redis, or it is over and this is the order that the buyer has."""
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
    sale = redis_store.find_sales([voucher_id]).get(voucher_id)
    if sale is not None:
        _sales.put(voucher_id, sale)
    return sale


def _next_order_id() -> int:
    """A new id; one that was not used a moment ago will do."""
    spare = _spare_ids.pop() if _spare_ids else None
    if spare is not None and ids.created_at_s(spare) >= clock.now_s() - _SPARE_ID_TTL_S:
        return spare
    return ids.new_id()


def _cache_refusal(
    voucher_id: int, refusal: PlazaError, max_ttl_s: float = REFUSAL_TTL_S
) -> PlazaError:
    """Say the same for a second, or for ``max_ttl_s`` if that is less."""
    _refusals.put(voucher_id, refusal, max_ttl_s)
    return refusal
