"""Dead-letter queues (DLQ): the queue ``x`` has the DLQ ``x_dlq``.

A message that cannot be decoded is moved there at once, a failed one after its last attempt
(infra.queues.processor), and SQS moves one whose consumers crashed. An operator redrives them
(plaza.operate.operations).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plaza.infra.queues import sqs
from plaza.infra.queues.retries import ATTEMPTS, FIRST_SENT, STEP, WAITING_SINCE, read_sent_ms
from plaza.infra.queues.sqs import REQUEST, Outgoing, QueueDown, Received, read_request_id
from plaza.infra.runtime.observability import error_fields, record

CAUSE, ORIGINAL = "cause", "message_id"  # attributes: the error, and the id in its queue
_DROPPED_BY_REDRIVE = (CAUSE, ORIGINAL, ATTEMPTS, STEP, WAITING_SINCE)
_MAX_CAUSE = 256


def dlq_of(queue: str) -> str:
    """Return the name of the DLQ of ``queue``."""
    return f"{queue}_dlq"


def dead_letter(queue: str, message: dict[str, Any], error: Exception) -> bool:
    """Send a message to the DLQ of ``queue``; return False if SQS refused it. One call."""
    attributes = {CAUSE: render_cause(error), ORIGINAL: message["messageId"]}
    if "SentTimestamp" in message["attributes"]:
        attributes[FIRST_SENT] = str(read_sent_ms(message, 0))
    request_id = read_request_id(message)
    if request_id:
        attributes[REQUEST] = request_id
    try:
        sqs.forward(dlq_of(queue), Outgoing(message["body"], attributes))
    except QueueDown as down:
        record(
            "dead_letter_failed", queue=queue, message_id=message["messageId"], **error_fields(down)
        )
        return False
    record(
        "message_dead_lettered",
        {"dead_lettered": 1},
        queue=queue,
        message_id=message["messageId"],
        **({"request_ids": [request_id]} if request_id else {}),
        **error_fields(error),
    )
    return True


def redrive(queue: str, received: Sequence[Received]) -> list[Received]:
    """Move up to ten messages of the DLQ back to ``queue``; return those that were sent.
    Removes the attributes for the cause, the attempts and the step. Two calls. Raises QueueDown."""
    return sqs.move(dlq_of(queue), queue, received, without=_DROPPED_BY_REDRIVE)


def render_cause(error: Exception) -> str:
    """Return up to 256 characters of ``error`` that SQS accepts in an attribute."""
    return str(error).encode("unicode_escape").decode()[:_MAX_CAUSE] or "unreadable"
