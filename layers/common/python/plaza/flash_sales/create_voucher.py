"""Offering: a voucher is made in MySQL, and its state brought into Redis."""

from __future__ import annotations

from pymysql.cursors import Cursor

from plaza import idempotency
from plaza.flash_sales import load_sale, mysql_vouchers, voucher_lookup
from plaza.flash_sales.model import (
    NotOpen,
    Terms,
    Voucher,
    VoucherWithdrawn,
)
from plaza.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.idempotency import IdempotentRequest, KeyReused
from plaza.infra import clock, ids, mysql
from plaza.infra.errors import BadInput, Unavailable
from plaza.infra.observability import error_fields, record


def create_voucher(
    terms: Terms, creator_id: int, attempt: IdempotentRequest | None = None
) -> Voucher:
    """Create a voucher; the same one for each try of one attempt.

    Raises BadInput for times, VoucherMissing when there is no such shop, VoucherWithdrawn when it was
    deleted, KeyReused; MysqlDown, RedisDown.
    """
    if attempt and (made := idempotency.find(creator_id, attempt)):
        return _return_existing(*made)
    if terms.opens_us >= terms.closes_us:
        raise BadInput("closes_at", "is not after opens_at")
    if terms.closes_us <= clock.now_us():
        raise BadInput("closes_at", "is in the past")
    mysql_vouchers.check_shop(terms.shop_id)
    voucher_id = ids.new_id()
    VOUCHER_IDS.add([voucher_id])  # what MySQL has, the filter has: so before

    def write(cursor: Cursor) -> bool:
        if attempt and not idempotency.claim(cursor, creator_id, attempt, ("voucher", voucher_id)):
            return False
        mysql_vouchers.insert(cursor, voucher_id, terms, creator_id)
        return True

    if not mysql.run_in_transaction(write):
        return create_voucher(terms, creator_id, attempt)
    try:
        voucher_lookup.mark_created(voucher_id, terms.shop_id)
        load_sale.load_sale(voucher_id)
    except (Unavailable, NotOpen, VoucherWithdrawn) as error:
        # Then the first who clicks has it brought in.
        record("sale_load_postponed", voucher_id=voucher_id, **error_fields(error))
    return Voucher(voucher_id, terms, terms.stock, 1, finalized=False)


def _return_existing(made_type: str, made_id: int) -> Voucher:
    found = mysql_vouchers.read(made_id) if made_type == "voucher" else None
    if found is None:
        raise KeyReused("Take a new key for another request")
    return found
