"""What clients send and get about reactions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from plaza.infra.http import RequestModel, ResponseModel
from plaza.infra.sql import from_us
from plaza.reactions.model import Outcome, ReactedTarget, Reactor

IdText = Annotated[
    str, Field(pattern=r"^[1-9][0-9]{0,18}$", description="a 63-bit id, as a string")
]
TargetType = Literal["post", "comment", "review"]


class LikeResponse(ResponseModel):
    """A like as it is now. ``likes`` and ``changed`` are null when ``exact`` is false: the wish is
    on its way, and the number will be right when it has arrived."""

    liked: bool
    likes: int | None
    changed: bool | None
    exact: bool

    @classmethod
    def of(cls, outcome: Outcome) -> LikeResponse:
        """What to answer to ``outcome``."""
        return cls(
            liked=outcome.on, likes=outcome.total, changed=outcome.changed, exact=outcome.exact
        )


class CollectResponse(ResponseModel):
    """A collect as it is now; as with ``LikeResponse``."""

    collected: bool
    collects: int | None
    changed: bool | None
    exact: bool

    @classmethod
    def of(cls, outcome: Outcome) -> CollectResponse:
        """What to answer to ``outcome``."""
        return cls(
            collected=outcome.on,
            collects=outcome.total,
            changed=outcome.changed,
            exact=outcome.exact,
        )


class Liker(ResponseModel):
    """Somebody who likes it, and since when."""

    user_id: str
    at: datetime

    @classmethod
    def of(cls, reactor: Reactor) -> Liker:
        """What to answer about ``reactor``."""
        return cls(user_id=str(reactor.actor_id), at=from_us(reactor.version_us))


class ReactedItem(ResponseModel):
    """Something that I reacted to, and when."""

    type: TargetType
    id: str
    at: datetime

    @classmethod
    def of(cls, reacted: ReactedTarget) -> ReactedItem:
        """What to answer about ``reacted``."""
        target_type, target_id = reacted.target
        return cls.model_validate(
            {"type": target_type, "id": str(target_id), "at": from_us(reacted.version_us)}
        )


class TargetRef(RequestModel):
    """What is asked about."""

    type: TargetType
    id: IdText


class ReactionsRequest(RequestModel):
    """Up to 100 targets."""

    targets: Annotated[list[TargetRef], Field(min_length=1, max_length=100)]


class ViewerState(ResponseModel):
    """What I did to it; ``collected`` is null for what can't be collected."""

    liked: bool
    collected: bool | None


class TargetTotals(ResponseModel):
    """The totals of one target; ``mine`` is null for callers without a session."""

    type: TargetType
    id: str
    likes: int
    collects: int | None
    mine: ViewerState | None


class ReactionsResponse(ResponseModel):
    """The totals, in the order of the question. ``exact`` is false while Redis is away."""

    items: list[TargetTotals]
    exact: bool
