"""Ordering: a reservation in Redis, an event on the queue, and an id that its buyer can ask about.

Nobody is told an id before its order has two copies: Redis and the queue, or Redis and MySQL when
SQS refuses. The pointer of the buyer is written after the second copy, so who finds an order
without a pointer publishes it again.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from plaza.flash_sales import loading, mysql_orders, redis_vouchers, waiting
from plaza.flash_sales.flash_sales import (
    PENDING,
    Crowded,
    Life,
    NotOpen,
    NotReady,
    Order,
    OrderReserved,
    SoldOut,
    VoucherGone,
    VoucherMissing,
)
from plaza.flash_sales.queues import ORDERS
from plaza.infra import clock, ids
from plaza.infra.errors import PlazaError
from plaza.infra.observability import cause, present_request, record
from plaza.infra.process import LocalCache, on_reset
from plaza.infra.queues import QueueDown

REFUSED_FOR_S = 1.0
_SPARE_S = 1
_MOST_TRIES = 5
_MOST_HELD = 10_000

_lives: LocalCache[int, Life] = LocalCache(_MOST_HELD)
_refusals: LocalCache[int, PlazaError] = LocalCache(_MOST_HELD, REFUSED_FOR_S)
_spare_ids: list[int] = []  # at most one
on_reset(_spare_ids.clear)


class _Early(NotOpen):
    """The sale has not begun: nobody can have an order."""


def order(voucher_id: int, buyer_id: int) -> tuple[Order, bool]:
    """(The order that the buyer has now, whether this made it).

    Raises VoucherMissing, VoucherGone, NotOpen, SoldOut, Crowded; NotReady, RedisDown, MysqlDown:
    try again, they may have an order.
    """
    if refusal := _refusals.get(voucher_id):
        life = _lives.get(voucher_id)
        if isinstance(refusal, _Early | VoucherMissing) or life is None:
            raise refusal
        # Who has an order gets it whatever is said to others.
        if found := redis_vouchers.find_order_of(life, buyer_id):
            return _answer_again(life, buyer_id, found), False
        raise refusal
    for _ in range(_MOST_TRIES):
        life = _lives.get(voucher_id) or _find_life(voucher_id)
        if life is None:
            if found := _bring_back(voucher_id, buyer_id):
                return found, False
            continue
        order_id = _take_id()
        code, detail, id_unused = redis_vouchers.reserve(life, order_id, buyer_id)
        if code == "RESERVED":
            return _accept(OrderReserved(order_id, voucher_id, buyer_id, life.epoch)), True
        if id_unused:
            _spare_ids[:] = [order_id]
        match code:
            case "EXISTS":
                found = redis_vouchers.read_entry(life, detail)
                if found is not None:
                    return _answer_again(life, buyer_id, found), False
            case "SOLD_OUT":
                raise _remember(voucher_id, SoldOut("Nothing is left"))
            case "GONE":
                raise _remember(voucher_id, VoucherGone("The shop of this voucher was deleted"))
            case "CLOSED":
                raise _remember(voucher_id, NotOpen("This sale is over"))
            case "EARLY":
                refusal = _Early("This sale has not begun")
                raise _remember(voucher_id, refusal, int(detail) / 1e6)
            case "CROWDED":
                raise Crowded("Many want this right now", max(1, ceil(int(detail) / 1e6)))
            case "HELD":
                loading.open_if_drained(life)
            case "LOADING":
                loading.bring_back(voucher_id)
            case "COLD" | "ENDED":
                _lives.drop(voucher_id)
    raise NotReady("The sale was brought back each time it was asked")


def publish(fact: OrderReserved) -> bool:
    """Give a reservation its second copy: on the queue, or in MySQL when SQS refuses (False).

    Raises MysqlDown when neither took it: it is in Redis alone, and the recovery sends it later.
    """
    try:
        ORDERS.send(fact)
    except QueueDown as error:
        waiting.note_silence()
        mysql_orders.store(replace(fact, request_id=present_request()))
        record("order_postponed", {"orders_postponed": 1}, order_id=fact.order_id, **cause(error))
        return False
    return True


def _accept(fact: OrderReserved) -> Order:
    publish(fact)
    redis_vouchers.point(fact.buyer_id, fact.order_id, fact.voucher_id)
    return Order(fact.order_id, fact.voucher_id, PENDING)


def _answer_again(life: Life, buyer_id: int, found: Order) -> Order:
    """Without a pointer, whoever made it died before its second copy, or before its answer."""
    if found.status == PENDING and not redis_vouchers.has_pointer(found, buyer_id):
        _accept(OrderReserved(found.id, found.voucher_id, buyer_id, life.epoch))
    return found


def _bring_back(voucher_id: int, buyer_id: int) -> Order | None:
    """The voucher's state is in Redis, or it is over and this is the order that the buyer has."""
    try:
        loading.bring_back(voucher_id)
    except (NotOpen, VoucherGone):
        row = mysql_orders.read_of_holder(voucher_id, buyer_id)
        if row is None:
            raise
        return row.order
    except VoucherMissing as error:
        raise _remember(voucher_id, error) from None
    return None


def _find_life(voucher_id: int) -> Life | None:
    life = redis_vouchers.find_lives([voucher_id]).get(voucher_id)
    if life is not None:
        _lives.put(voucher_id, life)
    return life


def _take_id() -> int:
    """A new id; one that was not used a moment ago will do."""
    spare = _spare_ids.pop() if _spare_ids else None
    if spare is not None and ids.made_at_s(spare) >= clock.now_s() - _SPARE_S:
        return spare
    return ids.new_id()


def _remember(voucher_id: int, refusal: PlazaError, most_s: float = REFUSED_FOR_S) -> PlazaError:
    """Say the same for a second, or for ``most_s`` if that is less."""
    _refusals.put(voucher_id, refusal, most_s)
    return refusal
