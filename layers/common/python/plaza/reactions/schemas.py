"""Resources of the reactions API."""

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
    """The state of a like. ``likes`` and ``changed`` are null when ``exact`` is false: the request
    is accepted and not counted yet."""

    liked: bool
    likes: int | None
    changed: bool | None
    exact: bool

    @classmethod
    def of(cls, outcome: Outcome) -> LikeResponse:
        """Return the response for ``outcome``."""
        return cls(
            liked=outcome.on, likes=outcome.total, changed=outcome.changed, exact=outcome.exact
        )


class CollectResponse(ResponseModel):
    """The state of a collect. ``collects`` and ``changed`` are null when ``exact`` is false: the
    request is accepted and not counted yet."""

    collected: bool
    collects: int | None
    changed: bool | None
    exact: bool

    @classmethod
    def of(cls, outcome: Outcome) -> CollectResponse:
        """Return the response for ``outcome``."""
        return cls(
            collected=outcome.on,
            collects=outcome.total,
            changed=outcome.changed,
            exact=outcome.exact,
        )


class Liker(ResponseModel):
    """A user who likes the target, and the time of the like."""

    user_id: str
    at: datetime

    @classmethod
    def of(cls, reactor: Reactor) -> Liker:
        """Return the item for ``reactor``."""
        return cls(user_id=str(reactor.actor_id), at=from_us(reactor.version_us))


class ReactedItem(ResponseModel):
    """A target that the caller reacted to, and the time of the reaction."""

    type: TargetType
    id: str
    at: datetime

    @classmethod
    def of(cls, reacted: ReactedTarget) -> ReactedItem:
        """Return the item for ``reacted``."""
        target_type, target_id = reacted.target
        return cls.model_validate(
            {"type": target_type, "id": str(target_id), "at": from_us(reacted.version_us)}
        )


class TargetRef(RequestModel):
    """A post, comment or review."""

    type: TargetType
    id: IdText


class ReactionsRequest(RequestModel):
    """The targets to return totals of, at most 100."""

    targets: Annotated[list[TargetRef], Field(min_length=1, max_length=100)]


class ViewerState(ResponseModel):
    """The caller's reactions to the target; ``collected`` is null unless it is a post."""

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
    """The totals, in the order of the request. ``exact`` is false when they may be behind."""

    items: list[TargetTotals]
    exact: bool
