"""Vouchers in MySQL: terms, stock, and the generation of their state in Redis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from plaza.commerce.flash_sales.model import (
    SaleState,
    Terms,
    Voucher,
    VoucherMissing,
    VoucherSummary,
    VoucherWithdrawn,
)
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

_COLUMNS = (
    "id, shop_id, title, price_cents, initial_stock, stock, opens_at, closes_at, kind, expires_at,"
    " generation, cancelled, finalized_at IS NOT NULL, withdrawn_at IS NOT NULL,"
    " (SELECT shop.deleted_at IS NOT NULL FROM shop WHERE shop.id = voucher.shop_id)"
)


def insert(cursor: Cursor, voucher_id: int, terms: Terms, creator_id: int) -> None:
    cursor.execute(
        """
        INSERT INTO voucher (id, shop_id, title, price_cents, initial_stock, stock, opens_at,
            closes_at, kind, expires_at, created_by, created_at)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6))
        """,
        (
            voucher_id,
            terms.shop_id,
            terms.title,
            terms.price_cents,
            terms.stock,
            terms.stock,
            sql.from_us(terms.opens_us),
            sql.from_us(terms.closes_us),
            terms.kind,
            None if terms.expires_us is None else sql.from_us(terms.expires_us),
            creator_id,
        ),
    )


def check_shop(shop_id: int) -> None:
    """Raise VoucherMissing without such a shop, VoucherWithdrawn if it is deleted; MysqlDown."""
    rows = mysql.fetch_all("SELECT deleted_at IS NOT NULL FROM shop WHERE id = %s", (shop_id,))
    if not rows:
        raise VoucherMissing(f"Shop {shop_id} does not exist.")
    if rows[0][0]:
        raise VoucherWithdrawn(f"Shop {shop_id} was deleted.")


def read(voucher_id: int) -> Voucher | None:
    """Return a voucher, None if it does not exist. Raises MysqlDown."""
    return read_all([voucher_id]).get(voucher_id)


def read_all(voucher_ids: Collection[int]) -> dict[int, Voucher]:
    """Return the vouchers that exist. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"SELECT {_COLUMNS} FROM voucher WHERE id IN ({sql.render_ids(voucher_ids)})"
    )
    return {voucher.id: voucher for voucher in map(_voucher, rows)}


def read_summaries(voucher_ids: Collection[int]) -> dict[int, VoucherSummary]:
    """Return what orders show of these vouchers, also of deleted shops. One statement. Raises
    MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT v.id, v.title, v.price_cents, v.expires_at, v.shop_id, shop.name
        FROM voucher AS v
        JOIN shop ON shop.id = v.shop_id
        WHERE v.id IN ({sql.render_ids(voucher_ids)})
        """
    )
    return {
        voucher_id: VoucherSummary(
            voucher_id,
            title,
            price_cents,
            None if expires is None else sql.to_us(expires),
            shop_id,
            shop_name,
        )
        for voucher_id, title, price_cents, expires, shop_id, shop_name in rows
    }


def count() -> int:
    """Return the number of vouchers. Raises MysqlDown."""
    [(vouchers,)] = mysql.fetch_all("SELECT COUNT(*) FROM voucher")
    return int(vouchers)


def read_ids(after_id: int, limit: int) -> list[int]:
    """Return a page of the ids of all vouchers, ascending. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"SELECT id FROM voucher WHERE id > %s ORDER BY id LIMIT {limit:d}", (after_id,)
    )
    return [voucher_id for (voucher_id,) in rows]


def read_of_shop(shop_id: int, before_id: int | None, limit: int) -> list[Voucher]:
    """Return a page of a shop's vouchers, newest first. Raises MysqlDown."""
    where, args = ("", [shop_id]) if before_id is None else (" AND id < %s", [shop_id, before_id])
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM voucher FORCE INDEX (by_shop)
        WHERE shop_id = %s{where}
        ORDER BY id DESC LIMIT {limit:d}
        """,
        args,
    )
    return [_voucher(row) for row in rows]


def read_unfinalized(opened_before_us: int, after_id: int, limit: int) -> list[Voucher]:
    """Return a page of the opened, unfinalized vouchers, by id. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM voucher
        WHERE finalized_at IS NULL
          AND opens_at <= %s
          AND id > %s
        ORDER BY id LIMIT {limit:d}
        """,
        (sql.from_us(opened_before_us), after_id),
    )
    return [_voucher(row) for row in rows]


def read_by_state(
    state: SaleState, now_us: int, after: tuple[int, int] | None, limit: int
) -> list[Voucher]:
    """Return a page of the vouchers in a state, after (time, id) of the page before.

    The time is the opening of coming sales, the closing of others. Ended sales are in
    descending order. Raises MysqlDown.
    """
    column, index_name, order, where = {
        "running": ("closes_at", "by_closing", "ASC", "closes_at > %s AND opens_at <= %s"),
        "coming": ("opens_at", "by_opening", "ASC", "opens_at > %s"),
        "ended": ("closes_at", "by_closing", "DESC", "closes_at <= %s"),
    }[state]
    args: list[object] = [sql.from_us(now_us)] * where.count("%s")
    if after is not None:
        sign, at = "<" if order == "DESC" else ">", sql.from_us(after[0])
        where += f" AND ({column} {sign} %s OR {column} = %s AND id {sign} %s)"
        args += [at, at, after[1]]
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM voucher FORCE INDEX ({index_name})
        WHERE {where}
        ORDER BY {column} {order}, id {order} LIMIT {limit:d}
        """,
        args,
    )
    return [_voucher(row) for row in rows]


def begin_generation(voucher_id: int) -> int:
    """Increment and return a voucher's generation. One transaction. Raises MysqlDown."""

    def increment(cursor: Cursor) -> int:
        cursor.execute(
            "UPDATE voucher SET generation = generation + 1 WHERE id = %s", (voucher_id,)
        )
        cursor.execute("SELECT generation FROM voucher WHERE id = %s", (voucher_id,))
        [(generation,)] = cursor.fetchall()
        return int(generation)

    return mysql.run_in_transaction(increment)


def lock(cursor: Cursor, voucher_ids: Collection[int]) -> dict[int, int | None]:
    """Lock the vouchers that exist; return voucher -> stock, None if it was withdrawn.

    Until the commit no other transaction decides their orders. The shops are not locked.
    """
    [rows] = mysql.read_all(cursor, [select_locked(voucher_ids)])
    return stocks_of(rows)


def select_locked(voucher_ids: Collection[int]) -> str:
    """Return the SELECT of ``lock``, for ``stocks_of``."""
    return f"""
        SELECT id, stock, withdrawn_at IS NOT NULL OR (
            SELECT shop.deleted_at IS NOT NULL
            FROM shop
            WHERE shop.id = voucher.shop_id
        )
        FROM voucher
        WHERE id IN ({sql.render_ids(voucher_ids)})
        ORDER BY id FOR UPDATE
        """


def stocks_of(rows: Iterable[mysql.Row]) -> dict[int, int | None]:
    """Return voucher -> stock from the rows of ``select_locked``."""
    return {voucher_id: None if withdrawn else stock for voucher_id, stock, withdrawn in rows}


def lock_one(cursor: Cursor, voucher_id: int) -> Voucher | None:
    """Return a voucher, locked until the commit; None if it does not exist. One statement."""
    cursor.execute(f"SELECT {_COLUMNS} FROM voucher WHERE id = %s FOR UPDATE", (voucher_id,))
    row = cursor.fetchone()
    return _voucher(row) if row else None


def change(cursor: Cursor, voucher_id: int, terms: Terms) -> None:
    """Store the title, the price and the expiry of a voucher. One statement."""
    cursor.execute(
        "UPDATE voucher SET title = %s, price_cents = %s, expires_at = %s WHERE id = %s",
        (
            terms.title,
            terms.price_cents,
            None if terms.expires_us is None else sql.from_us(terms.expires_us),
            voucher_id,
        ),
    )


def take_stock(cursor: Cursor, taken: Mapping[int, int]) -> None:
    """Subtract voucher -> units. One statement. Raises ArithmeticError if a stock is too low."""
    units = " ".join(f"WHEN {voucher:d} THEN {count:d}" for voucher, count in taken.items())
    changed = cursor.execute(
        f"""
        UPDATE voucher
        SET stock = stock - CASE id {units} END
        WHERE id IN ({sql.render_ids(taken)})
          AND stock >= CASE id {units} END
        """
    )
    if changed != len(taken):
        raise ArithmeticError(f"a voucher of {sorted(taken)} has fewer units than orders")


def count_cancelled(cursor: Cursor, voucher_id: int) -> None:
    """Count a cancelled order that had no unit yet. One statement."""
    cursor.execute("UPDATE voucher SET cancelled = cancelled + 1 WHERE id = %s", (voucher_id,))


def mark_withdrawn(voucher_id: int, admin_id: int) -> bool:
    """Store that an admin withdrew a voucher; return False if it was withdrawn before. Two
    statements; the second waits for transactions that decide orders of the voucher. Raises
    MysqlDown."""
    # Looked for first: an UPDATE whose reply is lost runs again, and then changes nothing.
    was_withdrawn = mysql.fetch_all(
        "SELECT 1 FROM voucher WHERE id = %s AND withdrawn_at IS NOT NULL", (voucher_id,)
    )
    mysql.write(
        """
        UPDATE voucher
        SET withdrawn_at = UTC_TIMESTAMP(6), withdrawn_by = %s
        WHERE id = %s
          AND withdrawn_at IS NULL
        """,
        (admin_id, voucher_id),
    )
    return not was_withdrawn


def mark_finalized(voucher_id: int) -> None:
    """Store that a sale is finalized. One statement. Raises MysqlDown."""
    mysql.write(
        "UPDATE voucher SET finalized_at = UTC_TIMESTAMP(6) WHERE id = %s AND finalized_at IS NULL",
        (voucher_id,),
    )


def _voucher(row: tuple[Any, ...]) -> Voucher:
    voucher_id, shop_id, title, price_cents, initial_stock, *others = row
    stock, opens, closes, kind, expires, generation, cancelled, *flags = others
    terms = Terms(
        shop_id,
        title,
        price_cents,
        initial_stock,
        sql.to_us(opens),
        sql.to_us(closes),
        kind,
        None if expires is None else sql.to_us(expires),
    )
    finalized, by_admin, shop_deleted = map(bool, flags)
    withdrawn = shop_deleted or by_admin
    return Voucher(
        voucher_id, terms, stock, generation, finalized, shop_deleted, withdrawn, cancelled
    )
