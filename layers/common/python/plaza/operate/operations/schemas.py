"""Schemas of the API: stores, breakers, queues, gauges and dead letters, for admins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler.openapi.params import Path, Query
from pydantic import ConfigDict, Field

from plaza.infra.http.schemas import ACCEPT_INTEGRAL_FLOAT, RequestModel, ResponseModel, Time
from plaza.infra.jobs.scheduled_jobs import ScheduledRun
from plaza.operate.operations.breakers import BreakerReport
from plaza.operate.operations.gauges import RETAINED_MIN, Series
from plaza.operate.operations.lag import Lag
from plaza.operate.operations.model import DeadLetter, PurgeResult, QueueState, RedriveResult

QueueName = Annotated[
    str,
    Path(pattern=r"^[a-z_]{1,40}$", description="Name of a queue, as `GET /ops/queues` lists it."),
]

MessageIds = Annotated[
    list[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")]],
    Field(min_length=1, max_length=100),
]

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
    sent_at: Time
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
        MessageIds | None,
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


class PurgeRequest(RequestModel):
    """Which dead letters to delete for ever."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ids": ["059f36b4-87a3-44ab-83d2-661975830a7d"]}]}
    )

    ids: Annotated[
        MessageIds,
        Field(description="Message ids, as the list of dead letters has them."),
    ]


class PurgeResponse(ResponseModel):
    """The result of a purge."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"purged": 1, "remaining": 2, "missing": []}]}
    )

    purged: Annotated[int, Field(description="Messages deleted.")]
    remaining: Annotated[int, Field(description="Approximate number of dead letters left.")]
    missing: Annotated[
        list[str], Field(description="Requested `ids` that were not found by this request.")
    ]

    @classmethod
    def of(cls, purged: PurgeResult) -> PurgeResponse:
        """Returns ``purged`` as the API sends it."""
        return cls(purged=purged.purged, remaining=purged.remaining, missing=list(purged.missing))


class SweepRequest(RequestModel):
    """Which entries of outboxes to send again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"everything": False}]})

    everything: Annotated[
        bool,
        Field(
            description="Also entries that were sent a moment ago, and while the backlog is long."
        ),
    ] = False


class SweepResponse(ResponseModel):
    """The result of a sweep."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reactions": 12, "checkins": 0}]})

    reactions: Annotated[int, Field(description="Reactions that were sent again.")]
    checkins: Annotated[int, Field(description="Check-ins that were sent again.")]


def _at_ms(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)


class BreakerResponse(ResponseModel):
    """The circuit breakers for one dependency: each process has its own."""

    dependency: Annotated[str, Field(description="`Redis`, `MySQL`, `SQS` or `S3`.")]
    state: Annotated[
        Literal["open", "closed"],
        Field(description="`open`: the breaker of at least one process is open."),
    ]
    own: Annotated[
        Literal["closed", "open", "half-open"] | None,
        Field(
            description=(
                "The state in the process that answers; null if it does not use the dependency."
            )
        ),
    ]
    open_in: Annotated[
        dict[str, int],
        Field(description="Functions with open breakers, and in how many of their processes."),
    ]
    last_opened_at: Annotated[Time | None, Field(description="Within the last hour.")]
    last_closed_at: Annotated[Time | None, Field(description="Within the last hour.")]

    @classmethod
    def of(cls, report: BreakerReport) -> BreakerResponse:
        """Returns ``report`` as the API sends it."""
        return cls.model_validate(
            {
                "dependency": report.dependency,
                "state": "open" if report.is_open else "closed",
                "own": report.own,
                "open_in": dict(report.open_in),
                "last_opened_at": _at_ms(report.opened_ms),
                "last_closed_at": _at_ms(report.closed_ms),
            }
        )


class BreakersResponse(ResponseModel):
    """The circuit breakers of all processes."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "complete": True,
                    "items": [
                        {
                            "dependency": "MySQL",
                            "state": "open",
                            "own": "closed",
                            "open_in": {"SaveReactions": 2},
                            "last_opened_at": "2026-11-22T12:00:00.104000Z",
                            "last_closed_at": None,
                        }
                    ],
                }
            ]
        }
    )

    complete: Annotated[
        bool,
        Field(
            description=(
                "False while Redis, which has the reports of the other processes, is unavailable."
            )
        ),
    ]
    items: list[BreakerResponse]

    @classmethod
    def of(cls, reports: Iterable[BreakerReport], is_complete: bool) -> BreakersResponse:
        """Returns ``reports`` as the API sends them."""
        return cls(complete=is_complete, items=[BreakerResponse.of(report) for report in reports])


class ScheduleResponse(ResponseModel):
    """The last run of a schedule that has ended."""

    name: Annotated[str, Field(description="Name of the schedule, such as `sweep_outbox`.")]
    ended_at: Time
    duration_ms: int
    outcome: Literal["succeeded", "failed"]
    error: Annotated[str | None, Field(description="Type of the error; null for a success.")]
    succeeded_at: Annotated[
        Time | None, Field(description="End of the last successful run; null without one.")
    ]
    result: Annotated[
        dict[str, float], Field(description="Numbers that the last successful run returned.")
    ]

    @classmethod
    def of(cls, name: str, run: ScheduledRun) -> ScheduleResponse:
        """Returns ``run`` as the API sends it."""
        return cls.model_validate(
            {
                "name": name,
                "ended_at": _at_ms(run.ended_ms),
                "duration_ms": run.duration_ms,
                "outcome": "failed" if run.error else "succeeded",
                "error": run.error,
                "succeeded_at": _at_ms(run.succeeded_ms),
                "result": dict(run.result),
            }
        )


class LagResponse(ResponseModel):
    """How far the stores, the queues and the schedules are behind."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "queues": [
                        {
                            "name": "reactions",
                            "backlog": 12,
                            "in_flight": 10,
                            "delayed": 0,
                            "oldest_age_s": 1.5,
                            "dead_letters": 0,
                        }
                    ],
                    "gauges": {
                        "outboxes": 3,
                        "outbox_age_s": 0.4,
                        "checkin_outboxes": 0,
                        "checkin_outbox_age_s": 0,
                        "spilled_messages": 0,
                        "binlog_lag_s": 0,
                    },
                    "schedules": [
                        {
                            "name": "sweep_outbox",
                            "ended_at": "2026-11-22T12:00:00.104000Z",
                            "duration_ms": 42,
                            "outcome": "succeeded",
                            "error": None,
                            "succeeded_at": "2026-11-22T12:00:00.104000Z",
                            "result": {"republished": 0},
                        }
                    ],
                }
            ]
        }
    )

    queues: Annotated[
        list[QueueResponse] | None, Field(description="Null while SQS is unavailable.")
    ]
    gauges: Annotated[
        dict[str, float],
        Field(description="Gauges by name, without those whose store is unavailable."),
    ]
    schedules: Annotated[
        list[ScheduleResponse] | None,
        Field(description="Schedules that ran, by name; null while Redis is unavailable."),
    ]

    @classmethod
    def of(cls, lag: Lag) -> LagResponse:
        """Returns ``lag`` as the API sends it."""
        queues, gauges, runs = lag
        return cls(
            queues=None if queues is None else [QueueResponse.of(queue) for queue in queues],
            gauges=gauges,
            schedules=None
            if runs is None
            else [ScheduleResponse.of(name, run) for name, run in sorted(runs.items())],
        )


class GaugeSeriesResponse(ResponseModel):
    """One gauge, with a value for each of the minutes."""

    name: Annotated[str, Field(description="Name of the gauge.")]
    queue: Annotated[str | None, Field(description="Its queue; null for a gauge of no queue.")]
    values: Annotated[
        list[float | None], Field(description="One for each of `minutes`; null without a sample.")
    ]

    @classmethod
    def of(cls, series: Series) -> GaugeSeriesResponse:
        """Returns ``series`` as the API sends it."""
        return cls(name=series.name, queue=series.queue, values=series.values)


class SeriesResponse(ResponseModel):
    """Samples of gauges, one a minute."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "minutes": ["2026-11-22T12:00:00Z", "2026-11-22T12:01:00Z"],
                    "series": [
                        {"name": "backlog", "queue": "reactions", "values": [12, None]},
                        {"name": "reactions_saved_per_min", "queue": None, "values": [840, None]},
                    ],
                }
            ]
        }
    )

    minutes: Annotated[
        list[Time], Field(description="Begin of each minute; the last is the current one.")
    ]
    series: Annotated[list[GaugeSeriesResponse], Field(description="By name and queue.")]

    @classmethod
    def of(cls, first_minute: int, minutes: int, series: Sequence[Series]) -> SeriesResponse:
        """Returns series from ``first_minute`` since 1970 on as the API sends them."""
        return cls(
            minutes=[
                datetime.fromtimestamp(minute * 60, UTC)
                for minute in range(first_minute, first_minute + minutes)
            ],
            series=[GaugeSeriesResponse.of(gauge) for gauge in series],
        )


Minutes = Annotated[
    int, Query(ge=1, le=RETAINED_MIN, description="How many minutes, with the current one.")
]
