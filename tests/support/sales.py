"""Sales for tests: create and read them, and check their invariant."""

from __future__ import annotations

import time
from pathlib import Path

from redis.exceptions import NoScriptError

from plaza.commerce.flash_sales import (
    Order,
    OrderEvent,
    Terms,
    Voucher,
    create_voucher,
    mysql_orders,
    queries,
    redis_keys,
    redis_sales,
)
from plaza.commerce.flash_sales.model import OrderRow, SaleGeneration
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.commerce.flash_sales.redis_sales import SaleCounts
from plaza.infra.mysql import mysql
from plaza.infra.mysql.sql import to_us
from plaza.infra.redis import connections, redis
from plaza.infra.redis.scripts import load_script
from tests.support.servers import IS_CLUSTER

SHOP = 5
ADMIN = 1
CHECK = load_script(Path(__file__).with_name("check_voucher.lua"))


def now_us() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000


def terms(stock: int = 3, opens_in_s: float = -60, closes_in_s: float = 3600) -> Terms:
    """Return terms of a sale that is open by default."""
    now = now_us()
    return Terms(
        SHOP, "Dinner", 1990, stock, now + int(opens_in_s * 1e6), now + int(closes_in_s * 1e6)
    )


def offer(stock: int = 3, opens_in_s: float = -60, closes_in_s: float = 3600) -> Voucher:
    """Create a voucher, and its shop if it is missing."""
    mysql.write("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Bistro')", (SHOP,))
    return create_voucher.create_voucher(terms(stock, opens_in_s, closes_in_s), ADMIN)


def read_counts(voucher_id: int) -> SaleCounts | None:
    """Return the counts in Redis, or None."""
    return redis_sales.read_counts([voucher_id]).get(voucher_id)


def counts(voucher_id: int) -> tuple[int, int, int]:
    """Return (stock, pending, sold) in Redis."""
    result = read_counts(voucher_id)
    assert result is not None
    return result.stock, result.pending, result.sold


def change_counts(
    voucher_id: int, *, stock: int = 0, pending: int = 0, offered: int = 0, full_us: int = 0
) -> None:
    """Add to the counts in Redis."""
    key = redis_keys.state_key(voucher_id)
    counts = map(int, redis.execute("HGET", key, "counts").split(":"))
    changes = (stock, pending, offered, 0, full_us)
    changed = [count + change for count, change in zip(counts, changes, strict=True)]
    redis.execute("HSET", key, "counts", ":".join(map(str, changed)))


def list_overdue(sale: SaleGeneration, *orders: tuple[int, int]) -> None:
    """Append (order, buyer) pairs to the recovery list, as reserved long ago."""
    entries = (f"{order_id}:{buyer_id}:1" for order_id, buyer_id in orders)
    redis.execute("RPUSH", redis_keys.recovery_key(sale), *entries)


def stock(voucher_id: int) -> int:
    """Return the remaining units in MySQL."""
    [(left,)] = mysql.fetch_all("SELECT stock FROM voucher WHERE id = %s", (voucher_id,))
    return int(left)


def rows(voucher_id: int) -> dict[int, OrderRow]:
    """Return order id -> row of the decided orders."""
    result = mysql.fetch_all(
        "SELECT order_id, voucher_id, buyer_id, reason, used_at"
        " FROM voucher_order WHERE voucher_id = %s",
        (voucher_id,),
    )
    return {
        order_id: OrderRow(order_id, voucher, buyer, reason, used_us=used_at and to_us(used_at))
        for order_id, voucher, buyer, reason, used_at in result
    }


def cancelled(voucher_id: int) -> set[int]:
    """Return the ids of the cancelled orders."""
    return {order_id for order_id, _ in mysql_orders.read_cancelled(voucher_id, 0, 100_000)}


def holders(voucher_id: int) -> list[int]:
    """Return the buyers with a success, in order."""
    return [buyer for _, buyer in mysql_orders.read_holders(voucher_id, 0, 100_000)]


def parse_events(bodies: list[str]) -> list[OrderEvent]:
    """Parse the bodies of messages."""
    return [ORDERS.decode(str(body)) for body in bodies]


def find_violations(*voucher_ids: int) -> str:
    """Return the violations of the invariants of sales in Redis, '' if there are none.

    One round trip; in a cluster, one a voucher.
    """
    bases = [redis_keys.state_key(v).removesuffix("sale") for v in voucher_ids]
    return "".join(
        _run_check(part) for part in ([[base] for base in bases] if IS_CLUSTER else [bases])
    )


def _run_check(bases: list[str]) -> str:
    client = connections.client()
    key = f"{bases[0]}sale"
    try:
        return str(client.execute_command("EVALSHA", CHECK.sha, 1, key, *bases))
    except NoScriptError:
        return str(client.execute_command("EVAL", CHECK.source, 1, key, *bases))


def check(voucher_id: int) -> None:
    """Assert the invariants of a sale in Redis."""
    assert find_violations(voucher_id) == ""


def list_orders(buyer_id: int, before_id: int | None, limit: int) -> tuple[list[Order], int | None]:
    """Return a page of a buyer's orders, without their times and vouchers."""
    page, last = queries.list_orders(buyer_id, before_id, limit)
    return [view.order for view in page], last
