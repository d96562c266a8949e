"""Shops in MySQL, the source of truth. Each change raises ``version``; deletion sets a time."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from plaza.commerce.shops.model import (
    MAX_LATITUDE,
    MAX_LONGITUDE,
    Area,
    Shop,
    ShopDistance,
    ShopDraft,
    ShopPlace,
    ShopType,
    StoredShop,
    place_of,
)
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.codec import TEXT_LIST

_COLUMNS = (
    "id, name, type_id, area, address, x, y, images, avg_price_cents, open_hours, created_at,"
    " updated_at, version, deleted_at IS NOT NULL"
)

# Redis stores a place as the centre of a cell of 52 bits, and measures by the haversine with this
# radius. The statement does the same, so that a list may continue from Redis in MySQL.
_GLOBE_M = 6372797.560856
_CELLS = 2**26
_CELL_X = f"((LEAST(FLOOR((x + 180) / 360 * {_CELLS}), {_CELLS - 1}) + 0.5) / {_CELLS} * 360 - 180)"
_CELL_Y = (
    f"((LEAST(FLOOR((y + {MAX_LATITUDE}) / {2 * MAX_LATITUDE} * {_CELLS}), {_CELLS - 1}) + 0.5)"
    f" / {_CELLS}"
    f" * {2 * MAX_LATITUDE} - {MAX_LATITUDE})"
)
_DISTANCE = (
    f"FLOOR(ROUND({2 * _GLOBE_M} * ASIN(SQRT("
    f"POW(SIN((RADIANS(%(y)s) - RADIANS({_CELL_Y})) / 2), 2)"
    f" + COS(RADIANS(%(y)s)) * COS(RADIANS({_CELL_Y}))"
    f" * POW(SIN((RADIANS(%(x)s) - RADIANS({_CELL_X})) / 2), 2))), 4) * 10000 + 0.5)"
)


class ShopTypes(NamedTuple):
    """The shop types by ``sort``, and the time of the read: microseconds since 1970."""

    version_us: int
    types: list[ShopType]


def read(shop_ids: Iterable[int]) -> dict[int, StoredShop]:
    """Return the shops that have a row, also if deleted. One statement. Raises
    MysqlDown."""
    numbers = sql.render_ids(shop_ids)
    rows = (
        mysql.fetch_all(f"SELECT {_COLUMNS} FROM shop WHERE id IN ({numbers})") if numbers else ()
    )
    return {stored.shop.id: stored for stored in map(_stored, rows)}


def read_of_type(type_id: int, before_id: int | None, limit: int) -> list[Shop]:
    """Return a page of the shops of a type, newest first. One statement. Raises MysqlDown."""
    where, args = ("", [type_id]) if before_id is None else (" AND id < %s", [type_id, before_id])
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM shop FORCE INDEX (by_type)
        WHERE type_id = %s{where}
          AND deleted_at IS NULL
        ORDER BY id DESC LIMIT {limit:d}
        """,
        args,
    )
    return [_stored(row).shop for row in rows]


def search_names(prefix: str, type_id: int | None, limit: int) -> list[Shop]:
    """Return the first shops whose names begin with ``prefix`` in any case, by name, then by id.
    One statement, which reads ``limit`` rows of an index. Raises MysqlDown."""
    index = "by_search_name" if type_id is None else "by_type_and_search_name"
    of_type = "" if type_id is None else f" AND type_id = {type_id:d}"
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM shop FORCE INDEX ({index})
        WHERE deleted_at IS NULL{of_type}
          AND search_name LIKE CONCAT(LOWER(%s COLLATE utf8mb4_bin), '%%')
        ORDER BY search_name, id LIMIT {limit:d}
        """,
        (sql.escape_like(prefix),),
    )
    return [_stored(row).shop for row in rows]


def read_types() -> ShopTypes:
    """Return all types. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), t.id, t.name, t.icon
        FROM (SELECT 1 AS one) AS always
        LEFT JOIN shop_type AS t ON 1 = 1
        ORDER BY t.sort, t.id
        """
    )
    types = [ShopType(*row[1:]) for row in rows if row[1] is not None]
    return ShopTypes(int(rows[0][0]), types)


def insert(cursor: Cursor, shop_id: int, draft: ShopDraft) -> StoredShop:
    """Store a new shop and return it. Two statements."""
    cursor.execute(
        """
        INSERT INTO shop (id, name, type_id, area, address, x, y, images, avg_price_cents,
            open_hours, created_at, updated_at)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))
        """,
        (shop_id, *_values(draft)),
    )
    return _read_back(cursor, shop_id)


def replace(cursor: Cursor, shop_id: int, draft: ShopDraft) -> StoredShop:
    """Replace all fields of an existing shop and return it. Two statements."""
    cursor.execute(
        """
        UPDATE shop
        SET name = %s, type_id = %s, area = %s, address = %s, x = %s, y = %s, images = %s,
            avg_price_cents = %s, open_hours = %s, version = version + 1,
            updated_at = UTC_TIMESTAMP(6)
        WHERE id = %s
        """,
        (*_values(draft), shop_id),
    )
    return _read_back(cursor, shop_id)


def mark_deleted(cursor: Cursor, shop_id: int) -> StoredShop:
    """Set the time of deletion and return the shop. Two statements."""
    cursor.execute(
        """
        UPDATE shop
        SET deleted_at = UTC_TIMESTAMP(6), version = version + 1, updated_at = UTC_TIMESTAMP(6)
        WHERE id = %s
        """,
        (shop_id,),
    )
    return _read_back(cursor, shop_id)


def lock(cursor: Cursor, shop_id: int) -> StoredShop | None:
    """Return a shop, locked until the commit. One statement."""
    cursor.execute(f"SELECT {_COLUMNS} FROM shop WHERE id = %s FOR UPDATE", (shop_id,))
    row = cursor.fetchone()
    return _stored(row) if row else None


def lock_shared(cursor: Cursor, shop_id: int) -> bool | None:
    """Return whether a shop was deleted, None if it does not exist, with a shared lock on it until
    the commit. One statement."""
    cursor.execute(
        "SELECT deleted_at IS NOT NULL FROM shop WHERE id = %s LOCK IN SHARE MODE", (shop_id,)
    )
    row = cursor.fetchone()
    return bool(row[0]) if row else None


def has_type(cursor: Cursor, type_id: int) -> bool:
    """Return whether the type exists, with a shared lock on it until the commit. One statement."""
    rows = cursor.execute("SELECT 1 FROM shop_type WHERE id = %s LOCK IN SHARE MODE", (type_id,))
    return rows == 1


def find_near(area: Area, after: ShopDistance, limit: int) -> list[ShopDistance]:
    """Return the same shops as ``redis_store.search_near``. One statement. Raises MysqlDown."""
    (x, y), radius_m, type_id = area
    lat = math.degrees(radius_m / _GLOBE_M) * 1.01  # 1 % wider: the distance filters exactly
    lon = math.degrees(math.asin(min(1.0, math.sin(math.radians(lat)) / _min_cos(y, lat))))
    if x - lon < -MAX_LONGITUDE:
        within = "(x >= %(west)s + 360 OR x <= %(east)s)"
    elif x + lon > MAX_LONGITUDE:
        within = "(x >= %(west)s OR x <= %(east)s - 360)"
    else:
        within = "x BETWEEN %(west)s AND %(east)s"
    index = "by_place" if type_id is None else "by_type_and_place"
    of_type = "" if type_id is None else "type_id = %(type_id)s AND"
    rows = mysql.fetch_all(
        f"""
        SELECT distance, id
        FROM (
            SELECT id, {_DISTANCE} AS distance
            FROM shop FORCE INDEX ({index})
            WHERE {of_type} y BETWEEN %(south)s AND %(north)s
              AND {within}
              AND deleted_at IS NULL
              AND x BETWEEN -{MAX_LONGITUDE} AND {MAX_LONGITUDE}
        ) AS boxed
        WHERE distance <= %(radius)s
          AND (distance > %(after)s OR (distance = %(after)s AND id > %(after_id)s))
        ORDER BY distance, id LIMIT {limit:d}
        """,
        {
            "x": x,
            "y": y,
            "type_id": type_id,
            "south": max(y - lat, -MAX_LATITUDE),
            "north": min(y + lat, MAX_LATITUDE),
            "west": x - lon,
            "east": x + lon,
            "radius": radius_m * 10_000,
            "after": after.distance,
            "after_id": after.shop_id,
        },
    )
    return [ShopDistance(int(distance), shop_id) for distance, shop_id in rows]


def count() -> int:
    """Return the number of rows, deleted shops included. One statement. Raises MysqlDown."""
    return int(mysql.fetch_all("SELECT COUNT(*) FROM shop")[0][0])


def read_ids(after_id: int, limit: int) -> list[int]:
    """Return a page of all shops by id. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"SELECT id FROM shop WHERE id > %s ORDER BY id LIMIT {limit:d}", (after_id,)
    )
    return [shop_id for (shop_id,) in rows]


def read_places(after_id: int, limit: int) -> list[ShopPlace]:
    """Return a page of the places of all shops, by id. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT id, version, IF(deleted_at IS NULL, x, NULL), y, type_id
        FROM shop
        WHERE id > %s
        ORDER BY id LIMIT {limit:d}
        """,
        (after_id,),
    )
    return [
        ShopPlace(shop_id, version, place_of(x, y), type_id)
        for shop_id, version, x, y, type_id in rows
    ]


def read_given_places(shop_ids: Collection[int]) -> list[ShopPlace]:
    """Return the places of shops that have a row, by id. One statement. Raises MysqlDown."""
    if not shop_ids:
        return []
    rows = mysql.fetch_all(
        f"""
        SELECT id, version, IF(deleted_at IS NULL, x, NULL), y, type_id
        FROM shop
        WHERE id IN ({sql.render_ids(shop_ids)})
        ORDER BY id
        """
    )
    return [
        ShopPlace(shop_id, version, place_of(x, y), type_id)
        for shop_id, version, x, y, type_id in rows
    ]


def bump_versions(read_versions: Mapping[int, int]) -> int:
    """Raise the versions that are still those that were read; return the number of rows changed.
    One statement. Raises MysqlDown."""
    unchanged = " OR ".join(
        f"(id = {i:d} AND version = {version:d})" for i, version in sorted(read_versions.items())
    )
    if not unchanged:
        return 0
    statement = f"UPDATE shop SET version = version + 1 WHERE {unchanged} ORDER BY id"
    return mysql.run_in_transaction(lambda cursor: cursor.execute(statement))


def bump_page_versions(after_id: int, last_id: int) -> None:
    """Raise the versions of the shops above ``after_id`` up to ``last_id``. Raises MysqlDown."""
    if last_id > after_id:
        statement = "UPDATE shop SET version = version + 1 WHERE id > %s AND id <= %s ORDER BY id"
        mysql.run_in_transaction(lambda cursor: cursor.execute(statement, (after_id, last_id)))


def _min_cos(y: float, lat: float) -> float:
    """Return the smallest cosine of a latitude in the box."""
    return math.cos(math.radians(min(abs(y) + lat, 89.0)))


def _values(draft: ShopDraft) -> tuple[Any, ...]:
    return (
        draft.name,
        draft.type_id,
        draft.area,
        draft.address,
        draft.x,
        draft.y,
        TEXT_LIST.encode(draft.images) if draft.images else None,
        draft.avg_price_cents,
        draft.open_hours,
    )


def _read_back(cursor: Cursor, shop_id: int) -> StoredShop:
    cursor.execute(f"SELECT {_COLUMNS} FROM shop WHERE id = %s", (shop_id,))
    [row] = cursor.fetchall()
    return _stored(row)


def _stored(row: tuple[Any, ...]) -> StoredShop:
    (shop_id, name, type_id, area, address, x, y, images, avg_price_cents, open_hours, created_at,
     updated_at, version, deleted) = row  # fmt: skip
    shop = Shop(
        id=shop_id,
        name=name,
        type_id=type_id,
        area=area,
        address=address,
        x=x,
        y=y,
        images=TEXT_LIST.decode(images) if images else (),
        avg_price_cents=avg_price_cents,
        open_hours=open_hours,
        created_us=sql.to_us(created_at),
        updated_us=sql.to_us(updated_at),
    )
    return StoredShop(shop, version, bool(deleted))
