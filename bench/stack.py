"""The stack on one machine under load: cold starts, likes through the API, idle CPU.

It runs in .local-bench, started like ``make run``. A file of interactions in PLAZA_REPLAY_FILE is
replayed, a fifth of it twice, while consumers are killed.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count as count_from
from itertools import islice
from pathlib import Path
from typing import Any

import psutil

from bench.figures import Figure, Goal
from cli.paths import CONTRACT, ROOT
from local.load.crowd import Client, Tally
from local.load.requests import Call
from local.stack.processes import wait_until
from local.stack.servers import connect_mysql
from local.stack.stack import Stack

DIRECTORY = ROOT / ".local-bench"
FIRST_USER = 7_000_001
FIRST_POST = 7_000_001
POSTS = 200
CROWD = 64
LIKES = 6_000
WARM_UP = 300
IDLE_S = 60  # all schedules of a minute run once
MAX_QUIET_S = 120


Send = tuple[Call, int | None]
"""A request and its user."""


def measure(*, quick: bool) -> list[Figure]:
    stack = Stack(DIRECTORY)
    stack.down()
    try:
        began_s = time.monotonic()
        stack.up()
        first = asyncio.run(play(stack.base_url, {}, [(Call("GET", "/health"), None)], 1))
        figures = [
            Figure(
                "stack: start until the first GET /health",
                time.monotonic() - began_s if first.errors == 0 else float("inf"),
                "s",
                goal=Goal("at most", 20),
            )
        ]
        tokens = sign_in(CROWD)
        add_posts(stack)
        figures += measure_cold(stack, tokens)
        figures += measure_likes(stack, tokens, LIKES // 10 if quick else LIKES)
        figures += measure_size(stack, tokens)
        figures += measure_idle(stack, IDLE_S)
        if path := os.environ.get("PLAZA_REPLAY_FILE"):
            figures += measure_replay(Path(path))
        return figures
    finally:
        stack.down()


def measure_cold(stack: Stack, tokens: Mapping[int, str]) -> list[Figure]:
    calls: list[Send] = [(Call("GET", "/feed"), user_id) for user_id in tokens]
    load = asyncio.run(play(stack.base_url, tokens, calls, len(calls)))
    return [
        Figure(
            f"{len(calls)} concurrent first requests to a cold function, slowest",
            max(load.latencies_s, default=0.0),
            "s",
            goal=Goal("at most", 4),
        ),
        Figure("  their errors", load.errors, "", goal=Goal("at most", 0)),
    ]


def measure_likes(stack: Stack, tokens: Mapping[int, str], count: int) -> list[Figure]:
    """Measure likes and unlikes, each of which is a change."""
    calls = make_likes(list(tokens))
    asyncio.run(play(stack.base_url, tokens, list(islice(calls, WARM_UP)), 16))
    figures = []
    for connections in (16, CROWD):
        likes = list(islice(calls, count))
        with cpu_of(stack) as used_s:
            load = asyncio.run(play(stack.base_url, tokens, likes, connections))
        name = f"likes through the API, {connections} connections"
        figures += [
            Figure(f"{name}: rate", load.rate, "likes/s", goal=Goal("at least", 600)),
            Figure(
                f"{name}: p99",
                load.percentiles.p99_ms,
                "ms",
                goal=Goal("at most", 80) if connections == 16 else None,
            ),
            Figure(f"{name}: errors", load.errors, "", goal=Goal("at most", 0)),
            Figure("  in flight, mean", load.in_flight[0], "requests"),
            *(
                Figure(f"  CPU of {part}", spent_s / count * 1000, "ms/like")
                for part, spent_s in sorted(used_s.items())
            ),
        ]
    return figures


def measure_size(stack: Stack, tokens: Mapping[int, str]) -> list[Figure]:
    """Measure workers and disk after a request to every route."""
    asyncio.run(play(stack.base_url, tokens, list(read_routes(FIRST_USER)), 8))
    workers = sum(len(pids) for pids in stack.read_workers().values())
    return [
        Figure("workers after every route was called", workers, "", goal=Goal("at most", 32)),
        Figure(
            "  disk used by the stack", disk_mb(stack.directory), "MB", goal=Goal("at most", 400)
        ),
    ]


def measure_idle(stack: Stack, seconds: float) -> list[Figure]:
    """Measure the CPU of all processes of the stack when it is idle."""
    wait_until(lambda: not stack.read_workers(), MAX_QUIET_S, step_s=0.5)
    with cpu_of(stack) as used_s:
        time.sleep(seconds)
    share = sum(used_s.values()) / seconds * 100
    return [
        Figure("idle stack, CPU of one core", share, "%", goal=Goal("at most", 5)),
        *(
            Figure(f"  {part}", spent_s / seconds * 100, "%")
            for part, spent_s in sorted(used_s.items())
        ),
    ]


def measure_replay(path: Path) -> list[Figure]:
    began_s = time.monotonic()
    process = local("replay", str(path), "--duplicates", "0.2", "--kill-consumers", "--json")
    took_s = time.monotonic() - began_s
    report: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return [
        Figure(f"replay of {path.name}", took_s, "s", goal=Goal("at most", 300)),
        Figure("  differences", len(report["differences"]), "", goal=Goal("at most", 0)),
        Figure("  not clean", int(not report["clean"]), "", goal=Goal("at most", 0)),
    ]


async def play(
    base_url: str, tokens: Mapping[int, str], calls: Sequence[Send], connections: int
) -> Tally:
    """Send ``calls`` once each, over ``connections`` connections."""
    async with Client(base_url, tokens, connections, max_attempts=1) as client:
        await client.connect_all()
        return await client.play(calls, lambda call: client.send(*call))


def make_likes(user_ids: Sequence[int]) -> Iterator[Send]:
    """Yield likes of all posts by each user, then unlikes, and so on, for ever."""
    for number in count_from(0):
        user, step = number % len(user_ids), number // len(user_ids)
        post = FIRST_POST + (step + user) % POSTS
        method = "PUT" if step // POSTS % 2 == 0 else "DELETE"
        yield Call(method, f"/posts/{post}/likes/me"), user_ids[user]


def read_routes(user_id: int) -> Iterator[Send]:
    contract = json.loads(CONTRACT.read_text())
    for _ in range(3):
        for path, methods in contract["paths"].items():
            filled = "/".join("1" if part.startswith("{") else part for part in path.split("/"))
            for method in methods:
                if not path.startswith("/auth/"):
                    yield Call(method.upper(), filled), user_id


def sign_in(count: int) -> dict[int, str]:
    user_ids = range(FIRST_USER, FIRST_USER + count)
    output = local("token", "--user", f"{user_ids[0]}-{user_ids[-1]}")
    return dict(zip(user_ids, output.stdout.split(), strict=True))


def local(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local", "--dir", str(DIRECTORY), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


def add_posts(stack: Stack) -> None:
    rows = ",".join(f"('post',{FIRST_POST + n},{FIRST_USER + n % CROWD})" for n in range(POSTS))
    with connect_mysql(stack.mysql_url) as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO content (content_type, content_id, author_id) VALUES {rows}")
        connection.commit()


@contextmanager
def cpu_of(stack: Stack) -> Iterator[dict[str, float]]:
    """Yield the CPU seconds of each part, filled after the block; ended workers are missing."""
    used_s: dict[str, float] = {}
    before = read_cpu(stack)
    yield used_s
    for key, seconds in read_cpu(stack).items():
        used_s[key[0]] = used_s.get(key[0], 0.0) + max(0.0, seconds - before.get(key, 0.0))


def read_cpu(stack: Stack) -> dict[tuple[str, int], float]:
    cpu_s = {}
    for process in stack.processes():
        leader = process.find()
        if leader is None:
            continue
        cpu_s[process.name, leader.pid] = _seconds_of(leader)
        for child in leader.children(recursive=True):
            cpu_s["workers", child.pid] = _seconds_of(child)
    return cpu_s


def disk_mb(directory: Path) -> float:
    blocks = 0
    for path in directory.rglob("*"):
        try:
            blocks += path.lstat().st_blocks
        except FileNotFoundError:
            continue
    return blocks * 512 / 1e6


def _seconds_of(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system
