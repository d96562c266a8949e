"""Withdraw the vouchers of a deleted shop in Redis."""

from __future__ import annotations

from plaza.flash_sales import mysql_vouchers, redis_store
from plaza.infra.errors import Unavailable
from plaza.infra.observability import error_fields, record

_PAGE = 100


def withdraw_vouchers(shop_id: int) -> None:
    """Withdraw at once; the recovery withdraws what an outage of MySQL or Redis leaves.

    One statement and two round trips a page of 100.
    """
    before_id: int | None = None
    try:
        while vouchers := mysql_vouchers.read_of_shop(shop_id, before_id, _PAGE):
            before_id = vouchers[-1].id
            sales = redis_store.find_sales([voucher.id for voucher in vouchers])
            redis_store.withdraw(list(sales.values()), shop_deleted=True)
    except Unavailable as error:
        record("withdrawal_postponed", shop_id=shop_id, **error_fields(error))
