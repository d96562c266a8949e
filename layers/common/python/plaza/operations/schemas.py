"""Models of the operations API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from plaza.infra.http import ACCEPT_INTEGRAL_FLOAT, RequestModel, ResponseModel
from plaza.operations.model import DeadLetter, QueueState, RedriveResult


class QueueResponse(ResponseModel):
    """A queue and about how many messages wait, are in work (received and not yet deleted), are
    delayed or are dead letters. ``oldest_age_s``: age of the oldest in seconds, null if unknown."""

    name: str
    waiting: int
    in_work: int
    delayed: int
    oldest_age_s: float | None
    dead: int

    @classmethod
    def of(cls, state: QueueState) -> QueueResponse:
        return cls(
            name=state.name,
            waiting=state.backlog,
            in_work=state.in_flight,
            delayed=state.delayed,
            oldest_age_s=state.oldest_age_s,
            dead=state.dead_letters,
        )


class DeadLetterResponse(ResponseModel):
    """A message of a dead-letter queue. ``body``: its content, decoded if it is JSON, with phone
    numbers, tokens and codes redacted. ``cause``: why it was dead-lettered, null if not recorded.
    """

    id: str
    sent_at: datetime
    receives: int
    cause: str | None
    request_id: str | None
    body: Any

    @classmethod
    def of(cls, letter: DeadLetter) -> DeadLetterResponse:
        return cls(
            id=letter.id,
            sent_at=datetime.fromtimestamp(letter.sent_ms / 1000, UTC),
            receives=letter.receives,
            cause=letter.cause,
            request_id=letter.request_id,
            body=letter.body,
        )


class RedriveRequest(RequestModel):
    """The messages to redrive: those with ``ids``, up to ``most`` of them, or all."""

    ids: (
        Annotated[
            list[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")]],
            Field(min_length=1, max_length=100),
        ]
        | None
    ) = None
    most: Annotated[int, Field(ge=1, le=100_000), ACCEPT_INTEGRAL_FLOAT] | None = None


class RedriveResponse(ResponseModel):
    """``moved``: messages redriven. ``left``: about how many remain; call again to redrive them.
    ``missing``: those of ``ids`` that were not found. ``held_back``: nothing was redriven because
    the queue has more than 10,000 messages."""

    moved: int
    left: int
    missing: list[str]
    held_back: bool

    @classmethod
    def of(cls, redriven: RedriveResult) -> RedriveResponse:
        return cls(
            moved=redriven.moved,
            left=redriven.remaining,
            missing=list(redriven.missing),
            held_back=redriven.backlog_too_long,
        )
