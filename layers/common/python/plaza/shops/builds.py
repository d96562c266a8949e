"""Work on all shops in bounded steps: filter and places are built, everything is told anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from plaza.infra import builds
from plaza.infra.builds import BEGUN, FILLED, FINISHED, Builder, Stepped
from plaza.shops import mysql_shops, redis_shops, refreshing
from plaza.shops.queues import SHOPS
from plaza.shops.shops import EVERYTHING, FILTER, Placed, Refresh, Step

__all__ = ["PAGE", "PAGES_PER_STEP", "SHOPS", "work_through"]

T = TypeVar("T")

PAGE = 1_000
PAGES_PER_STEP = 50


@SHOPS.consumer
def work_through(messages: Sequence[Refresh | Step]) -> None:
    """Refresh all shops that the messages name, and take each walk one step further.

    Safe to repeat. Raises MysqlDown, RedisDown, QueueDown.
    """
    refreshes = [message for message in messages if isinstance(message, Refresh)]
    if refreshes:
        refreshing.refresh(sorted({shop_id for one in refreshes for shop_id in one.shop_ids}))
        if not all(one.shop_ids for one in refreshes):
            refreshing.refresh_types()
    for message in messages:
        if isinstance(message, Step):
            _take(message)


def _take(step: Step) -> None:
    """A page after the other, and when it was many, the rest through the queue again."""
    if step.walk == FILTER:
        done = _go_on(step, _FILTER)
    elif step.walk == EVERYTHING:
        done = _go_on(step, _EVERYTHING)
    else:
        done = _go_on(step, _places(step.type_id))
    if done.code == FILLED:
        SHOPS.send(step._replace(build=done.build, after_id=done.after_id))


def _go_on(step: Step, builder: Builder[T]) -> Stepped:
    return builds.step(builder, step.build, step.after_id, PAGE, PAGES_PER_STEP)


def _places(type_id: int | None) -> Builder[Placed]:
    """The places of a type, of all shops if None."""
    return Builder(
        f"places of {'all shops' if type_id is None else type_id}",
        lambda build: redis_shops.begin_places(type_id, build),
        lambda after_id, limit: mysql_shops.read_places(type_id, after_id, limit),
        lambda build, placed, last: redis_shops.fill_places(type_id, build, placed, last),
        lambda one: one.shop_id,
    )


def _tell_page(_: str, shop_ids: Sequence[int], last: bool) -> str:
    """Tell Redis of a page of all shops. What was read before is older: their versions move."""
    if shop_ids:
        mysql_shops.bump_page(shop_ids[0] - 1, shop_ids[-1])
    refreshing.refresh(shop_ids)
    return FINISHED if last else FILLED


_FILTER: Builder[int] = Builder(
    "filter of shops",
    lambda build: redis_shops.SHOP_IDS.begin(build, mysql_shops.count()),
    lambda after_id, limit: mysql_shops.read_ids(after_id, limit),
    lambda build, shop_ids, last: redis_shops.SHOP_IDS.fill(build, shop_ids, last),
    int,
)
_EVERYTHING: Builder[int] = Builder(
    "everything of shops",
    lambda _: BEGUN,
    lambda after_id, limit: mysql_shops.read_ids(after_id, limit),
    _tell_page,
    int,
)
