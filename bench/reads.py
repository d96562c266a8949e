"""CPU of what clients read most: a page of the feed, a post, the totals of 100 targets, and a
poll of a screen.

Each is compared with redis-py sending the same commands in the same pipelines, without an API.
"""

from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from random import Random
from statistics import median
from typing import Any
from unittest import mock

from bench import feed
from bench.api import Event, Handler, call, load_handler, poll_event, post_event, query_event
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness
from bench.meters import cpu_ms
from local.stack.functions import CONTEXT
from plaza.infra.http import responses
from plaza.infra.redis import connections
from plaza.infra.redis.commands import Command
from plaza.infra.runtime.process import clear_caches

CALLS = 10
ROUNDS = 20
READER = 42_000_000
QUERIED, POLLED = range(1, 101), range(1, 11)
_SYLLABLES = [f"{a}{b}" for a in "bdfghklmnprstvw" for b in ("a", "e", "in", "or", "un", "i")]


def measure(harness: Harness) -> list[Figure]:
    harness.clear()
    with feed.without_queues():
        [post_id, *_] = feed.fill_inbox(harness, READER, partial(_write_text, Random(7)))
        content, reactions = load_handler("content"), load_handler("reactions")
        harness.add_posts(QUERIED)
        cases: list[tuple[str, Callable[[], None], float]] = [
            ("feed page of 20", partial(call, load_handler("feed"), feed.page_event(READER)), 1.5),
            ("page of a post", partial(call, content, post_event(post_id, READER)), 2.5),
            ("totals of 100 targets", partial(call, reactions, query_event(QUERIED, READER)), 2),
            ("poll of ten posts", partial(call, load_handler("totals"), poll_event(POLLED)), 2.5),
        ]
        figures = [
            figure
            for name, work, bound in cases
            for figure in _compare(harness, name, work, Goal("at most", bound, "ratio"))
        ]
        return [*figures, *_compress(load_handler("feed"), feed.page_event(READER))]


def _write_text(random: Random) -> str:
    """Return 150 words, of which some are common."""
    return " ".join(f"{random.choice(_SYLLABLES)}{random.choice(_SYLLABLES)}" for _ in range(150))


def _compress(handler: Handler, event: Event) -> list[Figure]:
    plain = handler(event | {"headers": event["headers"] | {"accept-encoding": ""}}, CONTEXT)
    packed = handler(event, CONTEXT)
    used_ms = min(cpu_ms(lambda: responses.compress(event, deepcopy(plain))) for _ in range(100))
    sizes = len(b64decode(packed["body"])), len(plain["body"].encode())
    return [
        Figure("feed page of 20, gzipped", sizes[0], "bytes", Peer("plain", sizes[1])),
        Figure("  CPU of gzip and base64", used_ms, "ms"),
    ]


def _compare(harness: Harness, name: str, work: Callable[[], None], goal: Goal) -> list[Figure]:
    """Return the CPU of ``work`` and of its commands, measured in turns."""
    work()
    with _recorded_commands() as sent:
        work()

    def work_uncached() -> None:
        clear_caches()
        work()

    works: list[Callable[[], None]] = [work, work_uncached, partial(_send, sent)]
    used_ms: list[list[float]] = [[] for _ in works]
    for _ in range(harness.scale(ROUNDS)):
        for used, command in zip(used_ms, works, strict=True):
            used += [cpu_ms(command) for _ in range(CALLS)]
    cached, uncached, bare = map(median, used_ms)
    peer = Peer("its commands by redis-py", bare)
    return [
        Figure(f"{name}, CPU, p50", cached, "ms", peer, goal),
        Figure("  without cached texts", uncached, "ms", peer),
    ]


@contextmanager
def _recorded_commands() -> Iterator[list[Sequence[Command]]]:
    """Yield the pipelines that are sent to Redis in the block."""
    sent: list[Sequence[Command]] = []
    send = connections.exchange

    def record(to: Any, commands: Sequence[Command]) -> list[Any]:
        sent.append(commands)
        return send(to, commands)

    with mock.patch.object(connections, "exchange", record):
        yield sent


def _send(pipelines: Sequence[Sequence[Command]]) -> None:
    for commands in pipelines:
        pipeline = connections.client().pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        pipeline.execute()
