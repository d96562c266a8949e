"""The consumer runtime: the batch processor of a queue.

A message that cannot be decoded goes to the DLQ at once: a retry would not help. A batch that fails
because a dependency is unavailable is retried for ``max_wait_s``. A message that fails by its own
error gets ``max_attempts`` attempts (infra.queues.retries).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.queues import dead_letters, sqs
from plaza.infra.queues.dead_letters import CAUSE, ORIGINAL, dlq_of
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.queues.retries import (
    ATTEMPTS,
    FIRST_SENT,
    STEP,
    WAITING_SINCE,
    Action,
    Delivery,
    RetryDecision,
    RetryPolicy,
    decide,
    read_delivery,
    read_sent_ms,
    read_step,
)
from plaza.infra.queues.sqs import Outgoing, QueueDown, read_request_id
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, logger, metrics, record
from plaza.infra.runtime.process import paused_collection

T = TypeVar("T")
Handler = Callable[[dict[str, Any], LambdaContext], PartialItemFailureResponse]

_MAX_SPLITS = 40
_RETRY = RetryPolicy()


class _FailedMessage(NamedTuple):
    """One failed message of a batch, and the decision about it."""

    record: dict[str, Any]
    delivery: Delivery
    decision: RetryDecision


class QueueProcessor(BatchProcessor, Generic[T]):
    """A batch processor of Powertools that handles all messages at once and holds the retry policy.

    ``record_handler`` decodes a message; one that it refuses goes to the DLQ. If ``handle`` raises
    Unavailable, the whole batch is delivered again. After any other error the batch is halved until
    the message that causes it is alone and the others are handled; alone with InvalidMessage, it
    goes to the DLQ. ``retry`` decides when the others are delivered again and when they are
    dead-lettered. Messages that resume at one of ``steps`` are handled by its function.
    """

    def __init__(
        self,
        queue: str,
        decode: Callable[[str], T],
        handle: Callable[[list[T]], object],
        retry: RetryPolicy = _RETRY,
        steps: Mapping[str, Callable[[list[T]], object]] | None = None,
    ) -> None:
        super().__init__(EventType.SQS, raise_on_entire_batch_failure=False)
        self._queue, self._decode, self._handle, self._retry = queue, decode, handle, retry
        self._steps = steps or {}

    def lambda_handler(self) -> Handler:
        """Return the handler of the queue's function."""

        @logger.inject_lambda_context
        @metrics.log_metrics(capture_cold_start_metric=True)
        def handler(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
            return process_partial_response(event, self.record_handler, self, context)

        decorated: Handler = handler
        return decorated

    def record_handler(self, record: SQSRecord) -> T:
        """Return the decoded message, with the id of its request if it has a field for that."""
        message = record.raw_event
        return _add_attributes(self._decode(message["body"]), message)

    @paused_collection()
    def process(self) -> list[tuple[Any, ...]]:
        """Decode the messages and handle them as one batch. Those that Lambda leaves in the
        queue are failures."""
        good: list[tuple[dict[str, Any], T]] = []
        left: list[dict[str, Any]] = []
        undone: list[dict[str, Any]] = []
        for message in self.records:
            try:
                good.append((message, self.handler(SQSRecord(message))))
            except Unavailable as error:  # another version of Plaza may be able to decode it
                undone.append(message)
                left += _back_off(self._queue, [message], error, self._retry)
            except Exception as error:  # any error of a decoder repeats with the same body
                if not dead_letters.dead_letter(self._queue, message, error):
                    undone.append(message)
                    left.append(message)
        hidden = self._handle_all(good, undone)
        _record_batch(self._queue, self.records, undone)
        return [self._leave(message) for message in left + hidden]

    def _handle_all(
        self, good: list[tuple[dict[str, Any], T]], undone: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Handle decoded messages; add the failed ones to ``undone``. Return the failed ones that
        are still in the queue."""
        hidden: list[dict[str, Any]] = []
        by_handler: dict[Callable[[list[T]], object], list[tuple[dict[str, Any], T]]] = {}
        for message, value in good:
            handle = self._steps.get(read_step(message) or "", self._handle)
            by_handler.setdefault(handle, []).append((message, value))
        todo, splits = list(by_handler.items()), 0
        while todo:
            handle, part = todo.pop()
            try:
                handle([value for _, value in part])
            except Exception as error:
                if not isinstance(error, Unavailable) and len(part) > 1 and splits < _MAX_SPLITS:
                    splits += 1
                    half = len(part) // 2
                    todo += [(handle, part[half:]), (handle, part[:half])]
                    continue
                messages = [message for message, _ in part]
                alone = isinstance(error, InvalidMessage) and len(part) == 1
                if alone and dead_letters.dead_letter(self._queue, messages[0], error):
                    continue
                undone += messages
                hidden += _back_off(self._queue, messages, error, self._retry)
        return hidden

    def _leave(self, message: dict[str, Any]) -> tuple[Any, ...]:
        return self.failure_handler(SQSRecord(message), (None, None, None))


def _add_attributes(event: T, message: dict[str, Any]) -> T:
    """Set the fields ``request_id`` and ``sent_ms`` (first sent) of a new event that has them."""
    fields = getattr(event, "__dataclass_fields__", ())  # in place: a copy takes 3 us
    if "request_id" in fields and (request_id := read_request_id(message)) is not None:
        object.__setattr__(event, "request_id", request_id)
    if "sent_ms" in fields:
        object.__setattr__(event, "sent_ms", read_sent_ms(message, clock.now_ms()))
    return event


def _record_batch(
    queue: str, messages: Sequence[dict[str, Any]], failed: Sequence[dict[str, Any]]
) -> None:
    """Record the messages that were handled, their lag and the ids of their requests."""
    again = {message["messageId"] for message in failed}
    handled = [message for message in messages if message["messageId"] not in again]
    if not handled:
        return
    now_s = clock.now_s()
    sent_ms = (read_sent_ms(message, int(now_s * 1000)) for message in handled)
    lag_s = max(0.0, round(now_s - min(sent_ms) / 1000, 3))
    record(
        "batch_consumed",
        {"batch_size": len(handled), "consumer_lag_s": lag_s},
        queue=queue,
        **_requests_of(handled),
    )


def _requests_of(messages: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the log field ``request_ids``: each id once, in order; no field without any."""
    ids = [
        request_id for message in messages if (request_id := read_request_id(message)) is not None
    ]
    return {"request_ids": list(dict.fromkeys(ids))} if ids else {}


def _back_off(
    queue: str, messages: Sequence[dict[str, Any]], error: Exception, retry: RetryPolicy
) -> list[dict[str, Any]]:
    """Hide, send again or dead-letter each failed message; return those still in the queue."""
    now_ms = clock.now_ms()
    undone = []
    for message in messages:
        delivery = read_delivery(message, now_ms)
        undone.append(_FailedMessage(message, delivery, decide(delivery, error, retry, now_ms)))
    dead = [failed for failed in undone if failed.decision.action is Action.DEAD_LETTER]
    again = [failed for failed in undone if failed.decision.action is Action.SEND_AGAIN]
    step = undone[0].delivery.passes(error)  # the same of all messages of a handler
    waits_s = [(now_ms - failed.delivery.waiting_since_ms) / 1000 for failed in undone]
    record(
        "batch_failed",
        {
            "messages_failed": len(undone),
            "retries_exhausted": len(dead),
            "longest_wait_s": max(0.0, round(max(waits_s), 1)),
        },
        queue=queue,
        receives=max(failed.delivery.receives for failed in undone),
        attempts=max(failed.decision.attempts for failed in undone),
        **({"step": step} if step else {}),
        **_requests_of(messages),
        **error_fields(error),
    )
    left = _send(dlq_of(queue), dead, {CAUSE: dead_letters.render_cause(error)})
    left += _send(queue, again, {STEP: step} if step else None)
    hidden = [failed for failed in undone if failed.decision.action is Action.HIDE]
    waiting = [(failed.record, failed.decision.delay_s) for failed in hidden]
    waiting += [(failed.record, retry.back_off_s[-1]) for failed in left]
    _hide(queue, waiting)
    return [message for message, _ in waiting]


def _send(
    queue: str, messages: Sequence[_FailedMessage], added: Mapping[str, str] | None = None
) -> list[_FailedMessage]:
    """Send messages to ``queue`` with ``added`` attributes; return those that SQS refused.
    If the process dies before Lambda deletes the originals, a message is duplicated, never lost."""
    left: list[_FailedMessage] = []
    for part in sqs.split(messages, lambda failed: sqs.count_bytes(failed.record["body"])):
        outgoing = [
            Outgoing(
                failed.record["body"], _attributes(failed, added or {}), failed.decision.delay_s
            )
            for failed in part
        ]
        try:
            refused = sqs.send_batch(queue, outgoing)
        except QueueDown as down:
            record("move_failed", queue=queue, **error_fields(down))
            return [*left, *messages[messages.index(part[0]) :]]
        left += [part[index] for index in refused]
    return left


def _attributes(failed: _FailedMessage, added: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of a message that is sent again, with its attempts so far."""
    delivery, (action, _, attempts) = failed.delivery, failed.decision
    carried = {FIRST_SENT: str(delivery.sent_ms), ORIGINAL: failed.record["messageId"]}
    for name, part in failed.record.get("messageAttributes", {}).items():
        if "stringValue" in part:
            carried[name] = part["stringValue"]
    if attempts:
        carried[ATTEMPTS] = str(attempts)
    if STEP in added:
        carried.pop(WAITING_SINCE, None)
    elif action is Action.SEND_AGAIN and attempts == delivery.attempts:
        carried[WAITING_SINCE] = str(delivery.waiting_since_ms)
    return {**carried, **added}


def _hide(queue: str, messages: Sequence[tuple[dict[str, Any], int]]) -> None:
    """Hide messages for the given seconds each."""
    try:
        sqs.hide(queue, [(message["receiptHandle"], delay_s) for message, delay_s in messages])
    except QueueDown as down:  # the queue's visibility timeout applies instead
        record("back_off_failed", queue=queue, **error_fields(down))
