"""Sending dead messages back to the queue that gave them up, in bounded steps.

Each message is sent, then deleted: whoever dies in between, or is asked twice, leaves a message too
many, and consumers bear that. Slowly: a consumer that has just recovered is not to be flooded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator

from plaza.infra import clock, dead_letters, sqs
from plaza.infra.observability import record
from plaza.infra.settings import settings
from plaza.infra.sqs import QueueDown, Received
from plaza.operations.operations import Redriven, find_dlq

MOST_S = 5.0
PER_S = 100
MOST_PER_CALL = int(MOST_S * PER_S)
_MOST_BACKLOG = 10_000
_HIDE_S = 30


def redrive(
    queue: str, by: str, ids: Collection[str] | None = None, most: int | None = None
) -> Redriven:
    """Send back what ``queue`` gave up: all, or ``ids`` of them, or ``most``; for ``by``.

    For five seconds at most, about 500 messages sent and as many passed over: what is ``left``
    takes another call. What comes to the DLQ meanwhile stays there, so what can't be read is sent
    back once a call. Raises QueueMissing, HasConsumer; QueueDown, and then some may have been sent.
    """
    dlq = find_dlq(queue, settings().queues)
    wanted = None if ids is None else set(ids)
    if sqs.measure(queue).backlog > _MOST_BACKLOG:
        record("redrive_held_back", queue=queue, by=by)
        return Redriven(0, sum(sqs.measure(dlq)), tuple(sorted(wanted or ())), held_back=True)
    moved = 0
    try:
        for message in _move(dlq, queue, wanted, MOST_PER_CALL if most is None else most):
            moved += 1
            if wanted is not None:
                wanted.discard(message.id)
    finally:
        chosen = None if ids is None else len(ids)
        record("messages_redriven", {"redriven": moved}, queue=queue, by=by, chosen=chosen)
    return Redriven(moved, sum(sqs.measure(dlq)), tuple(sorted(wanted or ())))


def _move(dlq: str, queue: str, wanted: Collection[str] | None, most: int) -> Iterator[Received]:
    """Those that were sent, as long as there are any, and time."""
    began_s, began_ms = clock.monotonic_s(), clock.now_s() * 1000
    passed_over: list[Received] = []
    moved = 0
    try:
        while (
            moved < most
            and (wanted is None or wanted)
            and len(passed_over) < MOST_PER_CALL  # to let them go takes time, too
            and clock.monotonic_s() - began_s < MOST_S
        ):
            found = sqs.receive(dlq, _HIDE_S)
            if not found:
                break
            chosen = [
                message
                for message in found
                if message.sent_ms <= began_ms and (wanted is None or message.id in wanted)
            ][: most - moved]
            passed_over += [message for message in found if message not in chosen]
            for parcel in sqs.split(chosen, lambda message: sqs.count_bytes(message.body)):
                sent = dead_letters.redrive(queue, parcel)
                passed_over += [message for message in parcel if message not in sent]
                moved += len(sent)
                yield from sent
            clock.sleep(max(0.0, moved / PER_S - (clock.monotonic_s() - began_s)))
    finally:
        with contextlib.suppress(QueueDown):  # they come back by themselves
            sqs.release(dlq, passed_over)
