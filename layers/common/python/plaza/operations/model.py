"""Queues as operators see them, and what of a dead message may be shown. No I/O.

A queue ``x`` gives up into ``x_dlq``. A DLQ that has a DLQ of its own has a consumer too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from plaza.infra.dead_letters import CAUSE, dlq_of
from plaza.infra.errors import Conflict, NotFound
from plaza.infra.observability import REQUEST_ID
from plaza.infra.sqs import REQUEST, Received

REDACTED = "…"
_MAX_TEXT_CHARS = 4_000
_MAX_DEPTH = 20
# Bodies of ours hold ids, versions and names of keys; but what died may be anybody's.
_SECRET_NAME = re.compile(
    r"phone|mobile|token|code|password|secret|authori|cookie|session", re.IGNORECASE
)
_SECRET_TEXT = re.compile(
    r"\+\d[\d ().-]{5,}\d"  # a phone number, as people write them
    r"|(?<!\d)\d{4,15}(?!\d)"  # one without the plus, or a code; an id of ours has more digits
    r"|[A-Za-z0-9_-]{32,}"  # a token
)


class QueueNotFound(NotFound):
    """There is no such queue, or it gives nothing up."""


class DlqHasConsumer(Conflict):
    """What is given up here is worked on: it is neither shown nor sent back."""

    slug = "queue-has-consumer"
    title = "Dead-letter queue has a consumer"


class QueueState(NamedTuple):
    """A queue: about how many messages wait, are in flight, are delayed, and are dead letters.

    ``oldest_age_s``: the age of the oldest, seconds; None where CloudWatch does not say.
    """

    name: str
    backlog: int
    in_flight: int
    delayed: int
    oldest_age_s: float | None
    dead_letters: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message of a DLQ, fit to be shown. ``cause``: why it was dead-lettered, None where nothing
    says so.

    ``receives`` counts how often it was received there, this time too.
    """

    id: str
    sent_ms: int
    receives: int
    cause: str | None
    request_id: str | None
    body: Any

    @classmethod
    def of(cls, received: Received) -> DeadLetter:
        """What may be shown of ``received``."""
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
    """What a redrive came to. ``remaining``: about how many are dead still; ``missing``: of the chosen
    ones, those that were not met; ``backlog_too_long``: the queue has too much to do as it is."""

    moved: int
    remaining: int
    missing: tuple[str, ...] = ()
    backlog_too_long: bool = False


def list_queues_with_dlq(names: Collection[str]) -> list[str]:
    """Those of ``names`` that give up into another."""
    return sorted(name for name in names if dlq_of(name) in names)


def find_dlq(queue: str, names: Collection[str]) -> str:
    """The DLQ of ``queue``, for people to work on. Raises QueueNotFound, DlqHasConsumer."""
    dlq = dlq_of(queue)
    if queue not in names or dlq not in names:
        raise QueueNotFound(f"There is no queue {queue[:40]!r} that gives anything up")
    if dlq_of(dlq) in names:
        raise DlqHasConsumer(f"{dlq} has a consumer: what it could not do is in {dlq_of(dlq)}")
    return dlq


def redact_body(body: str) -> Any:
    """What ``body`` says, as JSON if it is some, without secrets, and cut where it is long."""
    try:
        decoded = _redact_value(json.loads(body, parse_constant=_reject_constant), _MAX_DEPTH)
        text = json.dumps(decoded, ensure_ascii=False)
    except (ValueError, RecursionError):
        return redact(body[: _MAX_TEXT_CHARS * 2])[:_MAX_TEXT_CHARS]
    return decoded if len(text) <= _MAX_TEXT_CHARS else text[:_MAX_TEXT_CHARS] + REDACTED


def redact(text: str) -> str:
    """``text`` without what could be a phone number, a code or a token."""
    return _SECRET_TEXT.sub(REDACTED, text.encode(errors="replace").decode())


def _check_request_id(request_id: str | None) -> str | None:
    """Who sends to a queue past the API may have put anything there."""
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
    raise ValueError(f"{constant} is no JSON")
