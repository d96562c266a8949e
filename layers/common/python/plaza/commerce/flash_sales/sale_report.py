"""Sales by their state or of a shop, with the units of Redis and of MySQL, for operators and
members of shops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plaza.commerce.flash_sales import mysql_orders, mysql_vouchers, mysql_waitlist, redis_sales
from plaza.commerce.flash_sales.model import SaleState, Voucher
from plaza.commerce.flash_sales.redis_sales import SaleCounts
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock


class SaleReport(NamedTuple):
    """A sale. ``counts``: None if Redis does not have it. ``failed``: orders that failed.
    ``waiting``: buyers in the waitlist."""

    voucher: Voucher
    counts: SaleCounts | None
    failed: int
    waiting: int


def read_sales(
    state: SaleState, after: tuple[int, int] | None, limit: int
) -> tuple[list[SaleReport], tuple[int, int] | None]:
    """Return (a page of sales; the time and id of its last one, None on the last page).

    Running sales in the order in which they close, coming ones in that in which they open, ended
    ones latest first. One round trip and three statements. While Redis is unavailable no sale has
    ``counts``. Raises MysqlDown.
    """
    vouchers = mysql_vouchers.read_by_state(state, clock.now_us(), after, limit + 1)
    reports = _report(vouchers[:limit])
    if len(vouchers) <= limit:
        return reports, None
    last = vouchers[limit - 1]
    terms = last.terms
    return reports, (terms.opens_us if state == "coming" else terms.closes_us, last.id)


def read_sales_of_shop(
    shop_id: int, before_id: int | None, limit: int
) -> tuple[list[SaleReport], int | None]:
    """Return (a page of a shop's sales, newest first, also of withdrawn vouchers; the id of its
    last one, None on the last page). Costs and errors as ``read_sales``."""
    vouchers = mysql_vouchers.read_of_shop(shop_id, before_id, limit + 1)
    reports = _report(vouchers[:limit])
    return reports, vouchers[limit - 1].id if len(vouchers) > limit else None


def _report(vouchers: Sequence[Voucher]) -> list[SaleReport]:
    """Return the reports of vouchers. One round trip and two statements."""
    ids = [voucher.id for voucher in vouchers]
    try:
        counts = redis_sales.read_counts(ids)
    except RedisDown:
        counts = {}
    without_success = mysql_orders.count_without_success(ids)
    waiting = mysql_waitlist.count([i for i in ids if i not in counts])
    waiting |= {voucher_id: of_redis.waiting for voucher_id, of_redis in counts.items()}
    return [
        SaleReport(
            voucher,
            counts.get(voucher.id),
            max(0, without_success.get(voucher.id, 0) - voucher.cancelled),
            waiting.get(voucher.id, 0),
        )
        for voucher in vouchers
    ]
