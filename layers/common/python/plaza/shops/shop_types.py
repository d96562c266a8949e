"""Writes types of shops in one transaction, then refreshes Redis, now and again in a second.

The second time is for a reader that had the old types already when the transaction was committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pymysql.cursors import Cursor

from plaza.infra import ids, mysql
from plaza.infra.errors import Unavailable
from plaza.infra.observability import error_fields, record
from plaza.shops import mysql_shop_types, refresh
from plaza.shops.model import ShopRefresh, ShopType, ShopTypeDraft, TypeInUse, TypeMissing
from plaza.shops.queues import SHOPS

T = TypeVar("T")


def create_type(draft: ShopTypeDraft) -> ShopType:
    """A new type of shops. Raises MysqlDown."""
    type_id = ids.new_id()
    return _write(lambda cursor: mysql_shop_types.insert(cursor, type_id, draft))


def replace_type(type_id: int, draft: ShopTypeDraft) -> ShopType:
    """A type of shops, replaced as a whole. Raises TypeMissing, MysqlDown."""

    def work(cursor: Cursor) -> ShopType:
        _require(cursor, type_id)
        return mysql_shop_types.replace(cursor, type_id, draft)

    return _write(work)


def delete_type(type_id: int) -> None:
    """Delete a type of shops. Raises TypeMissing; TypeInUse while a shop has it; MysqlDown."""

    def work(cursor: Cursor) -> None:
        _require(cursor, type_id)
        if mysql_shop_types.is_used(cursor, type_id):
            raise TypeInUse(f"There are shops of the type {type_id}")
        mysql_shop_types.delete(cursor, type_id)

    _write(work)


def _require(cursor: Cursor, type_id: int) -> None:
    if not mysql_shop_types.lock(cursor, type_id):
        raise TypeMissing(f"There is no type {type_id} of shops")


def _write(work: Callable[[Cursor], T]) -> T:
    """The result of ``work``, committed. That Redis is away is no error: MySQL has it."""
    result = mysql.run_in_transaction(work)
    try:
        SHOPS.send(ShopRefresh([]), delay_s=refresh.REPEAT_DELAY_S)
        refresh.refresh_types()
    except Unavailable as error:
        record(
            "projection_delayed", {"projections_delayed": 1}, announced=False, **error_fields(error)
        )
    return result
