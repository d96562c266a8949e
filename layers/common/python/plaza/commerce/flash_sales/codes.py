"""Codes that a buyer shows to use an order, and that the shop redeems once.

A code has 80 random bits. MySQL stores its SHA-256, so the buyer who lost a code gets another one,
which replaces it.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from typing import NamedTuple

from plaza.commerce.flash_sales import mysql_orders, queries
from plaza.commerce.flash_sales.model import (
    EXPIRED,
    SUCCESS,
    USED,
    AlreadyUsed,
    NotUsable,
    TooManyCodes,
    WrongCode,
)
from plaza.core import idempotency
from plaza.core.event_log import append_events
from plaza.core.idempotency import IdempotentRequest, KeyReused
from plaza.infra.http import limits
from plaza.infra.http.limits import Attempt, Window
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import record

# Without I, L, O and U (Crockford's base 32), so that a code can be read aloud.
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE_LENGTH = 16
_GROUP = 4
_READ_AS = str.maketrans("ILO", "110", "- ")

WINDOWS = (Window(duration_s=60, max_attempts=10), Window(duration_s=3_600, max_attempts=60))
"""How many wrong codes a caller may send."""


class Redemption(NamedTuple):
    """The use of an order: when, in microseconds since 1970."""

    order_id: int
    voucher_id: int
    used_us: int


def issue_code(order_id: int, buyer_id: int) -> str:
    """Store and return a new code of a buyer's unused order; an earlier one becomes invalid.

    Two statements after ``queries.read_order``. Raises NotUsable, OrderMissing, NotReady;
    MysqlDown, RedisDown.
    """
    order = queries.read_order(order_id, buyer_id)
    if order.status != SUCCESS:
        raise NotUsable(f"This order is {order.status}.")
    code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
    mysql_orders.store_code(order_id, _digest(code))
    # Not the number of changed rows: it is 0 if the statement was sent again.
    if mysql_orders.read_by_code(order.voucher_id, _digest(code)) is None:
        raise NotUsable("This order was used or cancelled at this moment.")
    return "-".join(code[at : at + _GROUP] for at in range(0, CODE_LENGTH, _GROUP))


def redeem_code(
    voucher_id: int, code: str, redeemer_id: int, attempt: IdempotentRequest | None = None
) -> Redemption:
    """Use the order of a voucher that has this code, once; a repeat with the idempotency key
    returns the same redemption. A transaction of two statements after at most two reads.

    Wrong codes count against the limit of the redeemer, while Redis is available. Raises WrongCode,
    AlreadyUsed, NotUsable, TooManyCodes, KeyReused; MysqlDown.
    """
    if attempt and (used := idempotency.find(redeemer_id, attempt)):
        return _read_redemption(*used, voucher_id)
    guess = Attempt("redeem", str(redeemer_id))
    _admit(guess)
    digest = _digest(code)
    row = mysql_orders.read_by_code(voucher_id, digest)
    if row is None:
        raise WrongCode
    _withdraw(guess)
    if row.order.status == USED:
        used_us = mysql_orders.read_used_at(row.order_id)
        raise AlreadyUsed(f"This order was used at {sql.from_us(used_us or 0):%Y-%m-%dT%H:%M:%SZ}.")
    if row.order.status == EXPIRED:
        raise NotUsable("This order has expired.")

    def write(cursor: Cursor) -> bool:
        append_events.pass_barrier(cursor)
        if attempt and not idempotency.claim(
            cursor, redeemer_id, attempt, ("redemption", row.order_id)
        ):
            return False
        if not mysql_orders.use(cursor, row.order_id, digest, redeemer_id):
            raise AlreadyUsed("This order was used or cancelled at this moment.")
        mysql_orders.append_to_log(cursor, [row._replace(used_us=clock.now_us())])
        return True

    if not mysql.run_in_transaction(write):
        return redeem_code(voucher_id, code, redeemer_id, attempt)
    record("order_used", {"orders_used": 1}, order_id=row.order_id)
    return _read_redemption("redemption", row.order_id, voucher_id)


def _read_redemption(created_type: str, order_id: int, voucher_id: int) -> Redemption:
    used_us = mysql_orders.read_used_at(order_id) if created_type == "redemption" else None
    if used_us is None:
        raise KeyReused
    return Redemption(order_id, voucher_id, used_us)


def _digest(code: str) -> bytes:
    """Return the digest of a code as people type it: in any case, with or without hyphens."""
    return hashlib.sha256(code.upper().translate(_READ_AS).encode()).digest()


def _admit(guess: Attempt) -> None:
    try:
        wait_ms = limits.admit(guess, WINDOWS)
    except RedisDown as error:
        limits.record_limit_skipped(error)
        return
    if wait_ms > 0:
        wait_s = -(-wait_ms // 1000)
        raise TooManyCodes(f"Too many wrong codes; retry after {wait_s} s.", wait_s)


def _withdraw(guess: Attempt) -> None:
    with suppress(RedisDown):
        limits.withdraw(guess)
