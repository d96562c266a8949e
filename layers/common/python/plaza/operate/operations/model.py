"""Queues, dead letters and what may be shown of them. No I/O.

The DLQ of a queue ``x`` is ``x_dlq``. A DLQ that has a DLQ of its own has a consumer too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from plaza.infra.queues.dead_letters import CAUSE, dlq_of
from plaza.infra.queues.sqs import REQUEST, Received
from plaza.infra.runtime.errors import Conflict, NotFound
from plaza.infra.runtime.observability import REQUEST_ID

REDACTED = "…"
_MAX_TEXT_CHARS = 4_000
_MAX_DEPTH = 20
# Plaza's bodies contain ids, versions and key names only; a dead letter may come from elsewhere.
_SECRET_NAME = re.compile(
    r"phone|mobile|token|code|password|secret|authori|cookie|session", re.IGNORECASE
)
_SECRET_TEXT = re.compile(
    r"\+\d[\d ().-]{5,}\d"  # a phone number with separators
    r"|(?<!\d)\d{4,15}(?!\d)"  # one without the plus, or a code; Plaza's ids have more digits
    r"|[A-Za-z0-9_-]{32,}"  # a token
)


class QueueNotFound(NotFound):
    """There is no such queue, or it has no DLQ."""


class DlqHasConsumer(Conflict):
    """A consumer processes the DLQ, so its messages are neither shown nor redriven."""

    slug = "queue-has-consumer"
    title = "Dead-letter queue has a consumer"
    example = "orders_dlq has a consumer. Its own dead letters are in orders_dlq_dlq."


class QueueState(NamedTuple):
    """The approximate depths of a queue, in messages.

    ``oldest_age_s``: age of the oldest message in seconds; None where CloudWatch reports none.
    """

    name: str
    backlog: int
    in_flight: int
    delayed: int
    oldest_age_s: float | None
    dead_letters: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A redacted message of a DLQ. ``cause``: why it was dead-lettered, None if not recorded;
    ``receives``: how often it was received from the DLQ, this time included."""

    id: str
    sent_ms: int
    receives: int
    cause: str | None
    request_id: str | None
    body: Any

    @classmethod
    def of(cls, received: Received) -> DeadLetter:
        cause = received.attributes.get(CAUSE)
        return cls(
            received.id,
            received.sent_ms,
            received.receives,
            None if cause is None else redact(cause),
            _check_request_id(received.attributes.get(REQUEST)),
            redact_body(received.body),
        )


@dataclass(frozen=True, slots=True)
class RedriveResult:
    """``remaining``: about how many messages are left in the DLQ. ``missing``: chosen ids that were
    not received. ``backlog_too_long``: nothing was moved, the queue has over 10,000 messages."""

    moved: int
    remaining: int
    missing: tuple[str, ...] = ()
    backlog_too_long: bool = False


class PurgeResult(NamedTuple):
    """``remaining``: about how many messages are left in the DLQ. ``missing``: ids that were not
    received."""

    purged: int
    remaining: int
    missing: tuple[str, ...] = ()


def list_queues_with_dlq(names: Collection[str]) -> list[str]:
    """Return the names whose DLQ is in ``names``, sorted."""
    return sorted(name for name in names if dlq_of(name) in names)


def find_dlq(queue: str, names: Collection[str]) -> str:
    """Return the DLQ of ``queue``. Raises QueueNotFound, DlqHasConsumer."""
    dlq = dlq_of(queue)
    if queue not in names or dlq not in names:
        raise QueueNotFound(f"There is no queue {queue[:40]!r} with a dead-letter queue.")
    if dlq_of(dlq) in names:
        raise DlqHasConsumer(f"{dlq} has a consumer. Its own dead letters are in {dlq_of(dlq)}.")
    return dlq


def redact_body(body: str) -> Any:
    """Return ``body`` redacted, decoded if it is JSON, and cut to 4,000 characters."""
    try:
        decoded = _redact_value(json.loads(body, parse_constant=_reject_constant), _MAX_DEPTH)
        text = json.dumps(decoded, ensure_ascii=False)
    except (ValueError, RecursionError):
        return redact(body[: _MAX_TEXT_CHARS * 2])[:_MAX_TEXT_CHARS]
    return decoded if len(text) <= _MAX_TEXT_CHARS else text[:_MAX_TEXT_CHARS] + REDACTED


def redact(text: str) -> str:
    """Return ``text`` without what could be a phone number, a code or a token."""
    return _SECRET_TEXT.sub(REDACTED, text.encode(errors="replace").decode())


def _check_request_id(request_id: str | None) -> str | None:
    """Return ``request_id`` if it is valid: a sender other than the API may set any text."""
    good = request_id and REQUEST_ID.fullmatch(request_id) and re.search("[A-Za-z]", request_id)
    return request_id if good else None


def _redact_value(decoded: Any, depth: int) -> Any:
    if isinstance(decoded, str):
        return redact(decoded)
    if depth == 0 and isinstance(decoded, dict | list):
        return REDACTED
    if isinstance(decoded, list):
        return [_redact_value(item, depth - 1) for item in decoded]
    if isinstance(decoded, dict):
        return {
            redact(name): REDACTED if _SECRET_NAME.search(name) else _redact_value(value, depth - 1)
            for name, value in decoded.items()
        }
    return decoded


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
