"""Orders on their way into the archive, and the orders that are there. Each function runs one
statement; without a cursor it raises MysqlDown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from plaza.commerce.flash_sales.model import ArchivedOrder
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

_COLUMNS = (
    "o.order_id, o.voucher_id, o.buyer_id, o.reason, o.request_id, o.decided_at, o.used_at,"
    " o.used_by"
)


def read_final(after_id: int, end_id: int, before: datetime, limit: int) -> list[ArchivedOrder]:
    """Return a page of orders with ids between both that can no longer change, by id: failed,
    cancelled, used or expired, of sales that were finalized before ``before``."""
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM voucher_order AS o FORCE INDEX (PRIMARY)
        JOIN voucher AS v ON v.id = o.voucher_id
        WHERE o.order_id > %s
          AND o.order_id < %s
          AND v.finalized_at < %s
          AND (o.holder_id IS NULL OR o.used_at IS NOT NULL OR v.expires_at < %s)
        ORDER BY o.order_id LIMIT {limit:d}
        """,
        (after_id, end_id, before, before),
    )
    return [_order(row) for row in rows]


def lock(cursor: Cursor, order_ids: Collection[int]) -> dict[int, ArchivedOrder]:
    """Return id -> the orders that have a row, locked until the commit."""
    cursor.execute(
        f"""
        SELECT {_COLUMNS}
        FROM voucher_order AS o
        WHERE o.order_id IN ({sql.render_ids(order_ids)})
        ORDER BY o.order_id FOR UPDATE
        """
    )
    return {row[0]: _order(row) for row in cursor.fetchall()}


def insert(cursor: Cursor, orders: Sequence[ArchivedOrder], digest: str) -> None:
    """Store that orders are in the object with a digest."""
    cursor.executemany(
        """
        INSERT INTO archived_order (buyer_id, order_id, voucher_id, reason, digest)
        VALUES (%s, %s, %s, %s, %s)
        """,
        [(o.buyer_id, o.order_id, o.voucher_id, o.reason, digest) for o in orders],
    )


def delete(cursor: Cursor, order_ids: Collection[int]) -> None:
    """Delete orders that are in the archive."""
    ids = sql.render_ids(order_ids)
    mysql.send(cursor, f"DELETE FROM voucher_order WHERE order_id IN ({ids})")


def read_digest(buyer_id: int, order_id: int) -> str | None:
    """Return the digest of the object that has an order of a buyer, None if none has it."""
    rows = mysql.fetch_all(
        "SELECT digest FROM archived_order WHERE buyer_id = %s AND order_id = %s",
        (buyer_id, order_id),
    )
    return str(rows[0][0]) if rows else None


def read_of_buyer(buyer_id: int, before_id: int | None, limit: int) -> dict[int, str]:
    """Return order -> digest of a page of a buyer's archived orders, newest first."""
    where, args = "", [buyer_id]
    if before_id is not None:
        where, args = " AND order_id < %s", [buyer_id, before_id]
    rows = mysql.fetch_all(
        f"""
        SELECT order_id, digest
        FROM archived_order FORCE INDEX (PRIMARY)
        WHERE buyer_id = %s{where}
        ORDER BY order_id DESC LIMIT {limit:d}
        """,
        args,
    )
    return {order_id: str(digest) for order_id, digest in rows}


def _order(row: tuple[Any, ...]) -> ArchivedOrder:
    order_id, voucher_id, buyer_id, reason, request_id, decided_at, used_at, used_by = row
    used_us = None if used_at is None else sql.to_us(used_at)
    return ArchivedOrder(
        order_id,
        voucher_id,
        buyer_id,
        reason,
        request_id,
        sql.to_us(decided_at),
        used_us,
        used_by,
    )
