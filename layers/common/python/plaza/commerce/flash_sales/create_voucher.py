"""Create a voucher in MySQL and load its state into Redis."""

from __future__ import annotations

from plaza.commerce.flash_sales import load_sale, mysql_vouchers, voucher_lookup
from plaza.commerce.flash_sales.model import (
    ALWAYS_OPEN_US,
    FLASH,
    NEVER_CLOSES_US,
    NotOpen,
    Terms,
    Voucher,
    VoucherWithdrawn,
)
from plaza.commerce.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.core import idempotency
from plaza.core.idempotency import IdempotentRequest, KeyReused
from plaza.infra.derived import ids
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import BadInput, Unavailable
from plaza.infra.runtime.observability import error_fields, record


def create_voucher(
    terms: Terms, creator_id: int, attempt: IdempotentRequest | None = None
) -> Voucher:
    """Create a voucher, once for each idempotency key.

    Raises BadInput for times that are past or out of order, VoucherMissing if the shop does not
    exist, VoucherWithdrawn if it was deleted, KeyReused; MysqlDown, RedisDown.
    """
    if attempt and (created := idempotency.find(creator_id, attempt)):
        return _read_created(*created)
    if terms.kind == FLASH and terms.opens_us == ALWAYS_OPEN_US:
        raise BadInput("opens_at", "is required for a flash voucher", code="missing")
    if terms.kind == FLASH and terms.closes_us == NEVER_CLOSES_US:
        raise BadInput("closes_at", "is required for a flash voucher", code="missing")
    if terms.opens_us >= terms.closes_us:
        raise BadInput("closes_at", "must be later than opens_at", code="too-early")
    if terms.closes_us <= clock.now_us():
        raise BadInput("closes_at", "must be in the future", code="too-early")
    if terms.expires_us is not None and terms.expires_us < terms.closes_us:
        raise BadInput("expires_at", "must not be before closes_at", code="too-early")
    mysql_vouchers.check_shop(terms.shop_id)
    voucher_id = ids.new_id()
    VOUCHER_IDS.add([voucher_id])  # before the insert: the filter lacks no voucher

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
        # The first order then loads it.
        record("sale_load_postponed", voucher_id=voucher_id, **error_fields(error))
    return Voucher(voucher_id, terms, terms.stock, 1, finalized=False)


def _read_created(created_type: str, created_id: int) -> Voucher:
    voucher = mysql_vouchers.read(created_id) if created_type == "voucher" else None
    if voucher is None:
        raise KeyReused
    if voucher.withdrawn:
        raise VoucherWithdrawn(f"Voucher {voucher.id} was withdrawn.")
    return voucher
