"""The public status of a sale, which shows a countdown; cached by each process for 1 s."""

from __future__ import annotations

from typing import Literal, NamedTuple

from plaza.commerce.flash_sales import redis_sales, redis_waitlist, voucher_lookup
from plaza.commerce.flash_sales.model import VoucherMissing
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import LocalCache

STATUS_TTL_S = 1.0
_MAX_CACHED = 10_000


class SaleStatus(NamedTuple):
    """A sale at the time ``now_us``; ``exact`` if ``left`` was read from Redis, which subtracts
    pending orders and offers."""

    phase: Literal["upcoming", "open", "sold-out", "closed", "withdrawn"]
    opens_us: int
    closes_us: int
    left: int
    waiting: int
    exact: bool
    now_us: int


_statuses: LocalCache[int, SaleStatus] = LocalCache(_MAX_CACHED, STATUS_TTL_S)


def read_status(voucher_id: int) -> SaleStatus:
    """Return the status of a sale, up to 1 s old. Two round trips; for a voucher that is not in
    Redis also as ``find_voucher``. Raises VoucherMissing, NotReady; RedisDown, MysqlDown."""
    return _statuses.get_or_load(voucher_id, lambda: _read(voucher_id))


def _read(voucher_id: int) -> SaleStatus:
    sale = redis_sales.find_sales([voucher_id]).get(voucher_id)
    now_us = clock.now_us()
    if sale is not None:
        state = redis_waitlist.read_state(sale)
        is_withdrawn, is_live = state.phase == "withdrawn", state.phase == "live"
        opens_us, closes_us, left, waiting = state[1:]
    else:
        voucher = voucher_lookup.find_voucher(voucher_id)
        if voucher is None:
            raise VoucherMissing(f"Voucher {voucher_id} does not exist.")
        is_withdrawn, is_live = voucher.shop_deleted, voucher.finalized
        opens_us, closes_us = voucher.terms.opens_us, voucher.terms.closes_us
        left, waiting = voucher.stock, 0
    phase: Literal["upcoming", "open", "sold-out", "closed", "withdrawn"] = "open"
    if is_withdrawn:
        phase = "withdrawn"
    elif now_us >= closes_us:
        phase = "closed"
    elif now_us < opens_us:
        phase = "upcoming"
    elif left <= 0 or waiting:
        phase = "sold-out"
    return SaleStatus(phase, opens_us, closes_us, max(0, left), waiting, is_live, now_us)
