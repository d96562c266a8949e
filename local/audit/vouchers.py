"""Vouchers for the audit: what MySQL and Redis say is left, sold and pending."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import redis
from pymysql.cursors import Cursor

from plaza.flash_sales.flash_sales import Life
from plaza.flash_sales.redis_vouchers import recovery_key, state_key

_FIELDS = ("epoch", "phase", "initial", "stock", "pending", "sold")


class Sold(NamedTuple):
    """A voucher in MySQL: units there ever were, units left, orders that succeeded."""

    initial: int
    stock: int
    sold: int


class Sale(NamedTuple):
    """A voucher in Redis. ``waiting``: how many orders the recovery knows of; ``epoch``: its
    life."""

    live: bool
    initial: int
    stock: int
    pending: int
    sold: int
    waiting: int
    epoch: int = 0


def read_vouchers(cursor: Cursor) -> dict[int, Sold]:
    """All vouchers by id. One statement."""
    cursor.execute(
        "SELECT v.id, v.initial, v.stock, COUNT(o.holder) FROM voucher AS v"
        " LEFT JOIN voucher_order AS o ON o.voucher_id = v.id GROUP BY v.id, v.initial, v.stock"
    )
    return {voucher_id: Sold(*counts) for voucher_id, *counts in cursor.fetchall()}


def read_sales(client: redis.Redis, voucher_ids: list[int]) -> dict[int, Sale]:
    """The sales that Redis holds. Two pipelines."""
    pipe = client.pipeline(transaction=False)
    for voucher_id in voucher_ids:
        pipe.hmget(state_key(voucher_id), _FIELDS)
    held = {
        voucher_id: fields
        for voucher_id, fields in zip(
            voucher_ids, pipe.execute() if voucher_ids else (), strict=True
        )
        if fields[0] is not None
    }
    for voucher_id, (epoch, _, initial, *_) in held.items():
        pipe.zcard(recovery_key(Life(voucher_id, int(epoch), int(initial))))
    waiting = pipe.execute() if held else []
    sales = {}
    for (voucher_id, fields), in_recovery in zip(held.items(), waiting, strict=True):
        epoch, phase, initial, stock, pending, sold = fields
        counts = (int(initial), int(stock), int(pending), int(sold))
        sales[voucher_id] = Sale(phase == "live", *counts, in_recovery, int(epoch))
    return sales


def find_oversold(vouchers: Mapping[int, Sold]) -> Iterator[tuple[str, str]]:
    """Vouchers in MySQL whose stock is not what their successes left. Always exact."""
    for voucher_id, (initial, stock, sold) in sorted(vouchers.items()):
        if stock != initial - sold or sold > initial:
            yield f"voucher {voucher_id}", f"initial {initial}, stock {stock}, successes {sold}"


def find_wrong_sales(
    vouchers: Mapping[int, Sold], sales: Mapping[int, Sale]
) -> Iterator[tuple[str, str]]:
    """Sales of which Redis and MySQL differ. Exact when nothing is on its way."""
    for voucher_id, sale in sorted(sales.items()):
        of = f"voucher {voucher_id}"
        shown = f"Redis initial {sale.initial}, stock {sale.stock}, pending {sale.pending}"
        shown += f", sold {sale.sold}"
        if sale.initial != sale.stock + sale.pending + sale.sold:
            yield of, f"{shown}: they don't add up"
        elif sale.waiting != sale.pending:
            yield of, f"{shown}, but {sale.waiting} wait to be recovered"
        elif voucher_id not in vouchers:
            yield of, f"{shown}, MySQL has none"
        elif sale.live and not sale.pending:
            mine = vouchers[voucher_id]
            if (sale.initial, sale.stock, sale.sold) != mine:
                yield (
                    of,
                    f"{shown}; MySQL initial {mine.initial}, stock {mine.stock}, sold {mine.sold}",
                )
