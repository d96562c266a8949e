"""Vouchers for the audit: what MySQL and Redis say is left, sold and pending."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import redis
from pymysql.cursors import Cursor

from plaza.flash_sales.model import SaleGeneration
from plaza.flash_sales.redis_store import recovery_key, state_key

_FIELDS = ("generation", "phase", "initial_stock", "stock", "pending", "sold")


class VoucherRow(NamedTuple):
    """A voucher in MySQL: units there ever were, units left, orders that succeeded."""

    initial_stock: int
    stock: int
    sold: int


class SaleState(NamedTuple):
    """A voucher in Redis. ``waiting``: how many orders the recovery knows of; ``generation``: its
    generation."""

    live: bool
    initial_stock: int
    stock: int
    pending: int
    sold: int
    waiting: int
    generation: int = 0


def read_vouchers(cursor: Cursor) -> dict[int, VoucherRow]:
    """All vouchers by id. One statement."""
    cursor.execute(
        "SELECT v.id, v.initial_stock, v.stock, COUNT(o.holder_id) FROM voucher AS v"
        " LEFT JOIN voucher_order AS o ON o.voucher_id = v.id GROUP BY v.id, v.initial_stock, v.stock"
    )
    return {voucher_id: VoucherRow(*counts) for voucher_id, *counts in cursor.fetchall()}


def read_sales(client: redis.Redis, voucher_ids: list[int]) -> dict[int, SaleState]:
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
    for voucher_id, (generation, _, initial_stock, *_) in held.items():
        pipe.zcard(recovery_key(SaleGeneration(voucher_id, int(generation), int(initial_stock))))
    waiting = pipe.execute() if held else []
    sales = {}
    for (voucher_id, fields), in_recovery in zip(held.items(), waiting, strict=True):
        generation, phase, initial_stock, stock, pending, sold = fields
        counts = (int(initial_stock), int(stock), int(pending), int(sold))
        sales[voucher_id] = SaleState(phase == "live", *counts, in_recovery, int(generation))
    return sales


def find_oversold(vouchers: Mapping[int, VoucherRow]) -> Iterator[tuple[str, str]]:
    """Vouchers in MySQL whose stock is not what their successes left. Always exact."""
    for voucher_id, (initial_stock, stock, sold) in sorted(vouchers.items()):
        if stock != initial_stock - sold or sold > initial_stock:
            yield (
                f"voucher {voucher_id}",
                f"initial {initial_stock}, stock {stock}, successes {sold}",
            )


def find_wrong_sales(
    vouchers: Mapping[int, VoucherRow], sales: Mapping[int, SaleState]
) -> Iterator[tuple[str, str]]:
    """Sales of which Redis and MySQL differ. Exact when nothing is on its way."""
    for voucher_id, sale in sorted(sales.items()):
        of = f"voucher {voucher_id}"
        shown = f"Redis initial {sale.initial_stock}, stock {sale.stock}, pending {sale.pending}"
        shown += f", sold {sale.sold}"
        if sale.initial_stock != sale.stock + sale.pending + sale.sold:
            yield of, f"{shown}: they don't add up"
        elif sale.waiting != sale.pending:
            yield of, f"{shown}, but {sale.waiting} wait to be recovered"
        elif voucher_id not in vouchers:
            yield of, f"{shown}, MySQL has none"
        elif sale.live and not sale.pending:
            row = vouchers[voucher_id]
            if (sale.initial_stock, sale.stock, sale.sold) != row:
                yield (
                    of,
                    f"{shown}; MySQL initial {row.initial_stock}, stock {row.stock}, sold {row.sold}",
                )
