"""Orders and offers for pushes: what to announce, and their state when a push is made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from plaza.commerce.flash_sales import mysql_orders, redis_sales, redis_waitlist, voucher_lookup
from plaza.commerce.flash_sales.model import FAILED, OFFER_US, SUCCESS, OrderRow, SaleGeneration
from plaza.infra.queues import announcements
from plaza.infra.queues.announcements import Notice, NoticeKind, NoticeText
from plaza.infra.runtime import clock

ANNOUNCED_S = 150  # after its start an offer is announced, at each run of the recovery


def announce_orders(rows: Iterable[OrderRow]) -> None:
    """Announce decided orders. Costs and errors as ``announcements.announce_notices``."""
    announcements.announce_notices(Notice("order", row.buyer_id, row.order_id) for row in rows)


def announce_offers(sales: Sequence[SaleGeneration]) -> None:
    """Announce the offers of sales that began a short time ago. One round trip. Raises RedisDown;
    otherwise as ``announcements.announce_notices``."""
    if not sales or not announcements.is_on():
        return
    since_us = clock.now_us() + OFFER_US - ANNOUNCED_S * 1_000_000
    offered = redis_waitlist.find_offered(sales, since_us)
    announcements.announce_notices(
        Notice("waitlist", buyer_id, voucher_id)
        for voucher_id, buyer_ids in offered.items()
        for buyer_id in buyer_ids
    )


def _read_orders(notices: Collection[Notice]) -> dict[Notice, NoticeText]:
    """Return the orders that succeeded or failed, and are neither used nor cancelled. Two
    statements. Raises MysqlDown."""
    rows = {
        (row.buyer_id, row.order_id): row
        for row in mysql_orders.read_by_ids({notice.subject_id for notice in notices}).values()
        if row.order.status in (SUCCESS, FAILED)
    }
    titles = _read_titles({row.voucher_id for row in rows.values()})
    return {
        notice: NoticeText(row.order.status, titles.get(row.voucher_id))
        for notice in notices
        if (row := rows.get((notice.user_id, notice.subject_id)))
    }


def _read_offers(notices: Collection[Notice]) -> dict[Notice, NoticeText]:
    """Return the offers of vouchers that have not ended. One statement and two round trips. Raises
    RedisDown."""
    sales = redis_sales.find_sales(sorted({notice.subject_id for notice in notices}))
    known = [notice for notice in notices if notice.subject_id in sales]
    pairs = [(sales[notice.subject_id], notice.user_id) for notice in known]
    ends_us = redis_waitlist.read_offers(pairs) if pairs else []
    now_us = clock.now_us()
    live = [
        notice
        for notice, end_us in zip(known, ends_us, strict=True)
        if end_us is not None and end_us > now_us
    ]
    titles = _read_titles({notice.subject_id for notice in live})
    return {notice: NoticeText("offered", titles.get(notice.subject_id)) for notice in live}


def _read_titles(voucher_ids: Collection[int]) -> dict[int, str]:
    if not voucher_ids:
        return {}
    summaries = voucher_lookup.find_summaries(voucher_ids)
    return {voucher_id: summary.title for voucher_id, summary in summaries.items()}


ORDERS = NoticeKind("order", "order", _read_orders)
OFFERS = NoticeKind("waitlist", "voucher", _read_offers)
