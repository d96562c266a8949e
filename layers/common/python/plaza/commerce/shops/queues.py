"""The queue of refreshes of shops, and of steps of jobs on all shops."""

from __future__ import annotations

from typing import Annotated, Literal

from plaza.commerce.shops.model import (
    EVERYTHING,
    MAX_BUILD,
    MAX_SHOPS_PER_MESSAGE,
    ShopJobStep,
    ShopRefresh,
)
from plaza.infra.queues.messages import InvalidMessage, message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.runtime.codec import ID, MAX_ID, Meta, Struct


class _Body(Struct, frozen=True):
    shop_ids: Annotated[list[ID], Meta(max_length=MAX_SHOPS_PER_MESSAGE)] | None = None
    job: Literal["filter", "places", "everything"] | None = None
    build: Annotated[str, Meta(max_length=MAX_BUILD)] = ""
    after_id: Annotated[int, Meta(ge=0, le=MAX_ID)] = 0


def _unpack(body: _Body) -> ShopRefresh | ShopJobStep:
    if body.shop_ids is not None:
        return ShopRefresh(body.shop_ids)
    if body.job is None:
        raise InvalidMessage("neither shop_ids nor a job")
    if body.after_id and not body.build and body.job != EVERYTHING:
        # A new build would begin at after_id and lack the shops before it.
        raise InvalidMessage("after_id without the name of a build")
    return ShopJobStep(body.job, body.build, body.after_id)


SHOPS: Queue[ShopRefresh | ShopJobStep] = Queue(
    message_codec("shops", _Body, _unpack), visibility_s=361
)
