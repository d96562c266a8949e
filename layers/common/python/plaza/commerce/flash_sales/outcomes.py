"""Orders and offers for pushes: what to announce, and their state when a push is made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from plaza.commerce.flash_sales import mysql_orders, redis_sales, redis_waitlist, voucher_lookup
from plaza.commerce.flash_sales.model import FAILED, OFFER_US, SUCCESS, OrderRow, SaleGeneration
from plaza.infra.runtime import clock
from plaza.notifications.push import Notice, announce

ANNOUNCED_S = 150  # after its start an offer is announced, at each run of the recovery


class SaleOutcome(NamedTuple):
    """The user whom it concerns, what happened, and the title of the voucher, '' if unknown."""

    user_id: int
    what: str
    title: str


def announce_orders(rows: Iterable[OrderRow]) -> None:
    """Announce decided orders. Costs and errors as ``announce.announce_notices``."""
    announce.announce_notices(Notice("order", row.buyer_id, row.order_id) for row in rows)


def announce_offers(sales: Sequence[SaleGeneration]) -> None:
    """Announce the offers of sales that began a short time ago. One round trip. Raises RedisDown;
    otherwise as ``announce.announce_notices``."""
    if not sales or not announce.is_on():
        return
    since_us = clock.now_us() + OFFER_US - ANNOUNCED_S * 1_000_000
    offered = redis_waitlist.find_offered(sales, since_us)
    announce.announce_notices(
        Notice("waitlist", buyer_id, voucher_id)
        for voucher_id, buyer_ids in offered.items()
        for buyer_id in buyer_ids
    )


def read_orders(order_ids: Collection[int]) -> dict[int, SaleOutcome]:
    """Return the orders that succeeded or failed, and are neither used nor cancelled. Two
    statements. Raises MysqlDown."""
    rows = [
        row
        for row in mysql_orders.read_by_ids(order_ids).values()
        if row.order.status in (SUCCESS, FAILED)
    ]
    titles = _read_titles({row.voucher_id for row in rows})
    return {
        row.order_id: SaleOutcome(row.buyer_id, row.order.status, titles.get(row.voucher_id, ""))
        for row in rows
    }


def read_offers(pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], SaleOutcome]:
    """Return the offers of (voucher, buyer) pairs that have not ended. One statement and two round
    trips. Raises RedisDown."""
    sales = redis_sales.find_sales(sorted({voucher_id for voucher_id, _ in pairs}))
    known = [(sales[voucher_id], buyer) for voucher_id, buyer in pairs if voucher_id in sales]
    ends_us = redis_waitlist.read_offers(known) if known else []
    now_us = clock.now_us()
    live = [
        (sale.voucher_id, buyer)
        for (sale, buyer), end_us in zip(known, ends_us, strict=True)
        if end_us is not None and end_us > now_us
    ]
    titles = _read_titles({voucher_id for voucher_id, _ in live})
    return {pair: SaleOutcome(pair[1], "offered", titles.get(pair[0], "")) for pair in live}


def _read_titles(voucher_ids: Collection[int]) -> dict[int, str]:
    if not voucher_ids:
        return {}
    summaries = voucher_lookup.find_summaries(voucher_ids)
    return {voucher_id: summary.title for voucher_id, summary in summaries.items()}
