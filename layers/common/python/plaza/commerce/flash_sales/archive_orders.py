"""Archive the final orders of closed months in S3, and delete them from ``voucher_order``.

A run may stop at any point, be repeated, or overlap with another: an object is written and read
back before any of its orders is deleted, and an order is deleted under a lock, only while it is
what the object has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

from plaza.commerce.flash_sales import mysql_archive, s3_archive
from plaza.commerce.flash_sales.model import ArchivedOrder
from plaza.commerce.flash_sales.s3_archive import ArchivedPage
from plaza.infra.aws.archive import ArchiveCorrupt
from plaza.infra.derived import ids
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record

MAX_RUN_S = 120.0
ORDERS_PER_OBJECT = 5_000  # a reader of one order loads all of them
MIN_ORDERS = 1_000  # fewer wait for the first day of a month, so that a month has few objects
_ORDERS_PER_TRANSACTION = 500


def run_archive(event: Mapping[str, object]) -> dict[str, int]:
    """Archive orders in a run of MaintainLog, at least ``{"min_orders": number}`` of a month;
    return their number. Raises as ``archive_orders``."""
    return {"orders_archived": archive_orders(int(str(event.get("min_orders", MIN_ORDERS))))}


def archive_orders(min_orders: int = MIN_ORDERS, today: date | None = None) -> int:
    """Archive orders of the months before the last one that can no longer change; return how many
    were deleted from ``voucher_order``. Fewer than ``min_orders`` wait for the first day of a
    month. Stops after two minutes. Raises MysqlDown, ObjectsDown."""
    today = today or clock.today()
    deadline, before = Deadline.in_s(MAX_RUN_S), _find_cutoff(today)
    archived = corrupt = after_id = 0
    end_id = ids.first_id_at(int(before.timestamp()))
    while not deadline.has_passed:
        page = mysql_archive.read_final(after_id, end_id, before, ORDERS_PER_OBJECT)
        if not page:
            break
        after_id = page[-1].order_id
        for month, of_month in groupby(page, lambda order: s3_archive.month_of(order.order_id)):
            orders = list(of_month)
            if len(orders) < min_orders and today.day > 1:
                continue
            try:
                archived += _archive(orders)
            except ArchiveCorrupt as error:  # the orders stay; the next run writes them again
                corrupt += 1
                record("archive_corrupt", day=month, what=str(error))
    record("orders_archived", {"orders_archived": archived, "archives_corrupt": corrupt})
    return archived


def _find_cutoff(today: date) -> datetime:
    """Return the beginning of the month before ``today``'s. Messages live for 14 days, so
    none of an order from before is left."""
    last_month = today.replace(day=1) - timedelta(days=1)
    return datetime(last_month.year, last_month.month, 1, tzinfo=UTC)


def _archive(orders: Sequence[ArchivedOrder]) -> int:
    """Write orders of one month, then delete them from MySQL; return how many were deleted."""
    page, deleted = s3_archive.put(orders), 0
    for start in range(0, len(page.orders), _ORDERS_PER_TRANSACTION):
        part = page._replace(orders=page.orders[start : start + _ORDERS_PER_TRANSACTION])
        deleted += mysql.run_in_transaction(lambda cursor, part=part: _move(cursor, part))  # type: ignore[misc]
    return deleted


def _move(cursor: Cursor, page: ArchivedPage) -> int:
    """Delete those orders that are still what the archive has. Three statements."""
    present = mysql_archive.lock(cursor, [order.order_id for order in page.orders])
    unchanged = [order for order in page.orders if present.get(order.order_id) == order]
    if unchanged:
        mysql_archive.insert(cursor, unchanged, page.digest)
        mysql_archive.delete(cursor, [order.order_id for order in unchanged])
    return len(unchanged)
