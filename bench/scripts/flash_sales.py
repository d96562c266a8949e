"""Flash sales: as many pending orders as there may be, and full calls about one bucket."""

from __future__ import annotations

import time

from bench.scripts.cases import Case, nothing
from bench.stage import Stage
from plaza.flash_sales import redis_vouchers
from plaza.flash_sales.flash_sales import MOST_STOCK, Life, Row, Terms, Voucher
from plaza.flash_sales.recovering import ORDERS_PER_VOUCHER
from plaza.flash_sales.redis_vouchers import MAX_ORDERS_PER_CALL, buyers_key, recovery_key
from plaza.infra import redis
from plaza.infra.settings import settings

LIFE = Life(7, 1, 1)  # its buyers are of one bucket
_DAY_US = 86_400_000_000
_FIRST = 10**18
_ROOM = 10_000  # orders that may become pending in a case


def _load(voucher_id: int) -> None:
    now_us = time.time_ns() // 1000
    terms = Terms(1, "voucher", 100, MOST_STOCK, now_us - _DAY_US, now_us + _DAY_US)
    life = Life(voucher_id, LIFE.epoch, MOST_STOCK)
    redis_vouchers.load(life, Voucher(voucher_id, terms, MOST_STOCK, LIFE.epoch, False), 0)


def _begin(stage: Stage) -> None:
    """A sale that is open, with orders that nothing decided."""
    _load(LIFE.voucher_id)
    redis_vouchers.open_life(LIFE, None, drained=True)
    count = stage.some(settings().most_pending_orders) - _ROOM
    for start in range(0, count, 10_000):
        buyers = range(_FIRST + start, _FIRST + start + 10_000)
        orders = [part for buyer in buyers for part in (1, f"{buyer}:{buyer}")]
        redis.execute("ZADD", recovery_key(LIFE), *orders)
    redis.execute("HSET", redis_vouchers.state_key(LIFE.voucher_id), "pending", count)


def _begin_with_buyers(stage: Stage) -> None:
    _begin(stage)
    buyers = range(_FIRST, _FIRST + _ROOM)
    entries = [part for buyer in buyers for part in (buyer, f"pending:{buyer}")]
    redis.execute("HSET", buyers_key(LIFE, _FIRST), *entries)


def _confirm(run: int) -> None:
    first = _FIRST + run * MAX_ORDERS_PER_CALL
    rows = [Row(n, LIFE.voucher_id, n, None) for n in range(first, first + MAX_ORDERS_PER_CALL)]
    [call] = redis_vouchers._confirm_calls(rows, {LIFE.voucher_id: LIFE})
    redis.run(call.script, call.keys, call.args)


def _fail(run: int) -> None:
    row = Row(_FIRST + run, LIFE.voucher_id, _FIRST + run, "timed-out")
    keys = redis_vouchers._keys(LIFE, row.buyer_id)
    redis.run(redis_vouchers.FAIL, keys, (LIFE.epoch, row.order_id, row.buyer_id))


CASES = [
    Case("a sale", redis_vouchers.LOAD, nothing, lambda run: _load(1 + run)),
    Case(
        "a sale that is loaded",
        redis_vouchers.OPEN,
        lambda stage: _load(LIFE.voucher_id),
        lambda run: redis_vouchers.open_life(LIFE, None, drained=True),
    ),
    Case(
        "as many pending as may be",
        redis_vouchers.RESERVE,
        _begin,
        lambda run: redis_vouchers.reserve(LIFE, run + 1, run + 1),
    ),
    Case("250 orders of one bucket", redis_vouchers.CONFIRM, _begin_with_buyers, _confirm),
    Case("an order", redis_vouchers.FAIL, _begin_with_buyers, _fail),
    Case(
        "all of them due",
        redis_vouchers.RECOVER,
        _begin,
        lambda run: redis_vouchers.recover([LIFE], 0, ORDERS_PER_VOUCHER),
    ),
    Case(
        "a shop that was deleted",
        redis_vouchers.WITHDRAW,
        _begin,
        lambda run: redis_vouchers.withdraw([LIFE], gone=run % 2 == 0),
    ),
]
