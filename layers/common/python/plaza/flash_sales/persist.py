"""Saving: MySQL decides orders, then Redis is told.

Whoever decides orders of a voucher holds its row: so one of consumer, recovery and DLQ comes first,
the others find the order's row and tell Redis the same again. All of them decide by stock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pymysql.cursors import Cursor

from plaza.flash_sales import model, mysql_orders, mysql_vouchers, redis_store
from plaza.flash_sales.model import OrderEvent, OrderMismatch, OrderRow
from plaza.flash_sales.queues import ORDERS, ORDERS_DLQ
from plaza.infra import mysql
from plaza.infra.clock import Deadline
from plaza.infra.observability import record

__all__ = [
    "ORDERS",
    "ORDERS_DLQ",
    "DecidedBatch",
    "decide",
    "decide_dead_letters",
    "decide_outbox",
    "persist_orders",
    "send_mismatched",
]

_OUTBOX_PAGE = 500


class DecidedBatch(NamedTuple):
    """What became of a batch: the ``rows`` of its orders, how many of them are ``new``, and the
    events that have the id of another order."""

    rows: list[OrderRow]
    new: int
    mismatched: list[OrderEvent]


@ORDERS.consumer
def persist_orders(events: Sequence[OrderEvent]) -> None:
    """Decide a batch: successes while there is stock. One transaction of four statements at most.

    Safe to repeat. Raises MysqlDown; RedisDown, NotReady when Redis could not be told: the batch
    is to come again; OrderMismatch when all is done but events with the id of another order.
    """
    decided = decide(events)
    record(
        "orders_saved",
        {
            "orders": len(decided.rows),
            "orders_failed": sum(not row.is_success for row in decided.rows),
        },
        vouchers=len({row.voucher_id for row in decided.rows}),
    )
    _refuse(decided.mismatched)


@ORDERS_DLQ.consumer
def decide_dead_letters(events: Sequence[OrderEvent]) -> None:
    """Decide what the consumer of the queue could not, by stock as it would have.

    Safe to repeat. Raises as ``persist_orders``.
    """
    decided = decide(events)
    record("dead_orders_decided", {"dead_orders_decided": decided.new}, orders=len(decided.rows))
    _refuse(decided.mismatched)


def decide_outbox(deadline: Deadline, voucher_id: int | None = None) -> int:
    """Decide the orders that SQS did not take, of one voucher or of all; return how many.

    Stops at the deadline. Raises MysqlDown, RedisDown, NotReady; QueueDown when an event with the
    id of another order could not be sent to where it is dead-lettered.
    """
    saved = 0
    while not deadline.has_passed:
        events = mysql_orders.read_outbox(voucher_id, _OUTBOX_PAGE)
        if not events:
            break
        mismatched = decide(events).mismatched
        mysql_orders.delete_from_outbox([event for event in events if event not in mismatched])
        send_mismatched(mismatched)
        mysql_orders.delete_from_outbox(mismatched)
        saved += len(events)
    return saved


def send_mismatched(mismatched: Sequence[OrderEvent]) -> None:
    """Send events with the id of another order to the consumer, which dead-letters them.

    Raises QueueDown.
    """
    for event in mismatched:
        ORDERS.send(event)


def decide(events: Sequence[OrderEvent]) -> DecidedBatch:
    """Decide a batch and tell Redis. Safe to repeat. Raises MysqlDown, RedisDown, NotReady."""
    decided = mysql.run_in_transaction(lambda cursor: _write(cursor, events))
    told = redis_store.acknowledge(decided.rows)
    if told.adopted or told.returned:
        record(
            "stock_corrected",
            {"orders_adopted": told.adopted, "units_returned": told.returned},
        )
    return decided


def _refuse(mismatched: Sequence[OrderEvent]) -> None:
    """Free what Redis reserved for events with the id of another order. Raises OrderMismatch."""
    if not mismatched:
        return
    returned = redis_store.acknowledge(
        [OrderRow(*event.identity, "timed-out", event.request_id) for event in mismatched]
    ).returned
    shown = [":".join(map(str, event.identity)) for event in mismatched[:10]]
    record(
        "orders_mismatched",
        {"orders_mismatched": len(mismatched), "units_returned": returned},
        orders=shown,
    )
    raise OrderMismatch(f"of another order: {', '.join(shown)}")


def _write(cursor: Cursor, events: Sequence[OrderEvent]) -> DecidedBatch:
    """Insert the rows of ``events`` that have none yet."""
    stocks = mysql_vouchers.lock(cursor, {event.voucher_id for event in events})
    known, holders = mysql_orders.read_known(cursor, events)
    sound, mismatched = model.split_mismatched(events, known)
    new = model.decide(sound, known, holders, stocks)
    if new:
        mysql_orders.insert(cursor, new)
    if taken := model.count_units(new):
        mysql_vouchers.take_stock(cursor, taken)
    return DecidedBatch([*known.values(), *new], len(new), mismatched)
