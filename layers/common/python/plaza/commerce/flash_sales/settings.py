"""The settings of flash sales."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.runtime.settings import declare


class SaleSettings(NamedTuple):
    """``orders_per_s``: what consumers decide in a second; ``max_pending_orders``: undecided orders
    of a voucher, above which orders are refused. A pending order is sent again after
    ``resend_orders_after_s`` and decided by the recovery after ``decide_orders_after_s``."""

    orders_per_s: int = 2_000
    max_pending_orders: int = 100_000
    resend_orders_after_s: int = 300
    decide_orders_after_s: int = 1_800


sale_settings = declare(SaleSettings)
