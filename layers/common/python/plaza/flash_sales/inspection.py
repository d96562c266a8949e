"""The state of one sale in Redis, for an operator."""

from __future__ import annotations

from typing import Any

from plaza.flash_sales import redis_sales
from plaza.infra.runtime.observability import record


def show_sale(voucher_id: int) -> dict[str, Any]:
    """Return the state of a sale in Redis and the sizes of its other keys, {} without one.
    Two round trips. Raises RedisDown."""
    return redis_sales.read_all(voucher_id)


def close_sale(voucher_id: int) -> bool:
    """Drop the state of a sale that has ended; return whether there was one. The next run of
    FinalizeVouchers closes it by the numbers of MySQL. One round trip. Raises RedisDown."""
    existed = redis_sales.drop_state(voucher_id)
    record("sale_dropped", voucher_id=voucher_id, existed=existed)
    return existed
