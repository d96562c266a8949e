"""Vouchers for the audit: units left, sold and pending in MySQL and Redis."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import redis
from pymysql.cursors import Cursor

from local.audit.orders import OrderEntry
from plaza.commerce.flash_sales.model import SaleGeneration
from plaza.commerce.flash_sales.redis_keys import offers_key, state_key, waitlist_key

_FIELDS = ("generation", "phase", "initial_stock", "counts", "sold", "cancelled")


class VoucherRow(NamedTuple):
    """A voucher in MySQL; ``sold``: its successful orders; ``cancelled``: as the voucher counts
    them; ``listed``: rows of ``cancelled_order`` whose order has that reason."""

    initial_stock: int
    stock: int
    sold: int
    cancelled: int = 0
    listed: int = 0


class SaleState(NamedTuple):
    """A voucher in Redis. ``waiting``: number of buyers whose entry is pending; ``offered``,
    ``waiters``: as the state counts them; ``offers``, ``queued``: the entries of both keys."""

    live: bool
    initial_stock: int
    stock: int
    pending: int
    sold: int
    waiting: int
    generation: int = 0
    cancelled: int = 0
    offered: int = 0
    waiters: int = 0
    offers: int = 0
    queued: int = 0


def read_vouchers(cursor: Cursor) -> dict[int, VoucherRow]:
    """Return all vouchers by id, with their orders, archived ones included. One statement."""
    cursor.execute(
        """
        SELECT v.id, v.initial_stock, v.stock, COUNT(o.holder_id), v.cancelled, COUNT(c.order_id)
        FROM voucher AS v
        LEFT JOIN (
            SELECT voucher_id, order_id, holder_id, reason
            FROM voucher_order
            UNION ALL
            SELECT voucher_id, order_id, IF(reason IS NULL, buyer_id, NULL), reason
            FROM archived_order
        ) AS o ON o.voucher_id = v.id
        LEFT JOIN cancelled_order AS c ON c.voucher_id = v.id
          AND c.order_id = o.order_id
          AND o.reason = 'cancelled'
        GROUP BY v.id, v.initial_stock, v.stock, v.cancelled
        """
    )
    return {voucher_id: VoucherRow(*counts) for voucher_id, *counts in cursor.fetchall()}


def read_sales(
    client: redis.Redis, voucher_ids: list[int], orders: Iterable[OrderEntry]
) -> dict[int, SaleState]:
    """Return the sales that are in Redis, with their pending ``orders`` counted. Two pipelines."""
    waiting = Counter((entry.voucher_id, entry.generation) for entry in orders if entry.pending)
    pipe = client.pipeline(transaction=False)
    for voucher_id in voucher_ids:
        pipe.hmget(state_key(voucher_id), _FIELDS)
    states = {
        voucher_id: fields
        for voucher_id, fields in zip(
            voucher_ids, pipe.execute() if voucher_ids else (), strict=True
        )
        if fields[0] is not None
    }
    for voucher_id, (generation, _, initial_stock, *_) in states.items():
        sale = SaleGeneration(voucher_id, int(generation), int(initial_stock))
        for key in (offers_key(sale), waitlist_key(sale)):
            pipe.zcard(key)
    sizes = iter(pipe.execute() if states else [])
    sales = {}
    for (voucher_id, fields), offers, queued in zip(states.items(), sizes, sizes, strict=True):
        generation, phase, initial_stock, counts, sold, cancelled = fields
        stock, pending, offered, waiters, _ = map(int, counts.split(":"))
        sales[voucher_id] = SaleState(
            phase == "live",
            int(initial_stock),
            stock,
            pending,
            int(sold),
            waiting[voucher_id, int(generation)],
            int(generation),
            int(cancelled),
            offered,
            waiters,
            offers,
            queued,
        )
    return sales


def find_oversold(vouchers: Mapping[int, VoucherRow]) -> Iterator[tuple[str, str]]:
    """Yield vouchers in MySQL whose stock is not initial minus sold, or whose cancelled orders are
    not in the list. Always exact."""
    for voucher_id, (initial_stock, stock, sold, cancelled, listed) in sorted(vouchers.items()):
        if stock != initial_stock - sold or sold > initial_stock:
            yield (
                f"voucher {voucher_id}",
                f"initial {initial_stock}, stock {stock}, sold {sold}",
            )
        if cancelled != listed:
            yield f"voucher {voucher_id}", f"cancelled {cancelled}, listed {listed}"


def find_wrong_sales(
    vouchers: Mapping[int, VoucherRow], sales: Mapping[int, SaleState]
) -> Iterator[tuple[str, str]]:
    """Yield sales that differ between Redis and MySQL. Exact while nothing is in transit."""
    for voucher_id, sale in sorted(sales.items()):
        of = f"voucher {voucher_id}"
        shown = f"Redis initial {sale.initial_stock}, stock {sale.stock}, pending {sale.pending}"
        shown += f", sold {sale.sold}, cancelled {sale.cancelled}, offered {sale.offered}"
        if sale.initial_stock != sale.stock + sale.pending + sale.sold + sale.offered:
            yield of, f"{shown}: initial is not their sum"
        elif (sale.offered, sale.waiters) != (sale.offers, sale.queued):
            yield of, f"{shown}, but {sale.offers} offers; {sale.queued} of {sale.waiters} waiting"
        elif sale.waiting != sale.pending:
            yield of, f"{shown}, but {sale.waiting} pending entries"
        elif voucher_id not in vouchers:
            yield of, f"{shown}, MySQL has no row"
        elif sale.live and not sale.pending:
            row = vouchers[voucher_id]
            unsold = sale.stock + sale.offered
            if (sale.initial_stock, unsold, sale.sold, sale.cancelled) != row[:4]:
                stored = f"initial {row.initial_stock}, stock {row.stock}, sold {row.sold}"
                yield of, f"{shown}; MySQL {stored}, cancelled {row.cancelled}"
