"""The counter of a shop. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.runtime.codec import list_codec


class ShopCounter(NamedTuple):
    """The number of a shop's reviews and the sum of their scores; or a change of both."""

    reviews_total: int
    score_total: int


SHOP_COUNTER = list_codec("shop_totals", ShopCounter)
