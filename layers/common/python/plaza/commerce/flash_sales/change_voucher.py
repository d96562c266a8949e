"""Change what orders do not depend on: the title, the price before the sale, a later expiry.

Stock and times of the sale are in Redis, too: to change them, withdraw the voucher and offer
another one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from plaza.commerce.flash_sales import mysql_vouchers, queries, voucher_lookup
from plaza.commerce.flash_sales.model import (
    NotChangeable,
    Terms,
    Voucher,
    VoucherAvailability,
    VoucherMissing,
    VoucherWithdrawn,
)
from plaza.infra.derived import cache
from plaza.infra.http.requests import check_tag, tag_fields
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, record


def tag_of(terms: Terms) -> str:
    """Return the ETag of a voucher: of the terms that its shop may change."""
    return tag_fields(terms.title, terms.price_cents, terms.expires_us)


def change_voucher(
    voucher_id: int, changes: Mapping[str, Any], tags: Collection[str] | None = None
) -> VoucherAvailability:
    """Change fields of the terms (title, price_cents, expires_us); return the voucher. Idempotent.

    ``tags``: of the versions that may be changed; without them the last of concurrent changes wins.
    One transaction of two statements, which waits for orders that are being decided. Raises
    VoucherMissing, VoucherWithdrawn, ChangedMeanwhile, NotChangeable, MysqlDown.
    """

    def work(cursor: Cursor) -> Voucher:
        voucher = mysql_vouchers.lock_one(cursor, voucher_id)
        if voucher is None:
            raise VoucherMissing(f"Voucher {voucher_id} does not exist.")
        if voucher.withdrawn:
            raise VoucherWithdrawn(f"Voucher {voucher_id} was withdrawn.")
        terms = replace(voucher.terms, **changes)
        check_tag(tags, tag_of(voucher.terms), tag_of(terms), "voucher")
        _check(voucher.terms, terms)
        mysql_vouchers.change(cursor, voucher_id, terms)
        return voucher._replace(terms=terms)

    voucher = mysql.run_in_transaction(work)
    record("voucher_changed", voucher_id=voucher_id, fields=sorted(changes))
    try:
        cache.drop_first_pages([voucher_lookup.list_key(voucher.terms.shop_id)])
    except Unavailable as error:  # the page is 3 s old at most
        record("projection_delayed", {"projections_delayed": 1}, **error_fields(error))
    [availability] = queries.read_availability([voucher])
    return availability


def _check(before: Terms, after: Terms) -> None:
    now_us = clock.now_us()
    if after.price_cents != before.price_cents and before.opens_us <= now_us:
        raise NotChangeable("The price of a voucher is fixed once its sale has begun.")
    if after.expires_us == before.expires_us:
        return
    if before.expires_us is None or before.expires_us <= now_us:
        raise NotChangeable("This voucher has expired, or never does.")
    if after.expires_us is None or after.expires_us < before.expires_us:
        raise NotChangeable("The expiry of a voucher can only become later.")
