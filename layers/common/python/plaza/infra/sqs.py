"""The client of SQS: sends, receives, releases, moves, hides and counts messages by queue name.

Contexts use a ``Queue`` (infra.queues). This is below it, for the consumer runtime, dead letters
and operators. A call takes two seconds at most; it is repeated once unless SQS was silent.
Messages are sent by ``infra.sqs_sender``; all else, and sending without it, is botocore's.

A message that is sent while a request is answered carries the id of that request, as an attribute
and not in its body.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from plaza.infra.clock import Deadline
from plaza.infra.dependencies import Dependency, DependencyDown, RetryRule
from plaza.infra.observability import REQUEST_ID, current_request_id, record
from plaza.infra.process import Lazy
from plaza.infra.retries import FIRST_SENT
from plaza.infra.settings import settings

if TYPE_CHECKING:
    from plaza.infra.sqs_sender import Sender

T = TypeVar("T")

REQUEST = "request_id"  # attribute of a message that was sent while a request was answered
CONNECT_TIMEOUT_S = 1.0
READ_TIMEOUT_S = 2.0
MAX_CALL_BYTES = 262_144  # of one call, attributes included; SQS took no more for many years
_MAX_MESSAGES = 10  # of one call
_MAX_ATTRIBUTES_BYTES = 1_024  # of one message
_DEPTHS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class QueueDown(DependencyDown):
    """SQS can't be reached, or didn't take the message."""


class SqsError(Exception):
    """SQS refused a request, or could not be reached.

    ``code`` names the cause. ``is_passing``: the same request may succeed in a moment.
    """

    def __init__(self, code: str, *, is_passing: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.is_passing = is_passing


class Depth(NamedTuple):
    """About how many messages of a queue wait, were received and not deleted, and are delayed."""

    backlog: int
    in_flight: int
    delayed: int


class Outgoing(NamedTuple):
    """A message that is to be sent."""

    body: str
    attributes: Mapping[str, str]
    delay_s: int = 0


def for_request(body: str, request_id: str | None, delay_s: int = 0) -> Outgoing:
    """Return a message that names the request that it is for, if there is one."""
    return Outgoing(body, {} if request_id is None else {REQUEST: request_id}, delay_s)


class Received(NamedTuple):
    """A message that was received outside of a consumer. ``receives`` counts this one too."""

    id: str
    receipt: str
    body: str
    sent_ms: int
    receives: int
    attributes: Mapping[str, str]


SQS = Dependency(
    name="SQS",
    down=QueueDown,
    errors=(SqsError,),
    describe=str,
    retries=(
        RetryRule(lambda error: getattr(error, "is_passing", False), pauses_s=((0.02, 0.1),)),
    ),
)


def client() -> Any:
    """Return botocore's SQS client of this process: one try of two seconds; ``SQS`` repeats."""
    return _client.get()


def _make_client() -> Any:
    import botocore.session  # slow to import, and a function that only sends does without
    from botocore.config import Config

    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        retries={"total_max_attempts": 1},
        parameter_validation=False,  # a tenth of a call's CPU, and the types are ours
    )
    return botocore.session.get_session().create_client("sqs", config=config)


def _make_sender() -> Sender | None:
    from plaza.infra.sqs_sender import make_sender  # only a function that sends loads it

    return make_sender(next(iter(settings().queues.values())))


def _close_sender(sender: Sender | None) -> None:
    if sender is not None:
        sender.close()


_client: Lazy[Any] = Lazy(_make_client, close=lambda client: client.close())
_sender: Lazy[Sender | None] = Lazy(_make_sender, close=_close_sender)


def send(queue: str, body: str, delay_s: int = 0) -> None:
    """Send one message to the queue named ``queue``. Raises QueueDown."""
    forward(queue, for_request(body, current_request_id(), delay_s))


def send_all(
    queue: str, messages: Sequence[str | Outgoing], deadline: Deadline | None = None
) -> int:
    """Send many messages; return how many SQS took. A body alone is for the present request.

    Up to ten messages and 256 KiB a call. What SQS refuses for the moment is sent once more; what
    it refuses then is left out, and counted by ``messages_refused``. No call begins after the
    deadline. Raises QueueDown when SQS can't be reached: some may have been sent.
    """
    request_id = current_request_id()
    outgoing = [m if isinstance(m, Outgoing) else for_request(m, request_id) for m in messages]
    taken = 0
    for part in split(outgoing, lambda message: count_bytes(message.body)):
        if deadline is not None and deadline.has_passed:
            break
        refused = send_batch(queue, part)
        passing = [place for place, entry in refused.items() if not entry.get("SenderFault")]
        if passing:
            lasting = [entry for entry in refused.values() if entry.get("SenderFault")]
            again = send_batch(queue, [part[place] for place in passing])
            refused = dict(enumerate([*lasting, *again.values()]))
        if refused:
            codes = sorted({str(entry.get("Code", "")) for entry in refused.values()})
            record("messages_refused", {"messages_refused": len(refused)}, queue=queue, codes=codes)
        taken += len(part) - len(refused)
    return taken


def forward(queue: str, message: Outgoing) -> None:
    """Send one message with its own attributes. Raises QueueDown."""
    _send(
        "send_message",
        {
            "QueueUrl": settings().queues[queue],
            "MessageBody": message.body,
            "DelaySeconds": message.delay_s,
            **_render_attributes(message.attributes),
        },
    )


def send_batch(queue: str, messages: Sequence[Outgoing]) -> dict[int, Mapping[str, Any]]:
    """Send up to ten messages in one call. Raises QueueDown.

    Returns the places of those that SQS refused, with what it says of each.
    """
    entries = [
        {
            "Id": str(place),
            "MessageBody": message.body,
            "DelaySeconds": message.delay_s,
            **_render_attributes(message.attributes),
        }
        for place, message in enumerate(messages)
    ]
    answer = _send("send_message_batch", {"QueueUrl": settings().queues[queue], "Entries": entries})
    taken = {int(entry["Id"]) for entry in answer.get("Successful", [])}
    causes = {int(entry["Id"]): entry for entry in answer.get("Failed", [])}
    return {place: causes.get(place, {}) for place in range(len(messages)) if place not in taken}


_ACTIONS = {"send_message": "SendMessage", "send_message_batch": "SendMessageBatch"}


def _send(operation: str, parameters: Mapping[str, Any]) -> Any:
    """Call an operation that sends. Raises QueueDown."""
    sender = _sender.get()
    if sender is None:
        return _call(operation, **parameters)
    return SQS.call(lambda: sender.post(_ACTIONS[operation], parameters))


def _call(operation: str, **parameters: Any) -> Any:
    """Call an operation of botocore's client. Raises QueueDown."""
    from botocore.exceptions import BotoCoreError, ClientError

    def run() -> Any:
        try:
            return getattr(client(), operation)(**parameters)
        except (BotoCoreError, ClientError) as error:
            raise SqsError(_name_cause(error), is_passing=_is_passing(error)) from error

    return SQS.call(run)


def _name_cause(error: Exception) -> str:
    """Return the code of SQS, or the type of an error of the client."""
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code") or type(error).__name__)


def _is_passing(error: Exception) -> bool:
    """Whether the connection was closed, or SQS refused for the moment. An SQS that is silent has
    cost a timeout: the caller does not wait for a second one."""
    from botocore.exceptions import ConnectionClosedError

    response = getattr(error, "response", None) or {}
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    is_refused = status >= 500 or "Throttl" in response.get("Error", {}).get("Code", "")
    return is_refused or isinstance(error, ConnectionClosedError)


def split(items: Iterable[T], count_bytes: Callable[[T], int]) -> Iterator[list[T]]:
    """Split ``items`` into parts that one call takes. One that no call takes stands alone.

    ``count_bytes`` is of the body.
    """
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
    """Count the bytes of a body."""
    return len(body.encode())


def measure(queue: str) -> Depth:
    """Measure how deep a queue is. Raises QueueDown."""
    answer = _call(
        "get_queue_attributes", QueueUrl=settings().queues[queue], AttributeNames=list(_DEPTHS)
    )
    return Depth(*(int(answer["Attributes"].get(name, 0)) for name in _DEPTHS))


def receive(queue: str, hide_s: int, wait_s: int = 1) -> list[Received]:
    """Receive up to ten messages, and hide them for ``hide_s``. Raises QueueDown.

    None after ``wait_s`` (SQS then asked all its servers): nothing is visible.
    """
    answer = _call(
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
        for message in answer.get("Messages", [])
    ]


def release(queue: str, received: Iterable[Received]) -> None:
    """Make received messages visible. Raises QueueDown; they show by themselves then."""
    hide(queue, [(message.receipt, 0) for message in received])


def hide(queue: str, receipts: Iterable[tuple[str, int]]) -> None:
    """Hide received messages for so many seconds each, from now. Raises QueueDown."""
    rest = iter(receipts)
    while part := list(islice(rest, _MAX_MESSAGES)):
        entries = [
            {"Id": str(place), "ReceiptHandle": receipt, "VisibilityTimeout": hide_s}
            for place, (receipt, hide_s) in enumerate(part)
        ]
        _call("change_message_visibility_batch", QueueUrl=settings().queues[queue], Entries=entries)


def move(
    source: str, target: str, received: Sequence[Received], without: Collection[str] = ()
) -> list[Received]:
    """Move up to ten received messages to ``target``; return those that were sent.

    Each is sent, then deleted: a process that dies in between leaves one too many, never one too
    few. The attributes ``without`` stay behind. Raises QueueDown.
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
    sent = [message for place, message in enumerate(received) if place not in refused]
    if sent:
        entries = [
            {"Id": str(place), "ReceiptHandle": message.receipt}
            for place, message in enumerate(sent)
        ]
        _call("delete_message_batch", QueueUrl=settings().queues[source], Entries=entries)
    return sent


def read_request_id(record: Mapping[str, Any]) -> str | None:
    """Read the id of the request that sent a message, as Lambda gives it to its consumer; None
    where there is no sound one."""
    value = record.get("messageAttributes", {}).get(REQUEST, {}).get("stringValue")
    return value if isinstance(value, str) and REQUEST_ID.fullmatch(value) else None


def _render_attributes(attributes: Mapping[str, str]) -> dict[str, Any]:
    if not attributes:
        return {}
    return {
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        }
    }
