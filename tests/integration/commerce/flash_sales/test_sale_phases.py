"""The phases of a sale in Redis: open.lua and withdraw.lua, code by code."""

from __future__ import annotations

import pytest

from plaza.commerce.flash_sales import (
    redis_keys,
    redis_load,
    redis_orders,
    redis_sales,
    redis_waitlist,
)
from plaza.commerce.flash_sales.model import OrderRow, SaleGeneration
from plaza.commerce.flash_sales.redis_load import LoadProgress
from plaza.infra.redis import redis
from tests.support import sales
from tests.support.plaza import World


@pytest.fixture
def sale(plaza: World) -> SaleGeneration:
    """A sale that is live in Redis."""
    voucher = sales.offer()
    return redis_sales.find_sales([voucher.id])[voucher.id]


def change(sale: SaleGeneration, **fields: str | int) -> None:
    for field, value in fields.items():
        redis.execute("HSET", redis_keys.state_key(sale.voucher_id), field, value)


def read_phase(sale: SaleGeneration) -> str:
    return str(redis.execute("HGET", redis_keys.state_key(sale.voucher_id), "phase"))


def test_a_live_sale_stays_live(sale: SaleGeneration) -> None:
    change(sale, drain_until_us=2**52)
    assert redis_load.open_sale(sale, drained=False) == "LIVE"
    assert read_phase(sale) == "live"


def test_a_sale_that_was_withdrawn_while_it_was_loaded_does_not_open(sale: SaleGeneration) -> None:
    change(sale, phase="loading")
    assert redis_sales.withdraw([sale]) == 1
    assert redis_load.open_sale(sale, drained=True) == "WITHDRAWN"
    assert redis_orders.reserve(sale, 1, 7).code == "WITHDRAWN"


def test_the_cursor_of_a_load_never_moves_back(sale: SaleGeneration) -> None:
    """Given two processes that load a sale, of which one is slow."""
    change(sale, phase="loading", cursor=0)
    redis_load.advance(LoadProgress(sale, "loading", 1, 5))
    redis_load.advance(LoadProgress(sale, "loading", 0, 9))
    assert redis_load.read_progress(sale.voucher_id) == LoadProgress(sale, "loading", 1, 5)


def test_a_load_of_another_generation_opens_nothing(sale: SaleGeneration) -> None:
    change(sale, phase="loading")
    other = sale._replace(generation=sale.generation + 1)
    assert redis_load.open_sale(other, drained=True) == "STALE_GENERATION"
    assert redis_sales.withdraw([other]) == 0
    assert read_phase(sale) == "loading"


def test_only_a_withdrawn_sale_is_loaded_again_and_from_the_beginning(
    sale: SaleGeneration,
) -> None:
    assert redis_sales.withdraw([sale], withdrawn=False) == 0
    assert read_phase(sale) == "live"
    change(sale, cursor="1" + "9" * 19)
    assert redis_sales.withdraw([sale]) == redis_sales.withdraw([sale], withdrawn=False) == 1
    assert redis_load.read_progress(sale.voucher_id) == LoadProgress(sale, "loading", 0, 0)


def test_a_finalized_sale_stays_finalized(sale: SaleGeneration) -> None:
    change(sale, phase="finalized")
    assert redis_sales.withdraw([sale]) == 0
    assert read_phase(sale) == "finalized"


def test_a_sale_with_units_left_is_not_loaded_again_for_one_that_returns(
    sale: SaleGeneration,
) -> None:
    """Given a sale of another term, which is loaded again before it offers units."""
    change(sale, term="0" * 40)
    assert redis_orders.reserve(sale, 1, 7).code == "RESERVED"
    redis_orders.acknowledge([OrderRow(1, sale.voucher_id, 7, "sold-out")])
    assert (sales.counts(sale.voucher_id), read_phase(sale)) == ((3, 0, 0), "live")
    redis.execute("HSET", redis_keys.state_key(sale.voucher_id), "counts", "1:0:0:1:0")
    redis_waitlist.leave(sale, [])
    assert read_phase(sale) == "loading"
