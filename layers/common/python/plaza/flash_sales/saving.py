"""Saving: MySQL decides orders, then Redis is told.

Whoever decides orders of a voucher holds its row: so one of consumer, recovery and DLQ comes first,
the others find the order's row and tell Redis the same again. All of them decide by stock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pymysql.cursors import Cursor

from plaza.flash_sales import flash_sales, mysql_orders, mysql_vouchers, redis_vouchers
from plaza.flash_sales.flash_sales import OrderMismatch, OrderReserved, Row
from plaza.flash_sales.queues import ORDERS, ORDERS_DLQ
from plaza.infra import mysql
from plaza.infra.clock import Deadline
from plaza.infra.observability import record

__all__ = [
    "ORDERS",
    "ORDERS_DLQ",
    "Decided",
    "decide",
    "give_up",
    "save",
    "save_stored",
    "send_mismatched",
]

_STORED_PAGE = 500


class Decided(NamedTuple):
    """What became of a batch: the ``rows`` of its orders, how many of them are ``new``, and the
    events that have the id of another order."""

    rows: list[Row]
    new: int
    mismatched: list[OrderReserved]


@ORDERS.consumer
def save(facts: Sequence[OrderReserved]) -> None:
    """Decide a batch: successes while there is stock. One transaction of four statements at most.

    Safe to repeat. Raises MysqlDown; RedisDown, NotReady when Redis could not be told: the batch
    is to come again; OrderMismatch when all is done but events with the id of another order.
    """
    decided = decide(facts)
    record(
        "orders_saved",
        {"orders": len(decided.rows), "orders_failed": sum(not row.won for row in decided.rows)},
        vouchers=len({row.voucher_id for row in decided.rows}),
    )
    _refuse(decided.mismatched)


@ORDERS_DLQ.consumer
def give_up(facts: Sequence[OrderReserved]) -> None:
    """Decide what the consumer of the queue could not, by stock as it would have.

    Safe to repeat. Raises as ``save``.
    """
    decided = decide(facts)
    record("orders_given_up", {"orders_given_up": decided.new}, orders=len(decided.rows))
    _refuse(decided.mismatched)


def save_stored(deadline: Deadline, voucher_id: int | None = None) -> int:
    """Decide the orders that SQS did not take, of one voucher or of all; return how many.

    Stops at the deadline. Raises MysqlDown, RedisDown, NotReady; QueueDown when an event with the
    id of another order could not be sent to where it is dead-lettered.
    """
    saved = 0
    while not deadline.has_passed:
        facts = mysql_orders.read_stored(voucher_id, _STORED_PAGE)
        if not facts:
            break
        mismatched = decide(facts).mismatched
        mysql_orders.delete_stored([fact for fact in facts if fact not in mismatched])
        send_mismatched(mismatched)
        mysql_orders.delete_stored(mismatched)
        saved += len(facts)
    return saved


def send_mismatched(mismatched: Sequence[OrderReserved]) -> None:
    """Send events with the id of another order to the consumer, which dead-letters them.

    Raises QueueDown.
    """
    for fact in mismatched:
        ORDERS.send(fact)


def decide(facts: Sequence[OrderReserved]) -> Decided:
    """Decide a batch and tell Redis. Safe to repeat. Raises MysqlDown, RedisDown, NotReady."""
    decided = mysql.atomically(lambda cursor: _write(cursor, facts))
    told = redis_vouchers.tell(decided.rows)
    if told.adopted or told.returned:
        record(
            "units_moved",
            {"orders_adopted": told.adopted, "units_returned": told.returned},
        )
    return decided


def _refuse(mismatched: Sequence[OrderReserved]) -> None:
    """Free what Redis reserved for events with the id of another order. Raises OrderMismatch."""
    if not mismatched:
        return
    returned = redis_vouchers.tell(
        [Row(*fact.identity, "timed-out", fact.request_id) for fact in mismatched]
    ).returned
    shown = [":".join(map(str, fact.identity)) for fact in mismatched[:10]]
    record(
        "orders_mismatched",
        {"orders_mismatched": len(mismatched), "units_returned": returned},
        orders=shown,
    )
    raise OrderMismatch(f"of another order: {', '.join(shown)}")


def _write(cursor: Cursor, facts: Sequence[OrderReserved]) -> Decided:
    """Insert the rows of ``facts`` that have none yet."""
    stocks = mysql_vouchers.lock(cursor, {fact.voucher_id for fact in facts})
    known, holders = mysql_orders.read_known(cursor, facts)
    sound, mismatched = flash_sales.split_mismatches(facts, known)
    new = flash_sales.decide(sound, known, holders, stocks)
    if new:
        mysql_orders.insert(cursor, new)
    if taken := flash_sales.count_taken(new):
        mysql_vouchers.take(cursor, taken)
    return Decided([*known.values(), *new], len(new), mismatched)
