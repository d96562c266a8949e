"""The state of sales in Redis, for operators and for the reconciliation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from plaza.commerce.flash_sales import mysql_vouchers, redis_sales
from plaza.commerce.flash_sales.model import Voucher
from plaza.commerce.flash_sales.redis_sales import SaleCounts
from plaza.commerce.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.infra.derived.comparisons import DerivedList, IdCycle
from plaza.infra.derived.list_state import ListState
from plaza.infra.mysql.id_ranges import estimate_left
from plaza.infra.runtime.observability import record

_STATE = re.compile(r"\{\d+\}:voucher:(\d+):sale")


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


def voucher_of_key(key: str) -> int | None:
    """Return the voucher whose state a key has, None for any other key."""
    match = _STATE.fullmatch(key)
    return int(match[1]) if match else None


def compare_sales(voucher_ids: Sequence[int]) -> dict[int, ListState]:
    """Compare the units of live sales with MySQL, which is read after Redis; omit others, and what
    was read under another term. One round trip, one statement. Raises RedisDown, MysqlDown."""
    live = {
        voucher_id: counts
        for voucher_id, counts in redis_sales.read_counts(voucher_ids).items()
        if counts.live and counts.term == redis_sales.read_term(voucher_id)
    }
    vouchers = mysql_vouchers.read_all(live) if live else {}
    return {
        voucher_id: ListState(str(tuple(counts)), _describe(counts, vouchers.get(voucher_id)))
        for voucher_id, counts in live.items()
    }


def _describe(counts: SaleCounts, voucher: Voucher | None) -> str:
    """Return what differs beyond what is in transit.

    Each pending order of Redis may be decided in MySQL. Each order that MySQL has cancelled, and
    Redis has not, may still have its unit in Redis.
    """
    if voucher is None:
        return "MySQL has no such voucher"
    if counts.initial_stock != voucher.terms.stock:
        return f"{counts.initial_stock} units in Redis, {voucher.terms.stock} in MySQL"
    units = counts.stock + counts.pending + counts.sold + counts.offered
    if units != counts.initial_stock or min(counts[3:9]) < 0:
        return f"{units} units are in stock, pending, sold or offered, of {counts.initial_stock}"
    sold = voucher.terms.stock - voucher.stock
    returning = voucher.cancelled - counts.cancelled
    if returning < 0 or not -returning <= sold - counts.sold <= counts.pending:
        return (
            f"sold {counts.sold}, pending {counts.pending}, cancelled {counts.cancelled} in Redis;"
            f" sold {sold}, cancelled {voucher.cancelled} in MySQL"
        )
    return ""


def reload_sales(voucher_ids: Sequence[int]) -> None:
    """Drop the state of sales that differ from MySQL still. The next order of each loads it again,
    after the orders that are queued: the sale is closed for 30 s at most. Four round trips and a
    statement, and two round trips for each that differs. Raises RedisDown, MysqlDown."""
    states = compare_sales(voucher_ids)
    differing = [voucher_id for voucher_id, state in states.items() if state.differences]
    for voucher_id, sale in redis_sales.find_sales(differing).items():
        redis_sales.drop_state(voucher_id)
        redis_sales.drop(sale)
        record("sale_dropped", voucher_id=voucher_id, existed=True)


def compare_filter(voucher_ids: Sequence[int]) -> dict[int, ListState]:
    """Compare the filter with vouchers that MySQL has: it may deny none. One round trip. Raises
    RedisDown."""
    possible = set(VOUCHER_IDS.find_possible(voucher_ids))
    return {
        voucher_id: ListState("denied", "" if voucher_id in possible else "its filter denies it")
        for voucher_id in voucher_ids
    }


FILTER = DerivedList(
    name="voucher",
    owner="voucher",
    compare=compare_filter,
    repair=VOUCHER_IDS.add,
    cycle=IdCycle("vouchers", mysql_vouchers.read_ids, partial(estimate_left, "voucher", "id")),
)
# A sale is compared while no order changes it between both looks; else it is passed over, and
# compared when it is settled.
SALES = DerivedList(
    name="sale",
    owner="voucher",
    find_owner=voucher_of_key,
    compare=compare_sales,
    repair=reload_sales,
)
