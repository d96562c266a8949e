"""CPU of one like in the API function, and of its parts."""

import asyncio
import os
from collections.abc import Callable
from itertools import count
from typing import Any
from unittest import mock

import aiohttp
import boto3
import psutil
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

from bench.api import Event, Handler, call, clip_event, like_event, load_handler
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness
from bench.meters import cpu_ms
from cli.paths import CommandError
from local.stack.bed import serve_module
from local.stack.functions import load_function
from local.stack.ports import free_port
from plaza.core.reactions import redis_gate, redis_keys
from plaza.core.reactions.kinds import LIKE
from plaza.core.reactions.model import ReactionEvent, ReactionKey, Target
from plaza.core.reactions.queues import REACTIONS
from plaza.infra.queues import sqs as sqs_client
from plaza.infra.redis import connections, masters
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.settings import settings
from plaza.people.auth import new_session
from plaza.people.auth.caller_identity import identify as read_session

POSTS = range(1, 101)
CALLS = 1000
ROUNDS = 5
LIKES_OF_A_USER = 10
CONNECTIONS = 16
QUEUE = "reactions"
NEVER_US = 2**53  # deadline

_users = count(1)  # a new user for each like, so that each like is a change


def measure(harness: Harness) -> list[Figure]:
    harness.clear()
    harness.add_posts(POSTS)
    handler = load_handler()
    for post_id in POSTS:
        call(handler, like_event(post_id, next(_users)))

    with mock.patch.object(sqs_client, "send", _send_nothing):
        whole_but_sqs = _cpu_of_likes(harness, handler)
    whole = _cpu_of_likes(harness, handler)
    for clip_id in POSTS:
        call(handler, clip_event(clip_id, next(_users)))
    of_app = _cpu_of_likes(harness, handler, clip_event)
    with_session = _cpu_of_likes_with_sessions(harness)

    resolver = _cpu_of_likes(harness, _resolver(APIGatewayHttpResolver()))
    validating = _cpu_of_likes(harness, _resolver(APIGatewayHttpResolver(enable_validation=True)))
    script = _cpu_ms(harness, _run_gate_bare)
    gate = _cpu_ms(harness, _run_gate)
    line = _cpu_ms(harness, _log)
    sqs = boto3.client("sqs")
    body = REACTIONS.encode(
        ReactionEvent(ReactionKey("post", 1, "like", 7), True, 1_743_760_800_000_000)
    )
    url = settings().queues[QUEUE]
    boto = _cpu_ms(harness, lambda _: sqs.send_message(QueueUrl=url, MessageBody=body))
    ours = _cpu_ms(harness, lambda _: sqs_client.send(QUEUE, body))

    fastapi = _cpu_of_fastapi(harness)

    minimum = Peer("resolver + script + log line", resolver + script + line)
    sending = Peer("boto3", boto)
    own, of_send = Goal("at most", 1.5, "ratio"), Goal("at most", 0.4, "ratio")
    return [
        Figure("like, CPU, session and SQS excluded", whole_but_sqs, "ms", minimum, own),
        Figure("like, CPU, all of it", with_session, "ms", sending, of_send),
        Figure(
            "likes a second and core, all of it",
            1000 / with_session,
            "likes/s",
            Peer("FastAPI and Uvicorn, five calls", 1000 / fastapi),
            Goal("at least", 1, "ratio"),
        ),
        Figure("  without session and rate limit", whole, "ms"),
        Figure(
            "  likes a second and core of targets of the app",
            1000 / of_app,
            "likes/s",
            Peer("of posts", 1000 / whole),
            Goal("at least", 0.95, "ratio"),
        ),
        Figure("  Powertools resolver alone", resolver, "ms"),
        Figure("  resolver with validation", validating, "ms", Peer("resolver", resolver)),
        Figure("  script alone, bare redis-py", script, "ms"),
        Figure("  redis_gate.gate alone", gate, "ms", Peer("bare redis-py", script)),
        Figure("  log line alone", line, "ms"),
        Figure("  boto3 send_message alone", boto, "ms"),
        Figure("  sqs_client.send alone", ours, "ms", sending),
    ]


def _send_nothing(queue: str, body: str, delay_s: int = 0) -> None:
    """Takes the place of ``sqs.send``; a mock would cost more than what is measured."""


def _cpu_of_likes(
    harness: Harness, handler: Handler, make: Callable[[int, int], Event] = like_event
) -> float:
    calls = harness.scale(CALLS) * ROUNDS
    events = iter([make(POSTS[i % len(POSTS)], next(_users)) for i in range(calls)])
    return _cpu_ms(harness, lambda _: call(handler, next(events)))


def _cpu_of_likes_with_sessions(harness: Harness) -> float:
    """Return the CPU of a like with its session and rate limit. A user has ten likes, and the
    process knows the owner of the session, as it mostly does."""
    handler: Handler = load_function("api/reactions").handler
    calls = harness.scale(CALLS) * ROUNDS
    users = [next(_users) for _ in range(calls // LIKES_OF_A_USER)]
    events = []
    for user_id, token in zip(users, new_session.open_sessions(users), strict=True):
        header = {"authorization": f"Bearer {token}"}
        read_session(header["authorization"], "203.0.113.7", "GET /feed")
        for post_id in POSTS[:LIKES_OF_A_USER]:
            event = like_event(post_id, user_id)
            events.append(event | {"headers": event["headers"] | header})
    remaining = iter(events)
    return _cpu_ms(harness, lambda _: call(handler, next(remaining)))


def _cpu_of_fastapi(harness: Harness) -> float:
    """Return the CPU of a process of Uvicorn for a like, sent over 16 connections."""
    port = free_port()
    args = ("bench.baselines.fastapi_like:app", f"--port={port}", "--no-access-log")
    env = os.environ | {"BENCH_REDIS_URL": harness.redis_url}
    with serve_module(harness.directory, port, "uvicorn", *args, env=env) as process:
        server, used_ms = psutil.Process(process.pid), []
        for _ in range(ROUNDS):
            calls = harness.scale(CALLS)
            before = server.cpu_times()
            asyncio.run(_send_likes(f"http://127.0.0.1:{port}", calls))
            after = server.cpu_times()
            used_s = after.user + after.system - before.user - before.system
            used_ms.append(used_s * 1000 / calls)
    return min(used_ms)


async def _send_likes(url: str, count: int) -> None:
    waiting = iter(range(count))
    async with aiohttp.ClientSession() as session:

        async def work() -> None:
            for number in waiting:
                path = f"{url}/posts/{POSTS[number % len(POSTS)]}/likes/me"
                async with session.put(path, headers={"user": str(next(_users))}) as response:
                    if response.status != 200:
                        raise CommandError(await response.text())

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))


def _cpu_ms(harness: Harness, work: Callable[[int], object]) -> float:
    calls = harness.scale(CALLS)

    def run() -> None:
        for i in range(calls):
            work(i)

    return min(cpu_ms(run) for _ in range(ROUNDS)) / calls


def _resolver(app: APIGatewayHttpResolver) -> Handler:
    @app.put("/posts/<post_id>/likes/me")
    def like_post(post_id: str) -> dict[str, Any]:
        return {"liked": True, "likes": 41, "changed": True, "exact": True}

    return lambda event, context: app.resolve(event, context)  # type: ignore[arg-type]


def _run_gate(i: int) -> None:
    redis_gate.gate(LIKE, _target(i), next(_users), True, "bench", None)


def _run_gate_bare(i: int) -> None:
    keys = redis_keys.keys_of(LIKE.name, _target(i))
    script, actor = redis_gate.GATE, next(_users)
    of_script = redis_gate.gate_keys(keys)
    term, limit = masters.find_node(keys.meta).term, 1_000_000
    args = (actor, 1, "bench", NEVER_US, term, limit, keys.member, 0)
    connections.client().execute_command("EVALSHA", script.sha, len(of_script), *of_script, *args)


def _target(i: int) -> Target:
    return Target("post", POSTS[i % len(POSTS)])


def _log(i: int) -> None:
    route = "PUT /posts/{post_id}/likes/me"
    record(
        "request_served", route=route, status=200, duration_ms=1.23, request_id="JKJaXmPLvHcESHA="
    )
