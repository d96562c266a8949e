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

HIDDEN = "…"
_MOST_TEXT = 4_000
_MOST_DEPTH = 20
# Bodies of ours hold ids, versions and names of keys; but what died may be anybody's.
_SECRET_NAME = re.compile(
    r"phone|mobile|token|code|password|secret|authori|cookie|session", re.IGNORECASE
)
_SECRET_TEXT = re.compile(
    r"\+\d[\d ().-]{5,}\d"  # a phone number, as people write them
    r"|(?<!\d)\d{4,15}(?!\d)"  # one without the plus, or a code; an id of ours has more digits
    r"|[A-Za-z0-9_-]{32,}"  # a token
)


class QueueMissing(NotFound):
    """There is no such queue, or it gives nothing up."""


class HasConsumer(Conflict):
    """What is given up here is worked on: it is neither shown nor sent back."""

    slug = "has-a-consumer"
    title = "A consumer works on what this queue gives up"


class QueueState(NamedTuple):
    """A queue: about how many messages wait, are in flight, are delayed, and are dead letters.

    ``oldest_s``: the age of the oldest, seconds; None where CloudWatch does not say.
    """

    name: str
    waiting: int
    in_work: int
    delayed: int
    oldest_s: float | None
    dead: int


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
            None if cause is None else hide_secrets(cause),
            _sound(received.attributes.get(REQUEST)),
            show_body(received.body),
        )


@dataclass(frozen=True, slots=True)
class Redriven:
    """What a redrive came to. ``left``: about how many are dead still; ``missing``: of the chosen
    ones, those that were not met; ``held_back``: the queue has too much to do as it is."""

    moved: int
    left: int
    missing: tuple[str, ...] = ()
    held_back: bool = False


def working_queues(names: Collection[str]) -> list[str]:
    """Those of ``names`` that give up into another."""
    return sorted(name for name in names if dlq_of(name) in names)


def find_dlq(queue: str, names: Collection[str]) -> str:
    """The DLQ of ``queue``, for people to work on. Raises QueueMissing, HasConsumer."""
    dlq = dlq_of(queue)
    if queue not in names or dlq not in names:
        raise QueueMissing(f"There is no queue {queue[:40]!r} that gives anything up")
    if dlq_of(dlq) in names:
        raise HasConsumer(f"{dlq} has a consumer: what it could not do is in {dlq_of(dlq)}")
    return dlq


def show_body(body: str) -> Any:
    """What ``body`` says, as JSON if it is some, without secrets, and cut where it is long."""
    try:
        said = _without_secrets(json.loads(body, parse_constant=_refuse), _MOST_DEPTH)
        text = json.dumps(said, ensure_ascii=False)
    except (ValueError, RecursionError):
        return hide_secrets(body[: _MOST_TEXT * 2])[:_MOST_TEXT]
    return said if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + HIDDEN


def hide_secrets(text: str) -> str:
    """``text`` without what could be a phone number, a code or a token."""
    return _SECRET_TEXT.sub(HIDDEN, text.encode(errors="replace").decode())


def _sound(request_id: str | None) -> str | None:
    """Who sends to a queue past the API may have put anything there."""
    good = request_id and REQUEST_ID.fullmatch(request_id) and re.search("[A-Za-z]", request_id)
    return request_id if good else None


def _without_secrets(said: Any, depth: int) -> Any:
    if isinstance(said, str):
        return hide_secrets(said)
    if depth == 0 and isinstance(said, dict | list):
        return HIDDEN
    if isinstance(said, list):
        return [_without_secrets(item, depth - 1) for item in said]
    if isinstance(said, dict):
        return {
            hide_secrets(name): HIDDEN
            if _SECRET_NAME.search(name)
            else _without_secrets(value, depth - 1)
            for name, value in said.items()
        }
    return said


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
