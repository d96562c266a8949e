"""Models of the operations API."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from plaza.infra.http import ACCEPT_INTEGRAL_FLOAT, RequestModel, ResponseModel
from plaza.operations.model import DeadLetter, QueueState, RedriveResult


class QueueResponse(ResponseModel):
    """A queue and about how many messages wait (``backlog``), are received and not yet deleted
    (``in_flight``), are delayed or are dead letters. ``oldest_age_s``: age of the oldest message in
    seconds, null if unknown."""

    name: str
    backlog: int
    in_flight: int
    delayed: int
    oldest_age_s: float | None
    dead_letters: int

    @classmethod
    def of(cls, state: QueueState) -> QueueResponse:
        return cls(
            name=state.name,
            backlog=state.backlog,
            in_flight=state.in_flight,
            delayed=state.delayed,
            oldest_age_s=state.oldest_age_s,
            dead_letters=state.dead_letters,
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
    """The messages to redrive: those with ``ids``, up to ``limit`` of them, or all."""

    ids: (
        Annotated[
            list[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")]],
            Field(min_length=1, max_length=100),
        ]
        | None
    ) = None
    limit: Annotated[int, Field(ge=1, le=100_000), ACCEPT_INTEGRAL_FLOAT] | None = None


class RedriveResponse(ResponseModel):
    """``moved``: messages redriven. ``remaining``: about how many are still dead-lettered; call
    again to redrive them. ``missing``: those of ``ids`` that were not found. ``backlog_too_long``:
    nothing was redriven because the queue has more than 10,000 messages."""

    moved: int
    remaining: int
    missing: list[str]
    backlog_too_long: bool

    @classmethod
    def of(cls, redriven: RedriveResult) -> RedriveResponse:
        return cls(
            moved=redriven.moved,
            remaining=redriven.remaining,
            missing=list(redriven.missing),
            backlog_too_long=redriven.backlog_too_long,
        )
