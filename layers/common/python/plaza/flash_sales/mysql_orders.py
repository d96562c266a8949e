"""Orders in MySQL: one row for each decided order, which never changes.

Reservations that SQS refused wait for their decision in ``order_outbox``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pymysql.cursors import Cursor

from plaza.flash_sales.model import OrderEvent, OrderRow
from plaza.infra import mysql, sql

_COLUMNS = "order_id, voucher_id, buyer_id, reason"


def read_existing(
    cursor: Cursor, events: Collection[OrderEvent]
) -> tuple[dict[int, OrderRow], list[tuple[int, int]]]:
    """Return (order id -> row, for events with a row; the (voucher, buyer) pairs with a success).

    One statement. The caller holds the locks of the vouchers.
    """
    buyers: dict[int, set[int]] = {}
    for event in events:
        buyers.setdefault(event.voucher_id, set()).add(event.buyer_id)
    arms = [
        f"""
        SELECT 0, {_COLUMNS}
        FROM voucher_order FORCE INDEX (PRIMARY)
        WHERE order_id IN ({sql.render_ids({event.order_id for event in events})})
        """
    ]
    arms += [
        f"""
        SELECT 1, {_COLUMNS}
        FROM voucher_order FORCE INDEX (one_per_buyer)
        WHERE voucher_id = {voucher_id:d}
          AND holder_id IN ({sql.render_ids(of_voucher)})
        """
        for voucher_id, of_voucher in sorted(buyers.items())
    ]
    cursor.execute(" UNION ALL ".join(arms))
    existing, holders = {}, []
    for is_holder, *columns in cursor.fetchall():
        row = OrderRow(*columns)
        if is_holder:
            holders.append((row.voucher_id, row.buyer_id))
        else:
            existing[row.order_id] = row
    return existing, holders


def insert(cursor: Cursor, rows: Sequence[OrderRow]) -> None:
    """Insert decided orders. One statement. Raises IntegrityError for an order that has a row."""
    values = ",".join(
        "(%d,%d,%d,%s,%s,UTC_TIMESTAMP(6),%s)"
        % (
            row.order_id,
            row.voucher_id,
            row.buyer_id,
            int(row.buyer_id) if row.is_success else "NULL",
            f"'{row.reason}'" if row.reason else "NULL",
            sql.render_request_id(row.request_id),
        )
        for row in rows
    )
    cursor.execute(
        f"""
        INSERT INTO voucher_order (order_id, voucher_id, buyer_id, holder_id, reason, decided_at,
            request_id)
        VALUES {values}
        """
    )


def add_to_outbox(event: OrderEvent) -> None:
    """Store a reservation that SQS refused. One statement, safe to repeat. Raises MysqlDown."""
    mysql.write(
        """
        INSERT INTO order_outbox (order_id, voucher_id, buyer_id, generation, request_id, stored_at)
        VALUES (%s, %s, %s, %s, %s, UTC_TIMESTAMP(6))
        ON DUPLICATE KEY UPDATE generation = VALUES(generation)
        """,
        (*event.identity, event.generation, event.request_id),
    )


def read_outbox(voucher_id: int | None, limit: int) -> list[OrderEvent]:
    """Return stored reservations of one voucher or of all, earliest first. Raises MysqlDown."""
    where, args = ("", []) if voucher_id is None else (" WHERE voucher_id = %s", [voucher_id])
    rows = mysql.fetch_all(
        f"""
        SELECT order_id, voucher_id, buyer_id, generation, request_id
        FROM order_outbox{where}
        ORDER BY order_id LIMIT {limit:d}
        """,
        args,
    )
    return [OrderEvent(*row) for row in rows]


def delete_from_outbox(events: Collection[OrderEvent]) -> None:
    """Delete decided reservations. One statement. Raises MysqlDown."""
    if events:
        identities = ",".join("(%d,%d,%d)" % event.identity for event in events)
        mysql.write(
            f"""
            DELETE FROM order_outbox
            WHERE order_id IN ({sql.render_ids({event.order_id for event in events})})
              AND (order_id, voucher_id, buyer_id) IN ({identities})
            """
        )


def read(order_id: int) -> OrderRow | None:
    """Return a decided order, None if it has no row. Raises MysqlDown."""
    found = mysql.fetch_all(
        f"SELECT {_COLUMNS} FROM voucher_order WHERE order_id = %s", (order_id,)
    )
    return OrderRow(*found[0]) if found else None


def read_of_holder(voucher_id: int, buyer_id: int) -> OrderRow | None:
    """Return the success of a buyer for a voucher, or None. Raises MysqlDown."""
    found = mysql.fetch_all(
        f"SELECT {_COLUMNS} FROM voucher_order WHERE voucher_id = %s AND holder_id = %s",
        (voucher_id, buyer_id),
    )
    return OrderRow(*found[0]) if found else None


def read_of_buyer(buyer_id: int, before_id: int | None, limit: int) -> list[OrderRow]:
    """Return a page of a buyer's decided orders, newest first. Raises MysqlDown."""
    where, args = "", [buyer_id]
    if before_id is not None:
        where, args = " AND order_id < %s", [buyer_id, before_id]
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM voucher_order FORCE INDEX (by_buyer)
        WHERE buyer_id = %s{where}
        ORDER BY order_id DESC LIMIT {limit:d}
        """,
        args,
    )
    return [OrderRow(*row) for row in rows]


def read_holders(voucher_id: int, after_id: int, limit: int) -> list[tuple[int, int]]:
    """Return a page of (order, buyer) of a voucher's successes, by buyer. Raises MysqlDown."""
    return [
        (order_id, buyer_id)
        for order_id, buyer_id in mysql.fetch_all(
            f"""
            SELECT order_id, holder_id
            FROM voucher_order FORCE INDEX (one_per_buyer)
            WHERE voucher_id = %s
              AND holder_id > %s
            ORDER BY holder_id LIMIT {limit:d}
            """,
            (voucher_id, after_id),
        )
    ]
