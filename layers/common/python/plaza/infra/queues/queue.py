"""Queues: each is one object, declared once, by the context that owns its messages.

    REACTIONS = Queue(message_codec("reactions", ...), batch_size=1_000)

    @REACTIONS.consumer
    def save(events: Sequence[ReactionEvent]) -> None: ...

    handler = REACTIONS.processor(save).lambda_handler()  # functions/queue/save_reactions/app.py

The consumer registers itself with a decorator. So a producer, which imports the declaration, loads
neither the consumer's code nor the consumer runtime; and a context may send to a queue that a
higher context consumes: content publishes posts, the feed pushes them. A function imports its queue
from the consumer's module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from plaza.infra.queues import sqs
from plaza.infra.queues.messages import MessageCodec
from plaza.infra.queues.retries import RetryPolicy
from plaza.infra.queues.sqs import QueueDown
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import error_fields, record

if TYPE_CHECKING:
    from plaza.infra.queues.processor import QueueProcessor

__all__ = ["Queue", "QueueDown", "declared"]

T = TypeVar("T")

_declared: dict[str, Queue[Any]] = {}


class Queue(Generic[T]):
    """A queue of messages of type ``T``: its codec, its settings and its consumer.

    ``make generate`` writes it into template.yaml, with its DLQ and its function. ``window_s``: how
    long a batch may fill. ``visibility_s``: how long a message is hidden that was received, six
    times the timeout of the function. ``max_concurrency``: batches that are consumed at once.
    """

    def __init__(
        self,
        codec: MessageCodec[T],
        *,
        batch_size: int = 10,
        window_s: int = 0,
        visibility_s: int = 181,
        max_concurrency: int = 4,
        retention_days: int = 14,
        retry: RetryPolicy | None = None,
    ) -> None:
        if codec.name in _declared:
            raise ValueError(f"queue {codec.name} is declared twice")
        self.name = codec.name
        self.encode = codec.encode
        self.decode = codec.decode
        self.batch_size = batch_size
        self.window_s = window_s
        self.visibility_s = visibility_s
        self.max_concurrency = max_concurrency
        self.retention_days = retention_days
        self.retry = retry or RetryPolicy()
        self._handle: Callable[[Sequence[T]], None] | None = None
        self._steps: dict[str, Callable[[Sequence[T]], None]] = {}
        _declared[self.name] = self

    def __repr__(self) -> str:
        return f"Queue({self.name!r})"

    def send(self, message: T, delay_s: int = 0) -> None:
        """Send one message with a delay of ``delay_s``. One call. Raises QueueDown."""
        sqs.send(self.name, self.encode(message), delay_s)

    def try_send(self, message: T, delay_s: int = 0) -> bool:
        """Send as ``send``. Return False, and record it, if SQS refuses: the message is sent later,
        or is not needed."""
        try:
            self.send(message, delay_s)
        except QueueDown as error:
            self.record_unsent(1, error)
            return False
        return True

    def record_unsent(self, count: int, error: QueueDown) -> None:
        """Record that SQS refused ``count`` messages, which are sent later or are not needed."""
        metrics = {"messages_unsent": count}
        record("message_unsent", metrics, queue=self.name, **error_fields(error))

    def send_all(self, messages: Iterable[T], deadline: Deadline | None = None) -> int:
        """Send messages, ten a call; return how many SQS accepted. See ``sqs.send_all``."""
        return sqs.send_all(self.name, [self.encode(message) for message in messages], deadline)

    def count_backlog(self) -> int:
        """Return the approximate number of waiting messages. One call. Raises QueueDown."""
        return sqs.measure(self.name).backlog

    def count_unfinished(self) -> int:
        """Return the approximate number of waiting, delayed and in-flight messages. One call.
        Raises QueueDown."""
        return sum(sqs.measure(self.name))

    def consumer(self, handle: Callable[[Sequence[T]], None]) -> Callable[[Sequence[T]], None]:
        """Register ``handle`` as the consumer, called once a batch; return it unchanged."""
        if self._handle is not None:
            raise ValueError(f"queue {self.name} has two consumers")
        self._handle = handle
        return handle

    def resumes_at(
        self, step: str
    ) -> Callable[[Callable[[Sequence[T]], None]], Callable[[Sequence[T]], None]]:
        """Register a function that handles the messages that resume at ``step``."""

        def register(handle: Callable[[Sequence[T]], None]) -> Callable[[Sequence[T]], None]:
            self._steps[step] = handle
            return handle

        return register

    @property
    def handle(self) -> Callable[[Sequence[T]], None]:
        """The function that consumes a batch. Raises LookupError if its module is not loaded."""
        if self._handle is None:
            raise LookupError(f"the module of the consumer of queue {self.name} is not loaded")
        return self._handle

    def processor(self, handle: Callable[[Sequence[T]], object]) -> QueueProcessor[T]:
        """Return the batch processor of the queue's function, which calls ``handle``."""
        from plaza.infra.queues.processor import QueueProcessor  # only a consumer loads its runtime

        return QueueProcessor(self.name, self.decode, handle, self.retry, self._steps)


def declared() -> Mapping[str, Queue[Any]]:
    """Return name -> queue of all queues that loaded modules declare."""
    return MappingProxyType(_declared)
