"""Offering: a voucher is made in MySQL, and its state brought into Redis."""

from __future__ import annotations

from pymysql.cursors import Cursor

from plaza import idempotency
from plaza.flash_sales import loading, lookup, mysql_vouchers
from plaza.flash_sales.flash_sales import (
    NotOpen,
    Terms,
    Voucher,
    VoucherGone,
)
from plaza.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.idempotency import Attempt, KeyReused
from plaza.infra import clock, ids, mysql
from plaza.infra.errors import BadInput, Unavailable
from plaza.infra.observability import cause, record


def offer(terms: Terms, creator_id: int, attempt: Attempt | None = None) -> Voucher:
    """Offer a voucher; the same one for each try of one attempt.

    Raises BadInput for times, VoucherMissing when there is no such shop, VoucherGone when it was
    deleted, KeyReused; MysqlDown, RedisDown.
    """
    if attempt and (made := idempotency.find(creator_id, attempt)):
        return _answer_again(*made)
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

    if not mysql.atomically(write):
        return offer(terms, creator_id, attempt)
    try:
        lookup.note_made(voucher_id, terms.shop_id)
        loading.bring_back(voucher_id)
    except (Unavailable, NotOpen, VoucherGone) as error:
        # Then the first who clicks has it brought in.
        record("loading_postponed", voucher_id=voucher_id, **cause(error))
    return Voucher(voucher_id, terms, terms.stock, 1, settled=False)


def _answer_again(made_type: str, made_id: int) -> Voucher:
    found = mysql_vouchers.read(made_id) if made_type == "voucher" else None
    if found is None:
        raise KeyReused("Take a new key for another request")
    return found
