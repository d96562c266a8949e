"""Write shop types in one transaction, then refresh Redis, at once and again after 1 s.

The second refresh corrects a reader that cached the types from before the commit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from plaza.commerce.shops import mysql_shop_types, refresh
from plaza.commerce.shops.model import ShopRefresh, ShopType, ShopTypeDraft, TypeInUse, TypeMissing
from plaza.commerce.shops.queues import SHOPS
from plaza.infra.derived import ids
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, record

T = TypeVar("T")


def create_type(draft: ShopTypeDraft) -> ShopType:
    """Store a new shop type. Raises MysqlDown."""
    type_id = ids.new_id()
    return _write(lambda cursor: mysql_shop_types.insert(cursor, type_id, draft))


def replace_type(type_id: int, draft: ShopTypeDraft) -> ShopType:
    """Replace all fields of a shop type. Raises TypeMissing, MysqlDown."""

    def work(cursor: Cursor) -> ShopType:
        _require(cursor, type_id)
        return mysql_shop_types.replace(cursor, type_id, draft)

    return _write(work)


def delete_type(type_id: int) -> None:
    """Delete a shop type. Raises TypeMissing; TypeInUse while a shop has it; MysqlDown."""

    def work(cursor: Cursor) -> None:
        _require(cursor, type_id)
        if mysql_shop_types.is_used(cursor, type_id):
            raise TypeInUse(f"Shop type {type_id} has shops. Move or delete them first.")
        mysql_shop_types.delete(cursor, type_id)

    _write(work)


def _require(cursor: Cursor, type_id: int) -> None:
    if not mysql_shop_types.lock(cursor, type_id):
        raise TypeMissing(f"Shop type {type_id} does not exist.")


def _write(work: Callable[[Cursor], T]) -> T:
    """Commit and return the result of ``work``. Failures to refresh Redis are only recorded."""
    result = mysql.run_in_transaction(work)
    try:
        SHOPS.send(ShopRefresh([]), delay_s=refresh.REPEAT_DELAY_S)
        refresh.refresh_types()
    except Unavailable as error:
        record(
            "projection_delayed", {"projections_delayed": 1}, announced=False, **error_fields(error)
        )
    return result
