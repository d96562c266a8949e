"""Read queue depths, list dead letters, redrive or purge them.

A redrive sends each message, then deletes it: a crash in between, or a second call, may leave a
duplicate, which consumers tolerate. The throttle protects a consumer that has just recovered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from plaza.infra.queues import dead_letters, sqs
from plaza.infra.queues.dead_letters import dlq_of
from plaza.infra.queues.sqs import Depth, QueueDown, Received
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import error_fields, record
from plaza.infra.runtime.process import Lazy, LocalCache
from plaza.infra.runtime.settings import settings
from plaza.operate.operations.model import (
    DeadLetter,
    PurgeResult,
    QueueState,
    RedriveResult,
    find_dlq,
    list_queues_with_dlq,
)

MAX_REDRIVE_S = 5.0
MAX_MESSAGES_PER_S = 100
MAX_PER_CALL = int(MAX_REDRIVE_S * MAX_MESSAGES_PER_S)
_MAX_BACKLOG = 10_000
_REDRIVE_VISIBILITY_S = 30
_MAX_LIST_S = 4.0
_LIST_VISIBILITY_S = 10
_AGES_WINDOW_S = 600
_AGES_PERIOD_S = 60

_depths: LocalCache[None, dict[str, Depth]] = LocalCache(1, ttl_s=1.0)
_ages_s: LocalCache[None, dict[str, float]] = LocalCache(1, ttl_s=30.0)


def read_queues(*, with_ages: bool = True) -> list[QueueState]:
    """Return the state of each queue that has a DLQ, by name, at most 1 s old. A call for each
    queue and DLQ, within 1 s; ages once in 30 s. Raises QueueDown."""
    names = list_queues_with_dlq(settings().queues)
    depths = _depths.get_or_load(None, lambda: sqs.measure_all({*names, *map(dlq_of, names)}))
    ages_s = _ages_s.get_or_load(None, lambda: read_oldest_ages(names)) if with_ages else {}
    return [
        QueueState(name, *depths[name], ages_s.get(name), sum(depths[dlq_of(name)]))
        for name in names
    ]


def read_depth_gauges() -> dict[str, float]:
    """Return the backlog and the dead letters of each queue that has a DLQ. Raises QueueDown."""
    return {
        f"{gauge}:{queue.name}": number
        for queue in read_queues(with_ages=False)
        for gauge, number in (
            ("backlog", queue.backlog + queue.in_flight + queue.delayed),
            ("dead_letters", queue.dead_letters),
        )
    }


def list_dead_letters(queue: str, limit: int, operator_id: str) -> list[DeadLetter]:
    """Return up to ``limit`` dead letters of ``queue``, chosen by SQS, the oldest first.

    Takes 4 s at most. Other receivers do not get the messages until they are released, or for 10 s
    if this process dies. The DLQ has no DLQ of its own, so the receives have no effect. Raises
    QueueNotFound, DlqHasConsumer, QueueDown.
    """
    dlq = find_dlq(queue, settings().queues)
    deadline = Deadline.in_s(_MAX_LIST_S)
    received: dict[str, Received] = {}
    try:
        while len(received) < limit and not deadline.has_passed:
            if not (batch := sqs.receive(dlq, _LIST_VISIBILITY_S)):
                break
            received.update((message.id, message) for message in batch)
    finally:
        with contextlib.suppress(QueueDown):  # SQS releases them after the visibility timeout
            sqs.release(dlq, received.values())
    letters = [DeadLetter.of(message) for message in received.values()][:limit]
    record("dead_letters_listed", queue=queue, operator_id=operator_id, listed=len(letters))
    return sorted(letters, key=lambda letter: (letter.sent_ms, letter.id))


def redrive(
    queue: str, operator_id: str, ids: Collection[str] | None = None, limit: int | None = None
) -> RedriveResult:
    """Move dead letters back to ``queue``: all, those with ``ids``, or up to ``limit``.

    Stops after 5 s, about 500 messages moved, or as many received and not chosen; call again while
    ``remaining`` is above 0. Messages that arrive in the DLQ meanwhile stay there, so an unreadable
    one is moved once a call. Raises QueueNotFound, DlqHasConsumer; QueueDown, after which some may
    have been moved.
    """
    dlq = find_dlq(queue, settings().queues)
    message_ids = None if ids is None else set(ids)
    if sqs.measure(queue).backlog > _MAX_BACKLOG:
        record("redrive_refused", queue=queue, operator_id=operator_id)
        return RedriveResult(
            0, sum(sqs.measure(dlq)), tuple(sorted(message_ids or ())), backlog_too_long=True
        )
    moved = 0
    try:
        for message in _take(
            dlq,
            message_ids,
            MAX_PER_CALL if limit is None else limit,
            lambda parcel: dead_letters.redrive(queue, parcel),
        ):
            moved += 1
            if message_ids is not None:
                message_ids.discard(message.id)
    finally:
        chosen = None if ids is None else len(ids)
        record(
            "messages_redriven",
            {"redriven": moved},
            queue=queue,
            operator_id=operator_id,
            chosen=chosen,
        )
    return RedriveResult(moved, sum(sqs.measure(dlq)), tuple(sorted(message_ids or ())))


def purge(queue: str, operator_id: str, ids: Collection[str]) -> PurgeResult:
    """Delete the dead letters of ``queue`` with ``ids``, for ever.

    Stops as ``redrive`` does. Raises QueueNotFound, DlqHasConsumer; QueueDown, after which some may
    have been deleted.
    """
    dlq = find_dlq(queue, settings().queues)
    missing = set(ids)

    def delete(parcel: Sequence[Received]) -> Sequence[Received]:
        sqs.delete(dlq, parcel)
        return parcel

    purged = []
    try:
        for message in _take(dlq, missing, len(missing), delete):
            purged.append(message.id)
            missing.discard(message.id)
    finally:
        record(
            "messages_purged",
            {"purged": len(purged)},
            queue=queue,
            operator_id=operator_id,
            ids=purged,
        )
    return PurgeResult(len(purged), sum(sqs.measure(dlq)), tuple(sorted(missing)))


def _take(
    dlq: str,
    message_ids: Collection[str] | None,
    limit: int,
    process: Callable[[Sequence[Received]], Sequence[Received]],
) -> Iterator[Received]:
    """Yield up to ``limit`` messages that ``process`` took out of the DLQ, ten at a time.

    ``message_ids``: of these only, without those that the caller discards meanwhile. ``process``
    returns what it took; the others are released.
    """
    began_s, began_ms = clock.monotonic_s(), clock.now_s() * 1000
    passed_over: list[Received] = []
    taken_total = 0
    try:
        while (
            taken_total < limit
            and (message_ids is None or message_ids)
            and len(passed_over) < MAX_PER_CALL  # releasing them takes time, too
            and clock.monotonic_s() - began_s < MAX_REDRIVE_S
        ):
            batch = sqs.receive(dlq, _REDRIVE_VISIBILITY_S)
            if not batch:
                break
            chosen = [
                message
                for message in batch
                if message.sent_ms <= began_ms
                and (message_ids is None or message.id in message_ids)
            ][: limit - taken_total]
            passed_over += [message for message in batch if message not in chosen]
            for parcel in sqs.split(chosen, lambda message: sqs.count_bytes(message.body)):
                taken = process(parcel)
                passed_over += [message for message in parcel if message not in taken]
                taken_total += len(taken)
                yield from taken
            clock.sleep(
                max(0.0, taken_total / MAX_MESSAGES_PER_S - (clock.monotonic_s() - began_s))
            )
    finally:
        with contextlib.suppress(QueueDown):  # SQS releases them after the visibility timeout
            sqs.release(dlq, passed_over)


def read_oldest_ages(queues: Sequence[str]) -> dict[str, float]:
    """Return queue -> age in seconds of its oldest message, without queues that have no data.

    Only CloudWatch reports it. Where it can't be reached (a laptop, a VPC without its endpoint)
    the result is empty. One request.
    """
    now_s = clock.now_s()
    metrics: list[Any] = [
        {
            "Id": f"q{index}",
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/SQS",
                    "MetricName": "ApproximateAgeOfOldestMessage",
                    "Dimensions": [
                        {
                            "Name": "QueueName",
                            "Value": settings().queues[queue].rpartition("/")[2],
                        }
                    ],
                },
                "Period": _AGES_PERIOD_S,
                "Stat": "Maximum",
            },
        }
        for index, queue in enumerate(queues)
    ]
    try:
        response = _cloudwatch.get().get_metric_data(
            MetricDataQueries=metrics,
            StartTime=datetime.fromtimestamp(now_s - _AGES_WINDOW_S, UTC),
            EndTime=datetime.fromtimestamp(now_s, UTC),
            ScanBy="TimestampDescending",
        )
    except (BotoCoreError, ClientError) as error:
        record("queue_ages_unavailable", **error_fields(error))
        return {}
    return {
        queues[int(result["Id"][1:])]: float(result["Values"][0])
        for result in response["MetricDataResults"]
        if result["Values"]
    }


def _connect_cloudwatch() -> Any:
    config = Config(connect_timeout=0.3, read_timeout=0.5, retries={"total_max_attempts": 1})
    return botocore.session.get_session().create_client("cloudwatch", config=config)


_cloudwatch: Lazy[Any] = Lazy(_connect_cloudwatch, close=lambda client: client.close())
