"""Recommended reviews: lists of full length."""

from __future__ import annotations

from bench.scripts.cases import Case
from plaza.recommendations import LENGTH, redis_recommendations
from plaza.recommendations.recommendations import Recommended

SHOP = 7


def _swap(run: int = 0) -> None:
    rebuild = redis_recommendations.begin_rebuilds([SHOP])
    list_of_shop = Recommended(range(10**18, 10**18 + LENGTH), None)
    redis_recommendations.swap_all({SHOP: list_of_shop}, rebuild)


CASES = [
    Case(
        "a full list",
        redis_recommendations.LOOK,
        lambda stage: _swap(),
        lambda run: redis_recommendations.look(SHOP),
    ),
    Case("a full list", redis_recommendations.SWAP, lambda stage: _swap(), _swap),
]
