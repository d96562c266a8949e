"""Gauges of flash sales: orders by minute."""

from __future__ import annotations

from plaza.commerce.flash_sales import mysql_orders
from plaza.infra.derived import ids
from plaza.infra.runtime import clock


def read_orders() -> dict[str, float]:
    """Return how many orders of the last whole minute are decided, counted up to 200,000. One
    statement. Raises MysqlDown."""
    end_s = int(clock.now_s()) // 60 * 60
    return {
        "orders_per_min": mysql_orders.count_between(
            ids.first_id_at(end_s - 60), ids.first_id_at(end_s)
        )
    }
