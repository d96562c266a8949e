"""Orders in MySQL: one row for each decided order.

A failure never changes. A success is used or cancelled once; ``cancelled_order`` lists the
cancelled orders of each voucher. Reservations that SQS refused wait for their decision in
``order_outbox``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from plaza.commerce.flash_sales.model import OrderEvent, OrderRow, RedeemedOrder
from plaza.core.event_log import append_events
from plaza.core.event_log.model import EventDraft
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

_MAX_COUNTED = 200_000
_COLUMNS = "order_id, voucher_id, buyer_id, reason"
_EXPIRED = "(SELECT COALESCE(expires_at <= UTC_TIMESTAMP(6), 0) FROM voucher WHERE id = voucher_id)"
_SHOWN = f"{_COLUMNS}, decided_at, used_at, {_EXPIRED}"


def select_existing(events: Collection[OrderEvent]) -> str:
    """Return the SELECT of rows of events, and of successes of their buyers, for ``existing_of``.
    It runs after the vouchers are locked."""
    buyers: dict[int, set[int]] = {}
    for event in events:
        buyers.setdefault(event.voucher_id, set()).add(event.buyer_id)
    arms = _select_decided(events)
    arms += [
        f"""
        SELECT 1, {_COLUMNS}
        FROM voucher_order FORCE INDEX (one_per_buyer)
        WHERE voucher_id = {voucher_id:d}
          AND holder_id IN ({sql.render_ids(of_voucher)})
        """
        for voucher_id, of_voucher in sorted(buyers.items())
    ]
    return " UNION ALL ".join(arms)


def existing_of(
    rows: Iterable[mysql.Row],
) -> tuple[dict[int, OrderRow], list[tuple[int, int]]]:
    """Return (order id -> row, for events with a row or in the archive; the (voucher, buyer) pairs
    with a success) from the rows of ``select_existing``."""
    existing, holders = {}, []
    for is_holder, *columns in rows:
        row = OrderRow(*columns)
        if is_holder:
            holders.append((row.voucher_id, row.buyer_id))
        else:
            existing[row.order_id] = row
    return existing, holders


def read_decided(events: Collection[OrderEvent]) -> dict[int, OrderRow]:
    """Return order id -> row, for events with a row or in the archive. One statement, without
    locks. Raises MysqlDown."""
    rows = mysql.fetch_all(" UNION ALL ".join(_select_decided(events)))
    return {row.order_id: row for row in (OrderRow(*columns) for _, *columns in rows)}


def _select_decided(events: Collection[OrderEvent]) -> list[str]:
    """Return the parts of a UNION: 0 and the row of each of ``events``, also in the archive."""
    order_ids = sql.render_ids({event.order_id for event in events})
    return [
        f"""
        SELECT 0, {_COLUMNS}
        FROM voucher_order FORCE INDEX (PRIMARY)
        WHERE order_id IN ({order_ids})
        """,
        f"""
        SELECT 0, {_COLUMNS}
        FROM archived_order FORCE INDEX (PRIMARY)
        WHERE buyer_id IN ({sql.render_ids({event.buyer_id for event in events})})
          AND order_id IN ({order_ids})
        """,
    ]


def insert(cursor: Cursor, rows: Sequence[OrderRow]) -> None:
    """Insert decided orders. One write. Raises IntegrityError, when it runs, for an order that has
    a row."""
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
    mysql.send(
        cursor,
        f"""
        INSERT INTO voucher_order (order_id, voucher_id, buyer_id, holder_id, reason, decided_at,
            request_id)
        VALUES {values}
        """,
    )


def append_to_log(cursor: Cursor, rows: Sequence[OrderRow]) -> None:
    """Append the event of each order that was decided, cancelled or used, such as
    ``order.success``. One statement; the transaction has passed the barrier of the log."""
    append_events.append(
        cursor,
        [
            EventDraft(
                f"order.{row.order.status}",
                row.buyer_id,
                ("voucher", row.voucher_id),
                row.order_id,
                None if row.is_cancelled else row.reason,
            )
            for row in rows
        ],
    )


def spill(event: OrderEvent) -> None:
    """Store a reservation that SQS refused. One statement, safe to repeat. Raises MysqlDown."""
    mysql.write(
        """
        INSERT INTO order_outbox (order_id, voucher_id, buyer_id, generation, request_id, stored_at)
        VALUES (%s, %s, %s, %s, %s, UTC_TIMESTAMP(6))
        ON DUPLICATE KEY UPDATE generation = VALUES(generation)
        """,
        (*event.identity, event.generation, event.request_id),
    )


def read_spilled(voucher_id: int | None, limit: int) -> list[OrderEvent]:
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


def delete_spilled(events: Collection[OrderEvent]) -> None:
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
    rows = mysql.fetch_all(f"SELECT {_SHOWN} FROM voucher_order WHERE order_id = %s", (order_id,))
    return _row(rows[0]) if rows else None


def read_by_ids(order_ids: Collection[int]) -> dict[int, OrderRow]:
    """Return order id -> row. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT {_SHOWN}
        FROM voucher_order
        WHERE order_id IN ({sql.render_ids(order_ids)})
        """
    )
    return {row.order_id: row for row in map(_row, rows)}


def read_for_cancelling(cursor: Cursor, row: OrderRow) -> tuple[OrderRow | None, int]:
    """Return (the decided order, None if it has no row; how many orders of the voucher its buyer
    has cancelled). One statement, which locks the order; the caller has locked the voucher."""
    cursor.execute(
        f"""
        SELECT cancelled.orders, {_SHOWN}
        FROM (
            SELECT COUNT(*) AS orders
            FROM cancelled_order
            WHERE voucher_id = %s
              AND buyer_id = %s
        ) AS cancelled
        LEFT JOIN voucher_order ON order_id = %s
        FOR UPDATE
        """,
        (row.voucher_id, row.buyer_id, row.order_id),
    )
    [(cancelled, *columns)] = cursor.fetchall()
    return (None if columns[0] is None else _row(tuple(columns))), int(cancelled)


def read_of_holder(voucher_id: int, buyer_id: int) -> OrderRow | None:
    """Return the success of a buyer for a voucher, or None. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"SELECT {_SHOWN} FROM voucher_order WHERE voucher_id = %s AND holder_id = %s",
        (voucher_id, buyer_id),
    )
    return _row(rows[0]) if rows else None


def read_of_buyer(buyer_id: int, before_id: int | None, limit: int) -> list[OrderRow]:
    """Return a page of a buyer's decided orders, newest first. Raises MysqlDown."""
    where, args = "", [buyer_id]
    if before_id is not None:
        where, args = " AND order_id < %s", [buyer_id, before_id]
    rows = mysql.fetch_all(
        f"""
        SELECT {_SHOWN}
        FROM voucher_order FORCE INDEX (by_buyer)
        WHERE buyer_id = %s{where}
        ORDER BY order_id DESC LIMIT {limit:d}
        """,
        args,
    )
    return [_row(row) for row in rows]


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


def count_between(first_id: int, end_id: int) -> int:
    """Return the number of decided orders from ``first_id`` on, below ``end_id``, counted up to
    200,000. Raises MysqlDown."""
    [(number,)] = mysql.fetch_all(
        f"""
        SELECT COUNT(*)
        FROM (
            SELECT 1
            FROM voucher_order FORCE INDEX (PRIMARY)
            WHERE order_id >= %s
              AND order_id < %s
            LIMIT {_MAX_COUNTED:d}
        ) AS found
        """,
        (first_id, end_id),
    )
    return int(number)


def count_without_success(voucher_ids: Collection[int]) -> dict[int, int]:
    """Return voucher -> number of failed and cancelled orders, of vouchers that have some. Raises
    MysqlDown."""
    if not voucher_ids:
        return {}
    rows = mysql.fetch_all(
        f"""
        SELECT voucher_id, COUNT(*)
        FROM (
            SELECT voucher_id
            FROM voucher_order FORCE INDEX (one_per_buyer)
            WHERE voucher_id IN ({sql.render_ids(voucher_ids)})
              AND holder_id IS NULL
            UNION ALL
            SELECT voucher_id
            FROM archived_order
            WHERE voucher_id IN ({sql.render_ids(voucher_ids)})
              AND reason IS NOT NULL
        ) AS found
        GROUP BY voucher_id
        """
    )
    return {voucher_id: int(number) for voucher_id, number in rows}


def cancel(cursor: Cursor, row: OrderRow) -> None:
    """Store that a success was cancelled, and return its unit to the stock; its buyer may order
    again. One statement."""
    cursor.execute(
        """
        UPDATE voucher_order AS o
        JOIN voucher AS v ON v.id = o.voucher_id
        SET o.holder_id = NULL, o.reason = 'cancelled', o.code_sha256 = NULL,
            v.stock = v.stock + 1, v.cancelled = v.cancelled + 1
        WHERE o.order_id = %s
        """,
        (row.order_id,),
    )


def add_cancelled(cursor: Cursor, row: OrderRow) -> None:
    """List a cancelled order. One statement."""
    cursor.execute(
        """
        INSERT INTO cancelled_order (voucher_id, order_id, buyer_id, cancelled_at)
        VALUES (%s, %s, %s, UTC_TIMESTAMP(6))
        """,
        (row.voucher_id, row.order_id, row.buyer_id),
    )


def read_cancelled(voucher_id: int, after_id: int, limit: int) -> list[tuple[int, int]]:
    """Return a page of (order, buyer) of the cancelled orders, by order. Raises MysqlDown."""
    return [
        (order_id, buyer_id)
        for order_id, buyer_id in mysql.fetch_all(
            f"""
            SELECT order_id, buyer_id
            FROM cancelled_order
            WHERE voucher_id = %s
              AND order_id > %s
            ORDER BY order_id LIMIT {limit:d}
            """,
            (voucher_id, after_id),
        )
    ]


def store_code(order_id: int, code_sha256: bytes) -> None:
    """Store the code of an order instead of an earlier one, if it is an unused success. One
    statement. Raises MysqlDown."""
    mysql.write(
        """
        UPDATE voucher_order
        SET code_sha256 = %s
        WHERE order_id = %s
          AND holder_id IS NOT NULL
          AND used_at IS NULL
        """,
        (code_sha256, order_id),
    )


def read_by_code(voucher_id: int, code_sha256: bytes) -> OrderRow | None:
    """Return the order of a voucher with a code, or None. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"SELECT {_SHOWN} FROM voucher_order WHERE code_sha256 = %s AND voucher_id = %s",
        (code_sha256, voucher_id),
    )
    return _row(rows[0]) if rows else None


def use(cursor: Cursor, order_id: int, code_sha256: bytes, redeemer_id: int) -> bool:
    """Use an order once, and list it as redeemed; return False if it was used, cancelled or has
    another code. It locks no voucher, so it does not wait for a sale. Three statements."""
    used = cursor.execute(
        """
        UPDATE voucher_order
        SET used_at = UTC_TIMESTAMP(6), used_by = %s
        WHERE order_id = %s
          AND code_sha256 = %s
          AND holder_id IS NOT NULL
          AND used_at IS NULL
        """,
        (redeemer_id, order_id, code_sha256),
    )
    if not used:
        return False
    # A statement of its own: INSERT ... SELECT would lock the voucher.
    cursor.execute(
        """
        SELECT v.shop_id, o.used_at, o.order_id, o.voucher_id, o.used_by
        FROM voucher_order AS o
        JOIN voucher AS v ON v.id = o.voucher_id
        WHERE o.order_id = %s
        """,
        (order_id,),
    )
    cursor.execute(
        """
        INSERT INTO redemption (shop_id, used_at, order_id, voucher_id, used_by)
        VALUES (%s, %s, %s, %s, %s)
        """,
        cursor.fetchone(),
    )
    return True


def read_redeemed(shop_id: int, before: tuple[int, int] | None, limit: int) -> list[RedeemedOrder]:
    """Return a page of the used orders of a shop, newest first, before (time, order) of the page
    before. One statement. Raises MysqlDown."""
    where = ""
    args: list[object] = [shop_id]
    if before is not None:
        at = sql.from_us(before[0])
        where = " AND (used_at < %s OR used_at = %s AND order_id < %s)"
        args += [at, at, before[1]]
    rows = mysql.fetch_all(
        f"""
        SELECT order_id, voucher_id, used_at, used_by
        FROM redemption
        WHERE shop_id = %s{where}
        ORDER BY used_at DESC, order_id DESC LIMIT {limit:d}
        """,
        args,
    )
    return [RedeemedOrder(order, voucher, sql.to_us(at), by) for order, voucher, at, by in rows]


def read_used_at(order_id: int) -> int | None:
    """Return when an order was used, microseconds since 1970; None if it is unused. Raises
    MysqlDown."""
    rows = mysql.fetch_all("SELECT used_at FROM voucher_order WHERE order_id = %s", (order_id,))
    return sql.to_us(rows[0][0]) if rows and rows[0][0] else None


def is_used(order_id: int, buyer_id: int, shop_id: int) -> bool:
    """Return whether a buyer used an order in a shop; of an archived one only if ``redemption``
    lists it, as it does since it exists. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT 1
        FROM voucher_order AS o
        JOIN voucher AS v ON v.id = o.voucher_id
        WHERE o.order_id = %s
          AND o.buyer_id = %s
          AND o.used_at IS NOT NULL
          AND v.shop_id = %s
        UNION ALL
        SELECT 1
        FROM redemption AS r
        JOIN archived_order AS a ON a.order_id = r.order_id
        WHERE r.order_id = %s
          AND r.shop_id = %s
          AND a.buyer_id = %s
        """,
        (order_id, buyer_id, shop_id, order_id, shop_id, buyer_id),
    )
    return bool(rows)


def _row(columns: tuple[Any, ...]) -> OrderRow:
    order_id, voucher_id, buyer_id, reason, decided_at, used_at, expired = columns
    return OrderRow(
        order_id,
        voucher_id,
        buyer_id,
        reason,
        decided_us=sql.to_us(decided_at),
        used_us=None if used_at is None else sql.to_us(used_at),
        expired=bool(expired),
    )
