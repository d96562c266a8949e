"""Hot keys: reads a second of one target by anonymous callers, and the CPU of Redis for each.

The peer is the same run with nothing in the memory of processes: each read goes to the master. The
last figure reads an author who is not hot enough for memory from a replica.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest import mock

from bench.api import Event, like_event, load_handler
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness, insert_rows
from bench.meters import redis_cpu_s
from bench.workers import Load, build_request, play
from cli.paths import CommandError
from local.stack.functions import make_api_event
from local.stack.processes import wait_until
from local.stack.servers import connect_redis, prepare_redis, run_server
from plaza.core.reactions.persist import REACTIONS
from plaza.infra.redis import redis
from plaza.infra.runtime.process import HotCache

READS = 12_000
ID = 31_000_001
LIKERS = range(ID, ID + 20)
AUTHOR = "its author", "GET /users/{user_id}", "users"
READ = (
    ("a post", "GET /posts/{post_id}", "content"),
    ("its likers", "GET /posts/{post_id}/likers", "reactions"),
    AUTHOR,
    ("a shop", "GET /shops/{shop_id}", "shops"),
)
Context = Callable[[], AbstractContextManager[Any]]


def measure(harness: Harness) -> list[Figure]:
    """Measure each route with and without memory, then the author with and without a replica."""
    harness.clear()
    harness.add_users(LIKERS)
    insert_rows("content (content_type, content_id, author_id, title)", [f"('post',{ID},{ID},'')"])
    insert_rows("shop (id, name)", [f"({ID},'Noodles')"])
    likes = play([build_request(load_handler(), like_event(ID, user_id)) for user_id in LIKERS])
    bodies = [body for queue, body in likes.messages if queue == REACTIONS.name]
    REACTIONS.handle([REACTIONS.decode(body) for body in bodies])
    figures = []
    for name, route, function in READ:
        bare, bare_us = _read(harness, route, function, _without_memory)
        load, took_us = _read(harness, route, function, nullcontext)
        figures += [
            Figure(
                f"reads/s of {name}",
                load.tally.rate,
                "reads/s",
                Peer("without memory", bare.tally.rate),
            ),
            *_describe("  CPU of Redis for a read", took_us, "without memory", bare_us, load),
        ]
    _, route, function = AUTHOR
    _, bare_us = _read(harness, route, function, _without_memory)
    with _replica(harness):
        load, took_us = _read(harness, route, function, _without_memory)
    return figures + _describe(
        "CPU of the master for a read of a warm author", took_us, "without a replica", bare_us, load
    )


def _describe(name: str, took_us: float, peer: str, peer_us: float, load: Load) -> list[Figure]:
    return [
        Figure(name, took_us, "us", Peer(peer, peer_us), Goal("at most", 0.5, "ratio")),
        Figure("  errors", load.tally.errors, "", goal=Goal("at most", 0)),
    ]


def _read(harness: Harness, route: str, function: str, inside: Context) -> tuple[Load, float]:
    """Read one target from several processes; return what they did and the CPU of the master for
    each read, in microseconds."""
    request = build_request(load_handler(function), _anonymous_event(route))
    count = harness.scale(READS)
    play([request] * 100, inside)  # loads the target
    began_s = redis_cpu_s()
    load = play([request] * count, inside)
    return load, (redis_cpu_s() - began_s) / count * 1e6


def _anonymous_event(route: str) -> Event:
    [parameter] = re.findall(r"{(\w+)}", route)
    event = make_api_event(route, 0, **{parameter: ID})
    return event | {"headers": {k: v for k, v in event["headers"].items() if k != "authorization"}}


def _without_memory() -> AbstractContextManager[Any]:
    return mock.patch.object(HotCache, "put", return_value=None)


@contextmanager
def _replica(harness: Harness) -> Iterator[None]:
    """Let all processes read from a replica of the master."""
    with (
        run_server(prepare_redis(harness.directory / "replica")) as server,
        connect_redis(server.url, cluster=False) as client,
        mock.patch.dict("os.environ", PLAZA_REDIS_READER_URL=server.url),
    ):
        client.execute_command("REPLICAOF", "127.0.0.1", str(harness.redis_port))
        redis.execute("SET", "{bench}:replica", "here")
        if not wait_until(lambda: client.get("{bench}:replica") == "here", 20):
            raise CommandError("the replica does not follow its master")
        yield
