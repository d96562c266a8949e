"""Decide orders in MySQL, then acknowledge them to Redis.

The consumers of the queue and of the DLQ and the recovery may decide the same order. Each locks the
voucher: the first inserts the order's row, by stock; the others acknowledge that row again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plaza.commerce.flash_sales import model, mysql_orders, mysql_vouchers, outcomes, redis_orders
from plaza.commerce.flash_sales.model import OrderEvent, OrderMismatch, OrderRow
from plaza.commerce.flash_sales.queues import ORDERS, ORDERS_DLQ
from plaza.core.event_log import append_events
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.queues import save_rate
from plaza.infra.queues.retries import at_step
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record

__all__ = [
    "ORDERS",
    "ORDERS_DLQ",
    "DecidedBatch",
    "acknowledge_decided",
    "decide",
    "decide_dead_letters",
    "decide_spilled",
    "persist_orders",
    "send_mismatched",
]

_SPILLED_PAGE = 500
_ACKNOWLEDGE = "acknowledge"


class DecidedBatch(NamedTuple):
    """The ``rows`` of a batch, how many of them are ``new``, and the events whose id belongs to
    another order."""

    rows: list[OrderRow]
    new: int
    mismatched: list[OrderEvent]


@ORDERS.consumer
def persist_orders(events: Sequence[OrderEvent]) -> None:
    """Decide a batch: successes while stock remains. One transaction of three packets.

    Safe to repeat. Raises MysqlDown; Busy as ``save_rate``: retry the batch; RedisDown, NotReady if
    Redis was not updated: it resumes with the acknowledgement; OrderMismatch after all events but
    those with the id of another order are stored.
    """
    save_rate.wait_for_turn(len(events))
    decided = mysql.run_in_transaction(lambda cursor: _write(cursor, events))
    record(
        "orders_saved",
        {
            "orders": len(decided.rows),
            "orders_failed": sum(not row.is_success for row in decided.rows),
        },
        vouchers=len({row.voucher_id for row in decided.rows}),
    )
    outcomes.announce_orders(decided.rows)
    with at_step(_ACKNOWLEDGE):
        _acknowledge(decided.rows)
        _release_mismatched(decided.mismatched)


@ORDERS.resumes_at(_ACKNOWLEDGE)
def acknowledge_decided(events: Sequence[OrderEvent]) -> None:
    """Acknowledge a batch that is decided, as its rows are now. One statement without locks.

    Safe to repeat. Raises MysqlDown, RedisDown, NotReady: retry the acknowledgement; OrderMismatch
    as ``persist_orders``. Events that have no row any more, after a restore, are decided.
    """
    existing = mysql_orders.read_decided(events)
    lost = [event for event in events if event.order_id not in existing]
    if lost:
        persist_orders(lost)
    _acknowledge(list(existing.values()))
    _, mismatched = model.split_mismatched(events, existing)
    _release_mismatched(mismatched)


@ORDERS_DLQ.consumer
def decide_dead_letters(events: Sequence[OrderEvent]) -> None:
    """Decide dead-lettered orders by stock, too. Safe to repeat. Raises as ``persist_orders``."""
    decided = decide(events)
    record("dead_orders_decided", {"dead_orders_decided": decided.new}, orders=len(decided.rows))
    _release_mismatched(decided.mismatched)


def decide_spilled(deadline: Deadline, voucher_id: int | None = None) -> int:
    """Decide the orders that SQS refused, of one voucher or of all; return how many.

    Stops at the deadline. Raises MysqlDown, RedisDown, NotReady; QueueDown if an event with the id
    of another order could not be sent to the consumer that dead-letters it.
    """
    decided_count = 0
    while not deadline.has_passed:
        events = mysql_orders.read_spilled(voucher_id, _SPILLED_PAGE)
        if not events:
            break
        mismatched = decide(events).mismatched
        mysql_orders.delete_spilled([event for event in events if event not in mismatched])
        send_mismatched(mismatched)
        mysql_orders.delete_spilled(mismatched)
        decided_count += len(events)
    return decided_count


def send_mismatched(mismatched: Sequence[OrderEvent]) -> None:
    """Send events with the id of another order to the consumer, for the DLQ. Raises QueueDown."""
    for event in mismatched:
        ORDERS.send(event)


def decide(events: Sequence[OrderEvent]) -> DecidedBatch:
    """Decide and acknowledge a batch. Safe to repeat. Raises MysqlDown, RedisDown, NotReady."""
    decided = mysql.run_in_transaction(lambda cursor: _write(cursor, events))
    outcomes.announce_orders(decided.rows)
    _acknowledge(decided.rows)
    return decided


def _acknowledge(rows: Sequence[OrderRow]) -> None:
    result = redis_orders.acknowledge(rows)
    if result.adopted or result.returned:
        record(
            "stock_corrected",
            {"orders_adopted": result.adopted, "units_returned": result.returned},
        )


def _release_mismatched(mismatched: Sequence[OrderEvent]) -> None:
    """Release what Redis reserved for these events, then raise OrderMismatch if there are any."""
    if not mismatched:
        return
    returned = redis_orders.acknowledge(
        [OrderRow(*event.identity, "timed-out", event.request_id) for event in mismatched]
    ).returned
    shown = [":".join(map(str, event.identity)) for event in mismatched[:10]]
    record(
        "orders_mismatched",
        {"orders_mismatched": len(mismatched), "units_returned": returned},
        orders=shown,
    )
    raise OrderMismatch(f"ids of other orders: {', '.join(shown)}")


def _write(cursor: Cursor, events: Sequence[OrderEvent]) -> DecidedBatch:
    """Read, decide and write in three packets; the vouchers are locked for all of them."""
    barrier, vouchers, orders = mysql.read_all(
        cursor,
        [
            append_events.SHARE_BARRIER,
            mysql_vouchers.select_locked({event.voucher_id for event in events}),
            mysql_orders.select_existing(events),
        ],
    )
    append_events.require_barrier(barrier)
    stocks, (existing, holders) = (
        mysql_vouchers.stocks_of(vouchers),
        mysql_orders.existing_of(orders),
    )
    matching, mismatched = model.split_mismatched(events, existing)
    new = model.decide(matching, existing, holders, stocks)
    if new:
        mysql_orders.insert(cursor, new)
        mysql_orders.append_to_log(cursor, new)
    if taken := model.count_units(new):
        mysql_vouchers.take_stock(cursor, taken)
    return DecidedBatch([*existing.values(), *new], len(new), mismatched)
