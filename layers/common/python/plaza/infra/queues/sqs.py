"""The client of SQS: sends, receives, releases, moves, hides and counts messages by queue name.

Contexts use a ``Queue`` (infra.queues.queue), which uses this module, as the consumer runtime, dead
letters and operations do. A call takes up to 2 s and is repeated once, except after a timeout.
``infra.aws.aws_json`` makes the calls, or botocore with credentials that expire.

A message that is sent while a request is served has the request's id as an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from plaza.infra.aws import aws_json
from plaza.infra.aws.aws_json import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, AwsError, AwsJsonClient
from plaza.infra.queues.retries import FIRST_SENT
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.dependencies import Dependency, DependencyDown, RetryRule
from plaza.infra.runtime.observability import REQUEST_ID, current_request_id, record
from plaza.infra.runtime.process import Lazy
from plaza.infra.runtime.settings import settings

T = TypeVar("T")

REQUEST = "request_id"  # attribute: the request that sent the message
MAX_CALL_BYTES = 262_144  # of one call, with attributes; the older, lower limit of SQS
_MAX_MESSAGES = 10  # of one call
_MEASURED_AT_ONCE = 8  # the client has ten connections
_MAX_MEASURE_S = 1.0
_MAX_ATTRIBUTES_BYTES = 1_024  # of one message
_DEPTHS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class QueueDown(DependencyDown):
    """SQS is unreachable or refused the message."""


class Depth(NamedTuple):
    """The approximate numbers of waiting, received and delayed messages of a queue."""

    backlog: int
    in_flight: int
    delayed: int


class Outgoing(NamedTuple):
    """A message to send."""

    body: str
    attributes: Mapping[str, str]
    delay_s: int = 0


def for_request(body: str, request_id: str | None, delay_s: int = 0) -> Outgoing:
    """Return a message with the id of its request, if there is one."""
    return Outgoing(body, {} if request_id is None else {REQUEST: request_id}, delay_s)


class Received(NamedTuple):
    """A message that was received outside of a consumer. ``receives`` includes this one."""

    id: str
    receipt: str
    body: str
    sent_ms: int
    receives: int
    attributes: Mapping[str, str]


SQS = Dependency(
    name="SQS",
    down=QueueDown,
    errors=lambda: (AwsError,),
    describe=str,
    retries=(
        RetryRule(lambda error: getattr(error, "is_passing", False), pauses_s=((0.02, 0.1),)),
    ),
)


def client() -> Any:
    """Return botocore's SQS client of this process: one try of 2 s, ``SQS`` repeats."""
    return _client.get()


def _make_client() -> Any:
    import botocore.session  # slow to import
    from botocore.config import Config

    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        retries={"total_max_attempts": 1},
        parameter_validation=False,  # a tenth of a call's CPU; all parameters come from this module
    )
    return botocore.session.get_session().create_client("sqs", config=config)


def _make_sender() -> AwsJsonClient | None:
    return aws_json.make_client(aws_json.SQS, next(iter(settings().queues.values())))


def _close_sender(sender: AwsJsonClient | None) -> None:
    if sender is not None:
        sender.close()


_client: Lazy[Any] = Lazy(_make_client, close=lambda client: client.close())
_sender: Lazy[AwsJsonClient | None] = Lazy(_make_sender, close=_close_sender)


def send(queue: str, body: str, delay_s: int = 0) -> None:
    """Send one message to the queue named ``queue``. One call. Raises QueueDown."""
    forward(queue, for_request(body, current_request_id(), delay_s))


def send_all(
    queue: str, messages: Sequence[str | Outgoing], deadline: Deadline | None = None
) -> int:
    """Send messages; return how many SQS accepted. A plain body gets the current request's id.

    Up to ten messages and 256 KiB a call. Messages that SQS refuses for a passing cause are sent
    once more; the metric ``messages_refused`` counts those that stay refused. No call begins after
    the deadline. Raises QueueDown if SQS is unreachable; some may have been sent.
    """
    request_id = current_request_id()
    outgoing = [m if isinstance(m, Outgoing) else for_request(m, request_id) for m in messages]
    accepted = 0
    for part in split(outgoing, lambda message: count_bytes(message.body)):
        if deadline is not None and deadline.has_passed:
            break
        refused = send_batch(queue, part)
        passing = [index for index, entry in refused.items() if not entry.get("SenderFault")]
        if passing:
            lasting = [entry for entry in refused.values() if entry.get("SenderFault")]
            again = send_batch(queue, [part[index] for index in passing])
            refused = dict(enumerate([*lasting, *again.values()]))
        if refused:
            codes = sorted({str(entry.get("Code", "")) for entry in refused.values()})
            record("messages_refused", {"messages_refused": len(refused)}, queue=queue, codes=codes)
        accepted += len(part) - len(refused)
    return accepted


def forward(queue: str, message: Outgoing) -> None:
    """Send one message with its own attributes. One call. Raises QueueDown."""
    _call("send_message", QueueUrl=settings().queues[queue], **_render(message))


def send_batch(queue: str, messages: Sequence[Outgoing]) -> dict[int, Mapping[str, Any]]:
    """Send up to ten messages; return index -> SQS's error of those that it refused.
    One call. Raises QueueDown."""
    entries = [{"Id": str(i), **_render(message)} for i, message in enumerate(messages)]
    reply = _call("send_message_batch", QueueUrl=settings().queues[queue], Entries=entries)
    accepted = {int(entry["Id"]) for entry in reply.get("Successful", [])}
    causes = {int(entry["Id"]): entry for entry in reply.get("Failed", [])}
    return {i: causes.get(i, {}) for i in range(len(messages)) if i not in accepted}


def _call(operation: str, **parameters: Any) -> Any:
    """Call an operation by the JSON client, or by botocore without one. Raises QueueDown."""
    sender = _sender.get()
    if sender is None:
        return SQS.call(lambda: _run_operation(operation, parameters))
    return SQS.call(lambda: sender.post(_action_of(operation), parameters))


@cache
def _action_of(operation: str) -> str:
    return operation.title().replace("_", "")


def _run_operation(operation: str, parameters: Mapping[str, Any]) -> Any:
    """Call an operation of botocore's client once. Raises AwsError."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return getattr(client(), operation)(**parameters)
    except (BotoCoreError, ClientError) as error:
        raise _translate(error) from error


def _translate(error: Exception) -> AwsError:
    """Return an error of botocore as ours. Of those without a reply only a closed connection is
    passing; a timeout is not: the caller would wait for two."""
    from botocore.exceptions import ClientError, ConnectionClosedError

    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return AwsError.of_reply(status, error.response["Error"]["Code"])
    return AwsError(type(error).__name__, is_passing=isinstance(error, ConnectionClosedError))


def split(items: Iterable[T], count_bytes: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield ``items`` in parts for one call each. An item too large for any call is alone.
    ``count_bytes`` returns the size of an item's body."""
    part: list[T] = []
    part_bytes = 0
    for item in items:
        item_bytes = count_bytes(item) + _MAX_ATTRIBUTES_BYTES
        if part and (len(part) == _MAX_MESSAGES or part_bytes + item_bytes > MAX_CALL_BYTES):
            yield part
            part, part_bytes = [], 0
        part.append(item)
        part_bytes += item_bytes
    if part:
        yield part


def count_bytes(body: str) -> int:
    """Return the size of a body in bytes."""
    return len(body.encode())


def measure(queue: str) -> Depth:
    """Return the depth of a queue. One call. Raises QueueDown."""
    return _read_depth(_call("get_queue_attributes", **_name_depths(queue)))


def measure_all(queues: Collection[str]) -> dict[str, Depth]:
    """Return queue -> depth. A call each, eight at a time. Raises QueueDown, after 1 s at most."""
    from concurrent.futures import ThreadPoolExecutor, wait  # only operators measure all queues

    def run() -> dict[str, Depth]:
        threads = ThreadPoolExecutor(_MEASURED_AT_ONCE)
        try:
            calls = {
                queue: threads.submit(_run_operation, "get_queue_attributes", _name_depths(queue))
                for queue in queues
            }
            if wait(calls.values(), _MAX_MEASURE_S).not_done:
                raise AwsError("Timeout")
            return {queue: _read_depth(call.result()) for queue, call in calls.items()}
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    client()  # made by one thread
    return SQS.call(run)


def _name_depths(queue: str) -> dict[str, Any]:
    return {"QueueUrl": settings().queues[queue], "AttributeNames": list(_DEPTHS)}


def _read_depth(reply: Mapping[str, Any]) -> Depth:
    return Depth(*(int(reply["Attributes"].get(name, 0)) for name in _DEPTHS))


def receive(queue: str, hide_s: int, wait_s: int = 1) -> list[Received]:
    """Receive up to ten messages and hide them for ``hide_s``. One call. Raises QueueDown.

    An empty list after ``wait_s`` means that no message is visible: with a wait SQS reads all of
    its servers.
    """
    reply = _call(
        "receive_message",
        QueueUrl=settings().queues[queue],
        MaxNumberOfMessages=_MAX_MESSAGES,
        VisibilityTimeout=hide_s,
        WaitTimeSeconds=wait_s,
        AttributeNames=["SentTimestamp", "ApproximateReceiveCount"],
        MessageAttributeNames=["All"],
    )
    return [
        Received(
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
        for message in reply.get("Messages", [])
    ]


def release(queue: str, received: Iterable[Received]) -> None:
    """Make received messages visible. One call for ten.
    Raises QueueDown; then they become visible after their timeout."""
    hide(queue, [(message.receipt, 0) for message in received])


def hide(queue: str, receipts: Iterable[tuple[str, int]]) -> None:
    """Hide messages, (receipt, seconds from now) each. One call for ten. Raises QueueDown."""
    rest = iter(receipts)
    while part := list(islice(rest, _MAX_MESSAGES)):
        entries = [
            {"Id": str(index), "ReceiptHandle": receipt, "VisibilityTimeout": hide_s}
            for index, (receipt, hide_s) in enumerate(part)
        ]
        _call("change_message_visibility_batch", QueueUrl=settings().queues[queue], Entries=entries)


def move(
    source: str, target: str, received: Sequence[Received], without: Collection[str] = ()
) -> list[Received]:
    """Move up to ten received messages to ``target``; return those that were sent.

    They are sent, then deleted: a crash in between duplicates messages and loses none. The
    attributes ``without`` are removed. Two calls. Raises QueueDown.
    """
    refused = send_batch(
        target,
        [
            Outgoing(
                message.body,
                {FIRST_SENT: str(message.sent_ms)}
                | {k: v for k, v in message.attributes.items() if k not in without},
            )
            for message in received
        ],
    )
    sent = [message for index, message in enumerate(received) if index not in refused]
    if sent:
        delete(source, sent)
    return sent


def delete(queue: str, received: Sequence[Received]) -> None:
    """Delete up to ten received messages. One call. Raises QueueDown."""
    entries = [
        {"Id": str(index), "ReceiptHandle": message.receipt}
        for index, message in enumerate(received)
    ]
    _call("delete_message_batch", QueueUrl=settings().queues[queue], Entries=entries)


def read_request_id(record: Mapping[str, Any]) -> str | None:
    """Return the id of the request that sent a record of Lambda, None without a valid one."""
    value = record.get("messageAttributes", {}).get(REQUEST, {}).get("stringValue")
    return value if isinstance(value, str) and REQUEST_ID.fullmatch(value) else None


def _render(message: Outgoing) -> dict[str, Any]:
    """Return a message as the parameters of a call that sends it."""
    rendered: dict[str, Any] = {"MessageBody": message.body, "DelaySeconds": message.delay_s}
    if message.attributes:
        rendered["MessageAttributes"] = {
            name: {"DataType": "String", "StringValue": value}
            for name, value in message.attributes.items()
        }
    return rendered
