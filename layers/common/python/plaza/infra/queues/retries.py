"""When a failed message is retried and when it is dead-lettered. No I/O.

A message that fails by its own error spends one of its attempts. A message that waits for Redis,
MySQL, SQS or a locked row spends time and no attempt.

SQS counts receives only. So a message that spent an attempt, or was received more often than there
are back-offs, is sent again as a new message with attributes for its attempts and its wait; its
receives begin at zero. Hence only a message whose consumers crashed reaches ``max_receives``, and
SQS moves it to the DLQ.

A batch whose first step is done, and whose second step has to wait, is sent again with an attribute
for the step, so that only that step is repeated (``at_step``). A version of Plaza that does not
know the step begins at the first one: each can be repeated.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, NamedTuple

from plaza.infra.runtime.errors import Busy, Unavailable

# Attributes, the same for all copies of a message: first sent, first received, attempts spent.
FIRST_SENT, WAITING_SINCE, ATTEMPTS = "first_sent_ms", "waiting_since_ms", "attempts"
# Attribute of a message whose steps before this one are done.
STEP = "step"
MAX_BUSY_DELAY_S = 5


class RetryPolicy(NamedTuple):
    """How long and how often the messages of a queue are retried."""

    max_wait_s: int = 12 * 3_600
    max_attempts: int = 5
    back_off_s: tuple[int, ...] = (5, 30, 120, 600)

    @property
    def max_receives(self) -> int:
        """The queue's ``maxReceiveCount``: twice the receives of a message that waits."""
        return 2 * (len(self.back_off_s) + 1)


class Action(Enum):
    """What happens to a failed message."""

    HIDE = auto()
    SEND_AGAIN = auto()
    DEAD_LETTER = auto()


class Delivery(NamedTuple):
    """The receives, times and attempts of one message; ``is_resent`` if it waited so long that it
    was sent again. ``step``: the one at which it resumes, None: the first one."""

    receives: int
    sent_ms: int
    waiting_since_ms: int
    attempts: int
    is_resent: bool
    step: str | None = None

    def passes(self, error: Exception) -> str | None:
        """Return the step that failed by ``error`` if the message has done a step before it."""
        step = error.step if isinstance(error, Unavailable) else None
        return None if step == self.step else step


class RetryDecision(NamedTuple):
    """The action, the seconds until the next delivery, and the attempts spent."""

    action: Action
    delay_s: int
    attempts: int


@contextmanager
def at_step(step: str) -> Iterator[None]:
    """Resume a batch at ``step`` if a dependency is unavailable within the context."""
    try:
        yield
    except Unavailable as error:
        error.step = step
        raise


def read_step(record: dict[str, Any]) -> str | None:
    """Return the step at which a message resumes, None: the first one."""
    step: str | None = record.get("messageAttributes", {}).get(STEP, {}).get("stringValue")
    return step


def read_sent_ms(record: dict[str, Any], now_ms: int) -> int:
    """Return when a message was first sent, ``now_ms`` if the record has no time."""
    return _read_number(record, FIRST_SENT, int(record["attributes"].get("SentTimestamp", now_ms)))


def read_delivery(record: dict[str, Any], now_ms: int) -> Delivery:
    """Return the delivery data of a record of Lambda."""
    # It waits since its first receive: time in a backlog is no outage.
    received_ms = int(record["attributes"].get("ApproximateFirstReceiveTimestamp", now_ms))
    return Delivery(
        int(record["attributes"]["ApproximateReceiveCount"]),
        read_sent_ms(record, now_ms),
        _read_number(record, WAITING_SINCE, received_ms),
        _read_number(record, ATTEMPTS, 0),
        WAITING_SINCE in record.get("messageAttributes", {}),
        read_step(record),
    )


def decide(delivery: Delivery, error: Exception, policy: RetryPolicy, now_ms: int) -> RetryDecision:
    """Return what happens to a message that failed by ``error``."""
    if not isinstance(error, Unavailable):
        attempts = delivery.attempts + 1
        if attempts >= policy.max_attempts:
            return RetryDecision(Action.DEAD_LETTER, 0, attempts)
        delay_s = policy.back_off_s[min(attempts, len(policy.back_off_s)) - 1]
        return RetryDecision(Action.SEND_AGAIN, delay_s, attempts)
    attempts = delivery.attempts
    if delivery.passes(error):  # the wait begins again
        return RetryDecision(Action.SEND_AGAIN, policy.back_off_s[0], attempts)
    if delivery.is_resent and now_ms - delivery.waiting_since_ms >= policy.max_wait_s * 1_000:
        return RetryDecision(Action.DEAD_LETTER, 0, attempts)
    is_last = delivery.receives > len(policy.back_off_s)
    if isinstance(error, Busy):
        delay_s = random.randint(1, MAX_BUSY_DELAY_S)  # spreads consumers that locked one row
    elif is_last or delivery.is_resent:
        delay_s = policy.back_off_s[-1]
    else:
        delay_s = policy.back_off_s[delivery.receives - 1]
    return RetryDecision(Action.SEND_AGAIN if is_last else Action.HIDE, delay_s, attempts)


def _read_number(record: dict[str, Any], name: str, default: int) -> int:
    text = record.get("messageAttributes", {}).get(name, {}).get("stringValue", "")
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else default
