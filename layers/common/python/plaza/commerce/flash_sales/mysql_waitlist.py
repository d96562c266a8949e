"""The waitlists of vouchers in MySQL: who waits, in which order."""

from __future__ import annotations

from collections.abc import Collection

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

_DELETED_AT_ONCE = 10_000


def add(voucher_id: int, buyer_id: int) -> int:
    """Add a buyer unless the buyer waits already; return the seq. Two statements, safe to repeat.
    Raises MysqlDown."""
    mysql.write(
        "INSERT IGNORE INTO waitlist_entry (voucher_id, buyer_id) VALUES (%s, %s)",
        (voucher_id, buyer_id),
    )
    waiting = find(voucher_id, [buyer_id])
    return waiting[0][0] if waiting else add(voucher_id, buyer_id)  # deleted in between


def find(voucher_id: int, buyer_ids: Collection[int]) -> list[tuple[int, int]]:
    """Return (seq, buyer) of the buyers who wait. One statement. Raises MysqlDown."""
    return [
        (seq, buyer_id)
        for seq, buyer_id in mysql.fetch_all(
            f"""
            SELECT seq, buyer_id
            FROM waitlist_entry
            WHERE voucher_id = %s
              AND buyer_id IN ({sql.render_ids(buyer_ids)})
            """,
            (voucher_id,),
        )
    ]


def delete(positions: Collection[tuple[int, int]]) -> None:
    """Delete the entries of (voucher, buyer) pairs. One statement. Raises MysqlDown."""
    if positions:
        rendered = ",".join("(%d,%d)" % position for position in positions)
        mysql.write(
            f"""
            DELETE FROM waitlist_entry
            WHERE voucher_id IN ({sql.render_ids({voucher_id for voucher_id, _ in positions})})
              AND (voucher_id, buyer_id) IN ({rendered})
            """
        )


def delete_in(cursor: Cursor, voucher_id: int, buyer_id: int) -> None:
    """Delete the entry of a buyer in a transaction. One statement."""
    cursor.execute(
        "DELETE FROM waitlist_entry WHERE voucher_id = %s AND buyer_id = %s", (voucher_id, buyer_id)
    )


def delete_holders(voucher_id: int) -> None:
    """Delete the entries of buyers with a success. One statement. Raises MysqlDown."""
    mysql.write(
        """
        DELETE waitlist_entry
        FROM waitlist_entry
        JOIN voucher_order ON voucher_order.voucher_id = waitlist_entry.voucher_id
          AND voucher_order.holder_id = waitlist_entry.buyer_id
        WHERE waitlist_entry.voucher_id = %s
        """,
        (voucher_id,),
    )


def delete_all(voucher_id: int) -> None:
    """Delete all entries of a voucher, 10,000 a statement. Raises MysqlDown."""
    while (
        mysql.write(
            "DELETE FROM waitlist_entry WHERE voucher_id = %s LIMIT %s",
            (voucher_id, _DELETED_AT_ONCE),
        )
        == _DELETED_AT_ONCE
    ):
        pass


def count(voucher_ids: Collection[int]) -> dict[int, int]:
    """Return voucher -> number of entries, of vouchers that have some. Raises MysqlDown."""
    if not voucher_ids:
        return {}
    return {
        voucher_id: int(waiting)
        for voucher_id, waiting in mysql.fetch_all(
            f"""
            SELECT voucher_id, COUNT(*)
            FROM waitlist_entry
            WHERE voucher_id IN ({sql.render_ids(voucher_ids)})
            GROUP BY voucher_id
            """
        )
    }


def read(voucher_id: int, after_seq: int, limit: int) -> list[tuple[int, int]]:
    """Return a page of (seq, buyer), in order. Raises MysqlDown."""
    return [
        (seq, buyer_id)
        for seq, buyer_id in mysql.fetch_all(
            f"""
            SELECT seq, buyer_id
            FROM waitlist_entry FORCE INDEX (in_order)
            WHERE voucher_id = %s
              AND seq > %s
            ORDER BY seq LIMIT {limit:d}
            """,
            (voucher_id, after_seq),
        )
    ]


def find_of_buyer(buyer_id: int, limit: int, before_id: int | None = None) -> list[int]:
    """Return at most ``limit`` of the vouchers that a buyer waits for, newest first; with
    ``before_id`` of older ones. One statement. Raises MysqlDown."""
    where, args = "", [buyer_id]
    if before_id is not None:
        where, args = " AND voucher_id < %s", [buyer_id, before_id]
    rows = mysql.fetch_all(
        f"""
        SELECT voucher_id
        FROM waitlist_entry FORCE INDEX (by_buyer)
        WHERE buyer_id = %s{where}
        ORDER BY voucher_id DESC LIMIT {limit:d}
        """,
        args,
    )
    return [voucher_id for (voucher_id,) in rows]
