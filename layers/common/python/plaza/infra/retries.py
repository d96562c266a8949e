"""When a message that its consumer could not do comes again, and when it is given up. No I/O.

Two things go wrong, and each has a count of its own. A message that fails by itself spends an
attempt. A message that waits for Redis, MySQL, SQS or a locked row spends time and no attempt.

SQS counts receives only, which tells neither. So a message that spent an attempt, or waited for as
many receives as there are back-offs, is sent anew with attributes that say so, and its receives
begin at zero. A message that SQS itself moves to the DLQ, after ``max_receives``, is one over which
consumers died.
"""

from __future__ import annotations

import random
from enum import Enum, auto
from typing import Any, NamedTuple

from plaza.infra.errors import Busy, Unavailable

FIRST_SENT = (
    "first_sent_ms"  # attribute: when the message was first sent, whatever became of it since
)
WAITING_SINCE = "waiting_since_ms"  # attribute: when it was first received, in all its lives
ATTEMPTS = "attempts"  # attribute: how many it has spent
MAX_BUSY_DELAY_S = 5


class RetryPolicy(NamedTuple):
    """How long, and how often, the messages of a queue are tried."""

    max_wait_s: int = 12 * 3_600
    max_attempts: int = 5
    back_off_s: tuple[int, ...] = (5, 30, 120, 600)

    @property
    def max_receives(self) -> int:
        """The queue's ``maxReceiveCount``: twice as many as a message that waits needs."""
        return 2 * (len(self.back_off_s) + 1)


class Action(Enum):
    """What becomes of a message that could not be done."""

    HIDE = auto()
    SEND_AGAIN = auto()
    DEAD_LETTER = auto()


class Delivery(NamedTuple):
    """What SQS and its attributes say of one message."""

    receives: int
    sent_ms: int
    waiting_since_ms: int
    attempts: int
    is_resent: bool  # it waited so long that it was sent anew


class RetryDecision(NamedTuple):
    """The action, after how many seconds the message comes again, and the attempts it has spent."""

    action: Action
    delay_s: int
    attempts: int


def read_sent_ms(record: dict[str, Any], now_ms: int) -> int:
    """Read when a message was first sent; ``now_ms`` where nothing says so."""
    return _read_number(record, FIRST_SENT, int(record["attributes"].get("SentTimestamp", now_ms)))


def read_delivery(record: dict[str, Any], now_ms: int) -> Delivery:
    """Read the delivery of ``record``, as Lambda hands it over."""
    # Not since it was sent: a backlog is no outage.
    received_ms = int(record["attributes"].get("ApproximateFirstReceiveTimestamp", now_ms))
    return Delivery(
        int(record["attributes"]["ApproximateReceiveCount"]),
        read_sent_ms(record, now_ms),
        _read_number(record, WAITING_SINCE, received_ms),
        _read_number(record, ATTEMPTS, 0),
        WAITING_SINCE in record.get("messageAttributes", {}),
    )


def decide(delivery: Delivery, error: Exception, policy: RetryPolicy, now_ms: int) -> RetryDecision:
    """Decide what becomes of a message that failed by ``error``."""
    if not isinstance(error, Unavailable):
        attempts = delivery.attempts + 1
        if attempts >= policy.max_attempts:
            return RetryDecision(Action.DEAD_LETTER, 0, attempts)
        delay_s = policy.back_off_s[min(attempts, len(policy.back_off_s)) - 1]
        return RetryDecision(Action.SEND_AGAIN, delay_s, attempts)
    attempts = delivery.attempts
    if delivery.is_resent and now_ms - delivery.waiting_since_ms >= policy.max_wait_s * 1_000:
        return RetryDecision(Action.DEAD_LETTER, 0, attempts)
    is_last = delivery.receives > len(policy.back_off_s)
    if isinstance(error, Busy):
        delay_s = random.randint(1, MAX_BUSY_DELAY_S)  # who met at a row does not meet there again
    elif is_last or delivery.is_resent:
        delay_s = policy.back_off_s[-1]
    else:
        delay_s = policy.back_off_s[delivery.receives - 1]
    return RetryDecision(Action.SEND_AGAIN if is_last else Action.HIDE, delay_s, attempts)


def _read_number(record: dict[str, Any], name: str, default: int) -> int:
    text = record.get("messageAttributes", {}).get(name, {}).get("stringValue", "")
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else default
