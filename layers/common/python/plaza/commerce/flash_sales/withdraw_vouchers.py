"""Withdraw vouchers: one by an admin, all of a deleted shop.

MySQL decides: from the commit on, no order of the voucher succeeds, and pending ones fail as
``withdrawn``. Redis then refuses reservations at once; the recovery repeats what an outage leaves.
"""

from __future__ import annotations

from plaza.commerce.flash_sales import mysql_vouchers, redis_sales, voucher_lookup
from plaza.commerce.flash_sales.model import VoucherMissing, VoucherWithdrawn
from plaza.infra.derived import cache
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, record

_PAGE = 100


def withdraw_voucher(voucher_id: int, admin_id: int) -> None:
    """Withdraw a voucher; its successful orders stay. Three statements and five round trips at
    most. Raises VoucherMissing; VoucherWithdrawn if it already is; NotReady, MysqlDown."""
    voucher = voucher_lookup.find_voucher(voucher_id)
    if voucher is None:
        raise VoucherMissing(f"Voucher {voucher_id} does not exist.")
    is_first = mysql_vouchers.mark_withdrawn(voucher_id, admin_id)
    if is_first:
        record("voucher_withdrawn", voucher_id=voucher_id, operator_id=admin_id)
    try:  # also if it is withdrawn already: that request may have ended before this
        redis_sales.withdraw(list(redis_sales.find_sales([voucher_id]).values()))
        cache.drop_first_pages([voucher_lookup.list_key(voucher.terms.shop_id)])
    except Unavailable as error:
        record("withdrawal_postponed", voucher_id=voucher_id, **error_fields(error))
    if not is_first:
        raise VoucherWithdrawn(f"Voucher {voucher_id} was withdrawn.")


def withdraw_vouchers(shop_id: int) -> None:
    """Withdraw the vouchers of a deleted shop in Redis at once. One statement and two round trips a
    page of 100."""
    before_id: int | None = None
    try:
        while vouchers := mysql_vouchers.read_of_shop(shop_id, before_id, _PAGE):
            before_id = vouchers[-1].id
            sales = redis_sales.find_sales([voucher.id for voucher in vouchers])
            redis_sales.withdraw(list(sales.values()))
    except Unavailable as error:
        record("withdrawal_postponed", shop_id=shop_id, **error_fields(error))
