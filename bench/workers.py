"""Load from several processes, as workers of Lambda run: each with connections of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple
from unittest import mock

from bench.api import Event, Handler
from local.load.crowd import WORKERS, Tally, play_in_processes
from local.stack.functions import CONTEXT
from plaza.infra.queues import sqs

Request = Callable[[], bool]
"""Sends a request; returns whether it succeeded."""


class Load(NamedTuple):
    """What the processes did, and the messages that they sent, as (queue, body)."""

    tally: Tally
    messages: list[tuple[str, str]]


def build_request(handler: Handler, event: Event) -> Request:
    """Return a request that succeeds if its status is below 300."""
    return lambda: handler(event, CONTEXT)["statusCode"] < 300


def play(
    requests: Sequence[Request],
    inside: Callable[[], AbstractContextManager[Any]] = nullcontext,
    workers: int = WORKERS,
) -> Load:
    """Share the requests out to processes, each ``inside`` a context."""

    @contextmanager
    def record() -> Iterator[list[tuple[str, str]]]:
        sent: list[tuple[str, str]] = []
        send = sqs.send

        def keep(queue: str, body: str, delay_s: int = 0) -> None:
            send(queue, body, delay_s)
            sent.append((queue, body))

        with mock.patch.object(sqs, "send", keep), inside():
            yield sent

    tally, messages = play_in_processes(requests, record, workers)
    return Load(tally, [message for part in messages for message in part])
