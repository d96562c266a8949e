"""Load from several processes, as workers of Lambda run: each with connections of its own."""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from unittest import mock

from bench.api import Event, Handler
from local.stack.functions import CONTEXT
from plaza.infra.mysql import mysql
from plaza.infra.queues import sqs
from plaza.infra.redis import connections
from plaza.infra.runtime.process import reset_process

WORKERS = 4
_TIMEOUT_S = 600

Request = Callable[[], bool]
"""Sends a request; returns whether it succeeded."""


def build_request(handler: Handler, event: Event) -> Request:
    """Return a request that succeeds if its status is below 300."""
    return lambda: handler(event, CONTEXT)["statusCode"] < 300


class Load(NamedTuple):
    """What the processes did: latencies of requests that succeeded, without the first of
    each process, errors, and messages as (queue, body)."""

    took_s: float
    latencies_s: list[float]
    errors: int
    messages: list[tuple[str, str]]

    @property
    def rate(self) -> float:
        return len(self.latencies_s) / self.took_s


def play(
    requests: Sequence[Request],
    inside: Callable[[], AbstractContextManager[Any]] = nullcontext,
    workers: int = WORKERS,
) -> Load:
    """Share the requests out to processes with connections of their own, ``inside`` a context."""
    fork = multiprocessing.get_context("fork")
    ready = fork.Barrier(workers + 1)
    finished: Any = fork.SimpleQueue()

    def work(part: Sequence[Request]) -> None:
        for inherited in (connections._client, mysql._connection, sqs._sender):
            inherited.forget()
        reset_process()  # blocks of ids, too
        sent: list[tuple[str, str]] = []
        send = sqs.send

        def keep(queue: str, body: str, delay_s: int = 0) -> None:
            send(queue, body, delay_s)
            sent.append((queue, body))

        latencies_s, errors = [], 0
        with mock.patch.object(sqs, "send", keep), inside():
            errors += not part[0]()  # connects, and is not measured
            ready.wait()
            for request in part[1:]:
                began_s = time.perf_counter()
                if request():
                    latencies_s.append(time.perf_counter() - began_s)
                else:
                    errors += 1
            ready.wait()
        finished.put((latencies_s, errors, sent))

    processes = [fork.Process(target=work, args=(requests[i::workers],)) for i in range(workers)]
    for process in processes:
        process.start()
    ready.wait(timeout=60)
    began_s = time.perf_counter()
    ready.wait(timeout=_TIMEOUT_S)
    took_s = time.perf_counter() - began_s
    parts = [finished.get() for _ in processes]
    for process in processes:
        process.join()
    return Load(
        took_s,
        [latency_s for part in parts for latency_s in part[0]],
        sum(part[1] for part in parts),
        [message for part in parts for message in part[2]],
    )
