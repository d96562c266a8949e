"""Looking at queues, and into what they gave up."""

from __future__ import annotations

import contextlib

from plaza.infra import queue_ages, sqs
from plaza.infra.clock import Deadline
from plaza.infra.dead_letters import dlq_of
from plaza.infra.observability import record
from plaza.infra.settings import settings
from plaza.infra.sqs import QueueDown, Received
from plaza.operations.operations import DeadLetter, QueueState, find_dlq, working_queues

MOST_S = 4.0
_HIDE_S = 10


def read_queues() -> list[QueueState]:
    """All queues, by name. Raises QueueDown."""
    names = working_queues(settings().queues)
    ages_s = queue_ages.read_ages(names)
    states = []
    for name in names:
        depth, dead = sqs.measure(name), sqs.measure(dlq_of(name))
        states.append(QueueState(name, *depth, ages_s.get(name), sum(dead)))
    return states


def show_dead_letters(queue: str, most: int, by: str) -> list[DeadLetter]:
    """Up to ``most`` of the messages that ``queue`` gave up, for ``by``; which ones is up to SQS.

    They are hidden from others for a moment, ten seconds if this process dies; a DLQ that is for
    people gives nothing up, so being looked at brings nothing nearer to its end. Raises
    QueueMissing, HasConsumer, QueueDown.
    """
    dlq = find_dlq(queue, settings().queues)
    deadline = Deadline.in_s(MOST_S)
    received: dict[str, Received] = {}
    try:
        while len(received) < most and not deadline.has_passed:
            if not (found := sqs.receive(dlq, _HIDE_S)):
                break
            received.update((message.id, message) for message in found)
    finally:
        with contextlib.suppress(QueueDown):  # they come back by themselves
            sqs.release(dlq, received.values())
    letters = [DeadLetter.of(message) for message in received.values()][:most]
    record("dead_letters_shown", queue=queue, by=by, shown=len(letters))
    return sorted(letters, key=lambda letter: (letter.sent_ms, letter.id))
