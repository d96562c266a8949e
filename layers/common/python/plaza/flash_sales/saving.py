"""Saving: MySQL decides orders, then Redis is told.

Whoever decides orders of a voucher holds its row: so one of consumer, recovery and DLQ comes first,
the others find the order's row and tell Redis the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pymysql.cursors import Cursor

from plaza.flash_sales import flash_sales, mysql_orders, mysql_vouchers, redis_vouchers
from plaza.flash_sales.flash_sales import OrderReserved, Row
from plaza.infra import mysql
from plaza.infra.observability import record

# (facts, the rows they have, who holds what, what is left) -> the rows to insert
_Decide = Callable[
    [Sequence[OrderReserved], Mapping[int, Row], Sequence[tuple[int, int]], Mapping[int, int]],
    list[Row],
]


def save(facts: Sequence[OrderReserved]) -> None:
    """Decide a batch: successes while there is stock. One transaction of four statements at most.

    Safe to repeat. Raises MysqlDown; RedisDown, NotReady when Redis could not be told: the batch
    is to come again.
    """
    rows = _decide_and_tell(facts, flash_sales.decide)
    record(
        "orders_saved",
        {"orders": len(rows), "orders_failed": sum(not row.won for row in rows)},
        vouchers=len({row.voucher_id for row in rows}),
    )


def give_up(facts: Sequence[OrderReserved]) -> None:
    """Decide as failures those that nobody has decided. Safe to repeat. Raises as ``save``."""
    rows = _decide_and_tell(facts, lambda facts, known, *_: flash_sales.give_up(facts, known))
    given_up = sum(row.reason == "timed-out" for row in rows)
    record("orders_given_up", {"orders_given_up": given_up}, orders=len(rows))


def _decide_and_tell(facts: Sequence[OrderReserved], decide: _Decide) -> list[Row]:
    rows = mysql.atomically(lambda cursor: _write(cursor, facts, decide))
    told = redis_vouchers.tell(rows)
    if told.adopted or told.returned:
        record(
            "units_moved",
            {"orders_adopted": told.adopted, "units_returned": told.returned},
        )
    return rows


def _write(cursor: Cursor, facts: Sequence[OrderReserved], decide: _Decide) -> list[Row]:
    """The rows of ``facts``, by now or from before."""
    stocks = mysql_vouchers.lock(cursor, {fact.voucher_id for fact in facts})
    known, holders = mysql_orders.read_known(cursor, facts)
    new = decide(facts, known, holders, stocks)
    if new:
        mysql_orders.insert(cursor, new)
    if taken := flash_sales.count_taken(new):
        mysql_vouchers.take(cursor, taken)
    return [*known.values(), *new]
