"""Schemas of the API: stores, queues and dead letters, for admins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from plaza.infra.http import ACCEPT_INTEGRAL_FLOAT, RequestModel, ResponseModel
from plaza.operations.model import DeadLetter, QueueState, RedriveResult

State = Literal["up", "down"]


class HealthResponse(ResponseModel):
    """The state of the stores. Plaza works with limits while some of them are down."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"status": "up", "redis": "up", "mysql": "up", "queue": "up"}]
        }
    )

    status: Annotated[
        Literal["up", "degraded", "down"],
        Field(description="`degraded`: some stores are down. `down`: Redis and MySQL are."),
    ]
    redis: State
    mysql: State
    queue: State


class QueueResponse(ResponseModel):
    """The state of a queue. SQS reports approximate counts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "reactions",
                    "backlog": 12,
                    "in_flight": 10,
                    "delayed": 0,
                    "oldest_age_s": 1.5,
                    "dead_letters": 2,
                }
            ]
        }
    )

    name: str
    backlog: Annotated[int, Field(description="Messages that wait for a consumer.")]
    in_flight: Annotated[int, Field(description="Messages received and not yet deleted.")]
    delayed: Annotated[int, Field(description="Messages that are delivered only after a delay.")]
    oldest_age_s: Annotated[
        float | None,
        Field(description="Age of the oldest message in seconds; null if it is not known."),
    ]
    dead_letters: Annotated[int, Field(description="Messages in the dead-letter queue.")]

    @classmethod
    def of(cls, state: QueueState) -> QueueResponse:
        """Returns ``state`` as the API sends it."""
        return cls(**state._asdict())


class DeadLetterResponse(ResponseModel):
    """A message in a dead-letter queue."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "059f36b4-87a3-44ab-83d2-661975830a7d",
                    "sent_at": "2026-11-22T12:00:00.518000Z",
                    "receives": 6,
                    "cause": None,
                    "request_id": "JKJaXmPLvHcESHA=",
                    "body": {"kind": "like", "target_type": "post", "target_id": 9000001},
                }
            ]
        }
    )

    id: Annotated[str, Field(description="The message id of SQS.")]
    sent_at: datetime
    receives: Annotated[int, Field(description="How many times a consumer received it.")]
    cause: Annotated[
        str | None, Field(description="Why the message is invalid; null if it is not known.")
    ]
    request_id: Annotated[
        str | None, Field(description="`X-Request-Id` of the request that sent it, if known.")
    ]
    body: Annotated[
        Any,
        Field(
            description=(
                "The message, decoded if it is JSON. Values that may be phone numbers, tokens or "
                "codes are redacted."
            )
        ),
    ]

    @classmethod
    def of(cls, letter: DeadLetter) -> DeadLetterResponse:
        """Returns ``letter`` as the API sends it."""
        return cls(
            id=letter.id,
            sent_at=datetime.fromtimestamp(letter.sent_ms / 1000, UTC),
            receives=letter.receives,
            cause=letter.cause,
            request_id=letter.request_id,
            body=letter.body,
        )


class RedriveRequest(RequestModel):
    """Which dead letters to redrive. An empty object means all of them."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"limit": 500}]})

    ids: Annotated[
        Annotated[
            list[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")]],
            Field(min_length=1, max_length=100),
        ]
        | None,
        Field(description="Message ids; null for any message."),
    ] = None
    limit: Annotated[
        Annotated[int, Field(ge=1, le=100_000), ACCEPT_INTEGRAL_FLOAT] | None,
        Field(description="Maximum number of messages to redrive; null for no limit."),
    ] = None


class RedriveResponse(ResponseModel):
    """The result of a redrive."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"moved": 500, "remaining": 120, "missing": [], "delayed": False}]
        }
    )

    moved: Annotated[int, Field(description="Messages moved back to the queue.")]
    remaining: Annotated[
        int, Field(description="Approximate number of dead letters left. Repeat the request.")
    ]
    missing: Annotated[
        list[str], Field(description="Requested `ids` that were not found by this request.")
    ]
    delayed: Annotated[
        bool,
        Field(description="True if the backlog is too long: no more messages are moved for now."),
    ]

    @classmethod
    def of(cls, redriven: RedriveResult) -> RedriveResponse:
        """Returns ``redriven`` as the API sends it."""
        return cls(
            moved=redriven.moved,
            remaining=redriven.remaining,
            missing=list(redriven.missing),
            delayed=redriven.backlog_too_long,
        )
