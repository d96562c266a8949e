"""Jobs on all shops in bounded steps: build the filter, build places, refresh all projections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from plaza.commerce.shops import mysql_shops, redis_store, refresh
from plaza.commerce.shops.model import EVERYTHING, FILTER, ShopJobStep, ShopPlace, ShopRefresh
from plaza.commerce.shops.queues import SHOPS
from plaza.infra.derived import builds
from plaza.infra.derived.builds import BEGUN, FILLED, FINISHED, Builder, BuildProgress

__all__ = ["PAGE", "PAGES_PER_STEP", "SHOPS", "run_jobs"]

T = TypeVar("T")

PAGE = 1_000
PAGES_PER_STEP = 50


@SHOPS.consumer
def run_jobs(messages: Sequence[ShopRefresh | ShopJobStep]) -> None:
    """Refresh the shops of the messages, and run one step of each job. Safe to repeat. Raises
    MysqlDown, RedisDown, QueueDown."""
    refreshes = [message for message in messages if isinstance(message, ShopRefresh)]
    if refreshes:
        refresh.refresh(
            sorted({shop_id for shop_message in refreshes for shop_id in shop_message.shop_ids})
        )
        if not all(shop_message.shop_ids for shop_message in refreshes):
            refresh.refresh_types()
    for message in messages:
        if isinstance(message, ShopJobStep):
            _run_step(message)


def _run_step(step: ShopJobStep) -> None:
    """Process up to PAGES_PER_STEP pages, and queue the next step if shops are left."""
    if step.job == FILTER:
        progress = _advance(step, _FILTER)
    elif step.job == EVERYTHING:
        progress = _advance(step, _EVERYTHING)
    else:
        progress = _advance(step, _PLACES)
    if progress.code == FILLED:
        SHOPS.send(ShopJobStep(step.job, progress.build, progress.after_id))


def _advance(step: ShopJobStep, builder: Builder[T]) -> BuildProgress:
    return builds.advance(builder, step.build, step.after_id, PAGE, PAGES_PER_STEP)


def _project_page(_: str, shop_ids: Sequence[int], last: bool) -> str:
    """Raise the versions of a page of shops, so that older reads are refused, and refresh it."""
    if shop_ids:
        mysql_shops.bump_page_versions(shop_ids[0] - 1, shop_ids[-1])
    refresh.refresh(shop_ids)
    return FINISHED if last else FILLED


_FILTER: Builder[int] = Builder(
    "filter of shops",
    lambda build: redis_store.SHOP_IDS.begin(build, mysql_shops.count()),
    lambda after_id, limit: mysql_shops.read_ids(after_id, limit),
    lambda build, shop_ids, last: redis_store.SHOP_IDS.fill(build, shop_ids, last),
    int,
)
_PLACES: Builder[ShopPlace] = Builder(
    "places of shops",
    lambda build: redis_store.begin_places(build),
    lambda after_id, limit: mysql_shops.read_places(after_id, limit),
    lambda build, placed, last: redis_store.fill_places(
        build, placed, refresh.read_type_ids(), last
    ),
    lambda refresh_message: refresh_message.shop_id,
)
_EVERYTHING: Builder[int] = Builder(
    "refresh of all shops",
    lambda _: BEGUN,
    lambda after_id, limit: mysql_shops.read_ids(after_id, limit),
    _project_page,
    int,
)
