"""SQS: sending facts, and what a consumer does with a batch that came.

A batch has three failures. A record that can't be read goes to the DLQ alone and at once, because
trying again would not make it readable. A batch that meets something that is away waits for it, for
hours if need be. A message that fails by itself is tried a few times. ``retries`` has the rules.

A message that is sent while a request is answered carries the id of that request, as an attribute
and not in its body: so every queue has it, and whoever reads the body need not know.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError
from pybreaker import CircuitBreakerError

from plaza.infra.breakers import new_breaker
from plaza.infra.errors import Unavailable
from plaza.infra.observability import REQUEST_ID, cause, present_request, record
from plaza.infra.retries import (
    ATTEMPTS,
    FIRST_SENT,
    WAITING_SINCE,
    Action,
    Decision,
    Delivery,
    RetryPolicy,
    decide,
    read_delivery,
    read_sent_ms,
)
from plaza.infra.settings import settings

T = TypeVar("T")

REQUEST = "request_id"  # attribute of a message that was sent while a request was answered
CAUSE, ORIGINAL = "cause", "message_id"  # of one that was buried
_BATCH = 10  # the most messages that one SQS call takes
MAX_CALL_BYTES = 262_144  # of one call, attributes included; SQS took no more for many years
_ATTRIBUTES_BYTES = 1_024  # at most, of one message
_MOST_SPLITS = 40
_RETRY = RetryPolicy()
_OF_A_LIFE = (CAUSE, ORIGINAL, ATTEMPTS, WAITING_SINCE)  # attributes that a redrive leaves behind
_DEPTHS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


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


class Depth(NamedTuple):
    """About how many messages of a queue wait, are in work, and are put off."""

    waiting: int
    in_work: int
    delayed: int


class Held(NamedTuple):
    """A message that was received by somebody who looks at queues. ``receives`` counts this."""

    id: str
    receipt: str
    body: str
    sent_ms: int
    receives: int
    attributes: Mapping[str, str]


class Outgoing(NamedTuple):
    """A message to send, and the id of the request that it is for."""

    body: str
    request_id: str | None


class Message(NamedTuple, Generic[T]):
    """A message of a batch and what it says."""

    record: dict[str, Any]
    said: T


breaker = new_breaker("sqs")

_client: Any = None


def client() -> Any:
    """The SQS client of this process: one try of two seconds. ``_guarded`` knows when to repeat."""
    global _client
    if _client is None:
        config = Config(
            connect_timeout=1,
            read_timeout=2,
            retries={"total_max_attempts": 1},
            parameter_validation=False,  # a tenth of a call's CPU, and the types are ours
        )
        _client = botocore.session.get_session().create_client("sqs", config=config)
    return _client


def send(queue: str, body: str, delay_s: int = 0) -> None:
    """One message to the queue named ``queue``. Raises QueueDown."""
    _guarded(
        lambda: client().send_message(
            QueueUrl=settings().queues[queue],
            MessageBody=body,
            DelaySeconds=delay_s,
            **_of_request(present_request()),
        )
    )


def send_all(queue: str, messages: Sequence[str | Outgoing], until_s: float | None = None) -> int:
    """Send many messages; return how many SQS took. A body alone is for the present request.

    Up to ten messages and 256 KiB a call. What SQS refuses for the moment is sent once more; what
    it refuses then is left out, and counted by ``messages_refused``. No call begins after
    ``until_s`` (time.monotonic()). Raises QueueDown when SQS can't be reached: some may have been
    sent.
    """
    taken = 0
    outgoing = [m if isinstance(m, Outgoing) else Outgoing(m, present_request()) for m in messages]
    for part in _sendable(outgoing, lambda message: _count_bytes(message.body)):
        if until_s is not None and time.monotonic() >= until_s:
            break
        refused = _send_batch(queue, part)
        if passing := [message for message, entry in refused if not entry.get("SenderFault")]:
            lasting = [(message, entry) for message, entry in refused if entry.get("SenderFault")]
            refused = [*lasting, *_send_batch(queue, passing)]
        if refused:
            codes = sorted({str(entry.get("Code", "")) for _, entry in refused})
            record("messages_refused", {"refused": len(refused)}, queue=queue, codes=codes)
        taken += len(part) - len(refused)
    return taken


def _send_batch(
    queue: str, messages: Sequence[Outgoing]
) -> list[tuple[Outgoing, Mapping[str, Any]]]:
    """Send up to ten messages in one call; those that SQS refused, and what it says of each."""
    entries: Any = [
        {"Id": str(i), "MessageBody": message.body, **_of_request(message.request_id)}
        for i, message in enumerate(messages)
    ]
    answer = _guarded(
        lambda: client().send_message_batch(QueueUrl=settings().queues[queue], Entries=entries)
    )
    taken = {entry["Id"] for entry in answer.get("Successful", [])}
    said = {entry["Id"]: entry for entry in answer.get("Failed", [])}
    return [
        (message, said.get(str(i), {})) for i, message in enumerate(messages) if str(i) not in taken
    ]


def _sendable(items: Iterable[T], count_bytes: Callable[[T], int]) -> Iterator[list[T]]:
    """``items`` in parts that one call takes. One that no call takes stands alone."""
    part: list[T] = []
    part_bytes = 0
    for item in items:
        item_bytes = count_bytes(item) + _ATTRIBUTES_BYTES
        if part and (len(part) == _BATCH or part_bytes + item_bytes > MAX_CALL_BYTES):
            yield part
            part, part_bytes = [], 0
        part.append(item)
        part_bytes += item_bytes
    if part:
        yield part


def _count_bytes(body: str) -> int:
    return len(body.encode())


def backlog(queue: str) -> int:
    """About how many messages wait to be received. Raises QueueDown."""
    return measure(queue).waiting


def unfinished(queue: str) -> int:
    """About how many messages wait, are put off, or are in work. Raises QueueDown."""
    return sum(measure(queue))


def measure(queue: str) -> Depth:
    """How deep a queue is. Raises QueueDown."""
    answer = _guarded(
        lambda: client().get_queue_attributes(
            QueueUrl=settings().queues[queue], AttributeNames=list(_DEPTHS)
        )
    )
    return Depth(*(int(answer["Attributes"].get(name, 0)) for name in _DEPTHS))


def hold(queue: str, hide_s: int, wait_s: int = 1) -> list[Held]:
    """Receive up to ten messages, and hide them for ``hide_s``. Raises QueueDown.

    None after ``wait_s`` (SQS then asked all its servers): nothing is visible.
    """
    answer = _guarded(
        lambda: client().receive_message(
            QueueUrl=settings().queues[queue],
            MaxNumberOfMessages=_BATCH,
            VisibilityTimeout=hide_s,
            WaitTimeSeconds=wait_s,
            AttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
            MessageAttributeNames=["All"],
        )
    )
    return [
        Held(
            message["MessageId"],
            message["ReceiptHandle"],
            message["Body"],
            int(message["Attributes"]["SentTimestamp"]),
            int(message["Attributes"]["ApproximateReceiveCount"]),
            {
                name: value["StringValue"]
                for name, value in message.get("MessageAttributes", {}).items()
                if "StringValue" in value
            },
        )
        for message in answer.get("Messages", [])
    ]


def let_go(queue: str, held: Iterable[Held]) -> None:
    """Make messages visible that were held. Raises QueueDown; they show by themselves then."""
    for chunk in _chunks(held):
        entries: Any = [
            {"Id": str(i), "ReceiptHandle": message.receipt, "VisibilityTimeout": 0}
            for i, message in enumerate(chunk)
        ]
        _guarded(
            lambda entries=entries: client().change_message_visibility_batch(  # type: ignore[misc]
                QueueUrl=settings().queues[queue], Entries=entries
            )
        )


def hand_over(source: str, target: str, held: Sequence[Held]) -> list[Held]:
    """Move up to ten held messages to ``target``; those that were sent. Raises QueueDown.

    Each is sent, then deleted: whoever dies in between leaves one too many, never one too few.
    What said why it was buried, and how often it was tried, stays behind.
    """
    entries: Any = [
        {"Id": str(i), "MessageBody": message.body, **_going_on(message)}
        for i, message in enumerate(held)
    ]
    answer = _guarded(
        lambda: client().send_message_batch(QueueUrl=settings().queues[target], Entries=entries)
    )
    sent = [held[int(entry["Id"])] for entry in answer.get("Successful", [])]
    if sent:
        gone: Any = [{"Id": str(i), "ReceiptHandle": m.receipt} for i, m in enumerate(sent)]
        _guarded(
            lambda: client().delete_message_batch(QueueUrl=settings().queues[source], Entries=gone)
        )
    return sent


def _going_on(message: Held) -> dict[str, Any]:
    kept = {k: _text(v) for k, v in message.attributes.items() if k not in _OF_A_LIFE}
    return {"MessageAttributes": {FIRST_SENT: _text(str(message.sent_ms))} | kept}


def consume(
    event: dict[str, Any],
    queue: str,
    read: Callable[[str], T],
    work: Callable[[list[T]], None],
    retry: RetryPolicy = _RETRY,
) -> PartialBatchResponse:
    """Read each message of ``event``, let ``work`` do all at once; say which to deliver again.

    ``read`` raises BadRecord for a message that goes to the DLQ. ``work`` raises Unavailable when
    the whole batch should come again. Any other error may be the fault of one message: the batch is
    halved until it stands alone, so that its neighbours are saved. Alone with a BadRecord it goes
    to the DLQ as well. ``retry`` says when what could not be done comes again, and when it is given
    up.

    What a message says gets the id of its request, if it has a field for that.
    """
    good: list[Message[T]] = []
    failed: list[dict[str, Any]] = []
    unread: list[dict[str, Any]] = []
    for message in event["Records"]:
        try:
            said = _add_attributes(read(message["body"]), message)
            good.append(Message(message, said))
        except Unavailable as error:  # another version of Plaza may be able to read it
            unread.append(message)
            failed += _put_off(queue, [message], error, retry)
        except Exception as error:  # whatever it is, it will be the same the next time
            if not _bury(queue, message, error):
                failed.append(message)
    undone, hidden = _work_through(queue, good, work, retry)
    _record_batch(queue, event["Records"], [*failed, *unread, *undone])
    failed += hidden
    return {"batchItemFailures": [{"itemIdentifier": m["messageId"]} for m in failed]}


def read_request_id(message: dict[str, Any]) -> str | None:
    """The id of the request that sent a message, as Lambda hands it over; None for no sound one."""
    said = message.get("messageAttributes", {}).get(REQUEST, {}).get("stringValue")
    return said if isinstance(said, str) and REQUEST_ID.fullmatch(said) else None


def _add_attributes(event: T, message: dict[str, Any]) -> T:
    """``event``, which was just read, with the attributes of its message that it has fields for:
    ``request_id``, and ``sent_ms``, when a queue first took it."""
    fields = getattr(event, "__dataclass_fields__", ())  # frozen; a copy takes 3 us
    if "request_id" in fields and (request_id := read_request_id(message)) is not None:
        object.__setattr__(event, "request_id", request_id)
    if "sent_ms" in fields:
        object.__setattr__(event, "sent_ms", read_sent_ms(message, int(time.time() * 1000)))
    return event


def _of_request(request_id: str | None) -> dict[str, Any]:
    """What says in a call of SQS for which request a message is sent; nothing outside of any."""
    if request_id is None:
        return {}
    return {"MessageAttributes": {REQUEST: _text(request_id)}}


def _text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def _record_batch(
    queue: str, messages: Sequence[dict[str, Any]], failed: Sequence[dict[str, Any]]
) -> None:
    """One line for what was done of a batch: how late it is, and for which requests it was."""
    again = {message["messageId"] for message in failed}
    done = [message for message in messages if message["messageId"] not in again]
    if not done:
        return
    now_s = time.time()
    sent_ms = (read_sent_ms(message, int(now_s * 1000)) for message in done)
    lag_s = max(0.0, round(now_s - min(sent_ms) / 1000, 3))
    record(
        "batch_consumed",
        {"batch_size": len(done), "consumer_lag_s": lag_s},
        queue=queue,
        **_requests_of(done),
    )


def _requests_of(messages: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """``request_ids`` of some messages, each once and in order, for a line; nothing if none has."""
    ids = [found for message in messages if (found := read_request_id(message)) is not None]
    return {"request_ids": list(dict.fromkeys(ids))} if ids else {}


def _work_through(
    queue: str, messages: list[Message[T]], work: Callable[[list[T]], None], retry: RetryPolicy
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(The messages that could not be done, those of them that are still in the queue)."""
    undone: list[dict[str, Any]] = []
    hidden: list[dict[str, Any]] = []
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
            alone = isinstance(error, BadRecord) and len(part) == 1
            if alone and _bury(queue, part[0].record, error):
                continue
            records = [message.record for message in part]
            undone += records
            hidden += _put_off(queue, records, error, retry)
    return undone, hidden


class _Undone(NamedTuple):
    """A message that could not be done, and what becomes of it."""

    record: dict[str, Any]
    delivery: Delivery
    decision: Decision


def _put_off(
    queue: str, messages: Sequence[dict[str, Any]], error: Exception, retry: RetryPolicy
) -> list[dict[str, Any]]:
    """Say why they failed; hide them, send them anew or give them up. Those still in the queue."""
    now_ms = int(time.time() * 1000)
    undone = []
    for message in messages:
        delivery = read_delivery(message, now_ms)
        undone.append(_Undone(message, delivery, decide(delivery, error, retry, now_ms)))
    given_up = [one for one in undone if one.decision.action is Action.GIVE_UP]
    again = [one for one in undone if one.decision.action is Action.SEND_AGAIN]
    waits_s = [(now_ms - one.delivery.waiting_since_ms) / 1000 for one in undone]
    record(
        "batch_failed",
        {
            "failed": len(undone),
            "given_up": len(given_up),
            "longest_wait_s": max(0.0, round(max(waits_s), 1)),
        },
        queue=queue,
        receives=max(one.delivery.receives for one in undone),
        attempts=max(one.decision.attempts for one in undone),
        **_requests_of(messages),
        **cause(error),
    )
    left = _move(f"{queue}_dlq", given_up, {CAUSE: _plain(error)}) + _move(queue, again)
    hidden = [one for one in undone if one.decision.action is Action.HIDE]
    waiting = [(one.record, one.decision.delay_s) for one in hidden]
    waiting += [(one.record, retry.back_off_s[-1]) for one in left]
    _hide(queue, waiting)
    return [message for message, _ in waiting]


def _move(
    queue: str, messages: Sequence[_Undone], said: Mapping[str, str] | None = None
) -> list[_Undone]:
    """Send messages to ``queue``, with ``said`` and what they carried; those it did not take.

    Whoever dies before Lambda deletes them where they were leaves one too many, never one too few.
    """
    left: list[_Undone] = []
    for part in _sendable(messages, lambda one: _count_bytes(one.record["body"])):
        entries: Any = [
            {
                "Id": str(i),
                "MessageBody": one.record["body"],
                "DelaySeconds": one.decision.delay_s,
                "MessageAttributes": {
                    name: _text(value) for name, value in _attributes(one, said or {}).items()
                },
            }
            for i, one in enumerate(part)
        ]
        try:
            answer = _guarded(
                lambda entries=entries: client().send_message_batch(  # type: ignore[misc]
                    QueueUrl=settings().queues[queue], Entries=entries
                )
            )
        except QueueDown as down:
            record("move_failed", queue=queue, **cause(down))
            return [*left, *messages[messages.index(part[0]) :]]
        taken = {entry["Id"] for entry in answer.get("Successful", [])}
        left += [one for i, one in enumerate(part) if str(i) not in taken]
    return left


def _attributes(one: _Undone, said: Mapping[str, str]) -> dict[str, str]:
    """What a message carries on: what it had, and what it has spent by now."""
    delivery, (action, _, attempts) = one.delivery, one.decision
    carried = {FIRST_SENT: str(delivery.sent_ms), ORIGINAL: one.record["messageId"]}
    for name, part in one.record.get("messageAttributes", {}).items():
        if "stringValue" in part:
            carried[name] = part["stringValue"]
    if attempts:
        carried[ATTEMPTS] = str(attempts)
    if action is Action.SEND_AGAIN and attempts == delivery.attempts:
        carried[WAITING_SINCE] = str(delivery.waiting_since_ms)
    return {**carried, **said}


def _hide(queue: str, messages: Sequence[tuple[dict[str, Any], int]]) -> None:
    """Let messages come again after so many seconds each."""
    for chunk in _chunks(messages):
        entries: Any = [
            {
                "Id": str(i),
                "ReceiptHandle": message["receiptHandle"],
                "VisibilityTimeout": delay_s,
            }
            for i, (message, delay_s) in enumerate(chunk)
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
    said = {CAUSE: _plain(error), ORIGINAL: message["messageId"]}
    if "SentTimestamp" in message["attributes"]:
        said[FIRST_SENT] = str(read_sent_ms(message, 0))
    if request_id := read_request_id(message):
        said[REQUEST] = request_id
    try:
        _guarded(
            lambda: client().send_message(
                QueueUrl=settings().queues[f"{queue}_dlq"],
                MessageBody=message["body"],
                MessageAttributes={name: _text(value) for name, value in said.items()},
            )
        )
    except QueueDown as down:
        record("bury_failed", queue=queue, message_id=message["messageId"], **cause(down))
        return False
    record(
        "record_buried",
        {"buried": 1},
        queue=queue,
        message_id=message["messageId"],
        **_requests_of([message]),
        **cause(error),
    )
    return True


def _plain(error: Exception) -> str:
    """The text of ``error`` in characters that SQS takes."""
    return str(error).encode("unicode_escape").decode()[:256] or "unreadable"


def _chunks(items: Iterable[T]) -> Iterator[list[T]]:
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
