"""SQS: sending facts, and what a consumer does with a batch that came.

A batch has two failures. A record that can't be read goes to the DLQ alone and at once, because
trying again would not make it readable. A failure of storage fails the batch, which waits longer
after each try (the visibility of its messages) and ends in the DLQ after five.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError
from pybreaker import CircuitBreaker, CircuitBreakerError

from plaza.infra.errors import Unavailable
from plaza.infra.observability import cause, record
from plaza.infra.settings import settings

T = TypeVar("T")

BACK_OFF_S = (5, 30, 120, 600)
MOST_RECEIVES = len(BACK_OFF_S) + 1
_BATCH = 10  # the most messages that one SQS call takes
_MOST_SPLITS = 40


class QueueDown(Unavailable):
    """SQS can't be reached, or didn't take the message."""


class BadRecord(Exception):
    """A message that can't be read, however often it is tried."""


class Failure(TypedDict):
    """One message of a batch that is to be delivered again."""

    itemIdentifier: str


class PartialBatchResponse(TypedDict):
    """What Lambda expects of a consumer with ReportBatchItemFailures."""

    batchItemFailures: list[Failure]


class Message(NamedTuple, Generic[T]):
    """A message of a batch and what it says."""

    record: dict[str, Any]
    said: T


breaker = CircuitBreaker(fail_max=5, reset_timeout=2, name="sqs", throw_new_error_on_trip=False)

_client: Any = None


def client() -> Any:
    """The SQS client of this process: one try of two seconds. ``_guarded`` knows when to repeat."""
    global _client
    if _client is None:
        config = Config(connect_timeout=1, read_timeout=2, retries={"total_max_attempts": 1})
        _client = botocore.session.get_session().create_client("sqs", config=config)
    return _client


def send(queue: str, body: str, delay_s: int = 0) -> None:
    """One message to the queue named ``queue``. Raises QueueDown."""
    _guarded(
        lambda: client().send_message(
            QueueUrl=settings().queues[queue], MessageBody=body, DelaySeconds=delay_s
        )
    )


def send_all(queue: str, bodies: Sequence[str]) -> int:
    """Many messages, ten a call; how many SQS took. Raises QueueDown when it can't be reached."""
    taken = 0
    for chunk in _chunks(bodies):
        entries: Any = [{"Id": str(i), "MessageBody": body} for i, body in enumerate(chunk)]
        answer = _guarded(
            lambda entries=entries: client().send_message_batch(  # type: ignore[misc]
                QueueUrl=settings().queues[queue], Entries=entries
            )
        )
        taken += len(answer.get("Successful", []))
    return taken


def backlog(queue: str) -> int:
    """About how many messages wait to be received. Raises QueueDown."""
    return _count(queue, "ApproximateNumberOfMessages")


def unfinished(queue: str) -> int:
    """About how many messages wait, are put off, or are in work. Raises QueueDown."""
    return _count(
        queue,
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    )


def _count(queue: str, *names: str) -> int:
    answer = _guarded(
        lambda: client().get_queue_attributes(
            QueueUrl=settings().queues[queue], AttributeNames=list(names)
        )
    )
    return sum(int(answer["Attributes"].get(name, 0)) for name in names)


def consume(
    event: dict[str, Any],
    queue: str,
    read: Callable[[str], T],
    work: Callable[[list[T]], None],
) -> PartialBatchResponse:
    """Read each message of ``event``, let ``work`` do all at once; say which to deliver again.

    ``read`` raises BadRecord for a message that goes to the DLQ. ``work`` raises Unavailable when
    the whole batch should come again. Any other error may be the fault of one message: the batch is
    halved until it stands alone, so that its neighbours are saved.
    """
    good: list[Message[T]] = []
    failed: list[dict[str, Any]] = []
    for message in event["Records"]:
        try:
            good.append(Message(message, read(message["body"])))
        except Exception as error:  # whatever it is, it will be the same the next time
            if not _bury(queue, message, error):
                failed.append(message)
    failed += _work_through(queue, good, work)
    return {"batchItemFailures": [{"itemIdentifier": m["messageId"]} for m in failed]}


def _work_through(
    queue: str, messages: list[Message[T]], work: Callable[[list[T]], None]
) -> list[dict[str, Any]]:
    """The messages that could not be done."""
    failed: list[dict[str, Any]] = []
    todo, splits = [messages] if messages else [], 0
    while todo:
        part = todo.pop()
        try:
            work([message.said for message in part])
        except Exception as error:
            if not isinstance(error, Unavailable) and len(part) > 1 and splits < _MOST_SPLITS:
                splits += 1
                half = len(part) // 2
                todo += [part[half:], part[:half]]
                continue
            records = [message.record for message in part]
            _back_off(queue, records, error)
            failed += records
    return failed


def _receives(message: dict[str, Any]) -> int:
    return int(message["attributes"]["ApproximateReceiveCount"])


def _back_off(queue: str, messages: Sequence[dict[str, Any]], error: Exception) -> None:
    """Say why they failed, and hide them for as long as their number of receives asks for."""
    given_up = sum(_receives(message) >= MOST_RECEIVES for message in messages)
    record(
        "batch_failed",
        {"failed": len(messages), "given_up": given_up},
        queue=queue,
        receives=max(map(_receives, messages)),
        **cause(error),
    )
    for chunk in _chunks(messages):
        entries: Any = [
            {
                "Id": str(i),
                "ReceiptHandle": message["receiptHandle"],
                # After the last try it goes to the DLQ when it is next received: let that be now.
                "VisibilityTimeout": ([*BACK_OFF_S, 0])[min(_receives(message), MOST_RECEIVES) - 1],
            }
            for i, message in enumerate(chunk)
        ]
        try:
            _guarded(
                lambda entries=entries: client().change_message_visibility_batch(  # type: ignore[misc]
                    QueueUrl=settings().queues[queue], Entries=entries
                )
            )
        except QueueDown as down:  # then the queue's own visibility timeout has to do
            record("back_off_failed", queue=queue, **cause(down))
            return


def _bury(queue: str, message: dict[str, Any], error: Exception) -> bool:
    """Move a message that can't be read to the DLQ; False when SQS did not take it."""
    try:
        _guarded(
            lambda: client().send_message(
                QueueUrl=settings().queues[f"{queue}_dlq"],
                MessageBody=message["body"],
                MessageAttributes={
                    "cause": {
                        "DataType": "String",
                        "StringValue": _plain(error),
                    },
                    "message_id": {"DataType": "String", "StringValue": message["messageId"]},
                },
            )
        )
    except QueueDown as down:
        record("bury_failed", queue=queue, message_id=message["messageId"], **cause(down))
        return False
    record(
        "record_buried", {"buried": 1}, queue=queue, message_id=message["messageId"], **cause(error)
    )
    return True


def _plain(error: Exception) -> str:
    """The text of ``error`` in characters that SQS takes."""
    return str(error).encode("unicode_escape").decode()[:256] or "unreadable"


def _chunks(items: Sequence[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while chunk := list(islice(rest, _BATCH)):
        yield chunk


def _guarded(call: Callable[[], T]) -> T:
    try:
        return breaker.call(lambda: _twice_unless_silent(call))
    except CircuitBreakerError:
        raise QueueDown("SQS is away, not asked") from None
    except (BotoCoreError, ClientError) as error:
        raise QueueDown(f"SQS is away: {type(error).__name__}") from error


def _twice_unless_silent(call: Callable[[], T]) -> T:
    """A connection that idled is lost, a refusal passes: once more then, soon. Who is silent has
    cost a timeout; whoever waits for us does not wait for a second one."""
    try:
        return call()
    except ConnectionClosedError:
        pass
    except ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if status < 500 and "Throttl" not in error.response["Error"]["Code"]:
            raise
    time.sleep(random.uniform(0.02, 0.1))
    return call()
