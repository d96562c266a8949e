"""What admins send and get about queues."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from plaza.infra.http import ACCEPT_INTEGRAL_FLOAT, RequestModel, ResponseModel
from plaza.operations.model import DeadLetter, QueueState, RedriveResult


class QueueResponse(ResponseModel):
    """A queue, about: messages that wait, are in work, are put off, were given up (``dead``).

    ``oldest_age_s``: the age of the oldest in seconds, null where nobody says.
    """

    name: str
    waiting: int
    in_work: int
    delayed: int
    oldest_age_s: float | None
    dead: int

    @classmethod
    def of(cls, state: QueueState) -> QueueResponse:
        """``state`` as it is sent."""
        return cls(
            name=state.name,
            waiting=state.backlog,
            in_work=state.in_flight,
            delayed=state.delayed,
            oldest_age_s=state.oldest_age_s,
            dead=state.dead_letters,
        )


class DeadLetterResponse(ResponseModel):
    """A message that was given up. ``body``: what it says, JSON decoded, what could be a phone
    number, a token or a code left out. ``cause``: why it could not be read, null if it could."""

    id: str
    sent_at: datetime
    receives: int
    cause: str | None
    request_id: str | None
    body: Any

    @classmethod
    def of(cls, letter: DeadLetter) -> DeadLetterResponse:
        """``letter`` as it is sent."""
        return cls(
            id=letter.id,
            sent_at=datetime.fromtimestamp(letter.sent_ms / 1000, UTC),
            receives=letter.receives,
            cause=letter.cause,
            request_id=letter.request_id,
            body=letter.body,
        )


class RedriveRequest(RequestModel):
    """What to send back: ``ids`` of messages, or ``most`` of them; neither: all."""

    ids: (
        Annotated[
            list[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")]],
            Field(min_length=1, max_length=100),
        ]
        | None
    ) = None
    most: Annotated[int, Field(ge=1, le=100_000), ACCEPT_INTEGRAL_FLOAT] | None = None


class RedriveResponse(ResponseModel):
    """How many were sent back. ``left``: about how many are dead still: ask again for them.

    ``missing``: of ``ids``, those that were not met. ``held_back``: the queue is behind, so nothing
    was sent.
    """

    moved: int
    left: int
    missing: list[str]
    held_back: bool

    @classmethod
    def of(cls, redriven: RedriveResult) -> RedriveResponse:
        """``redriven`` as it is sent."""
        return cls(
            moved=redriven.moved,
            left=redriven.remaining,
            missing=list(redriven.missing),
            held_back=redriven.backlog_too_long,
        )
