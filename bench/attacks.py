"""A bystander's p95 while one caller asks for the dearest pages, within its rate limit.

The attacks are 20 requests a second of an old feed page by one user, and 50 a second of shops from
outside a city by one address. Each is sent by four processes, whether or not they are answered.
"""

import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.queues import Queue
from statistics import quantiles
from typing import NamedTuple

from bench import pages
from bench.api import call, load_handler
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness
from bench.large_data import POST, READER, WRITER, fill
from bench.pages import CASES, build_event
from local.stack.functions import CONTEXT, load_function, make_api_event
from plaza.infra.http.callers import Caller
from plaza.infra.http.limits import anonymous_bucket
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, redis
from plaza.infra.runtime.process import clear_caches
from plaza.people.auth.caller_identity import bucket_of_user

SECONDS = 10
TURNS = 3
PROCESSES = 4
CHEAP = "GET /shops/{shop_id}"
BYSTANDER_PER_S = 20


class Attack(NamedTuple):
    name: str
    route: str
    per_s: int
    is_anonymous: bool


ATTACKS = (
    Attack("20/s of an old feed page", "GET /feed", 20, is_anonymous=False),
    Attack("50/s of shops from outside a city", "GET /shops", 50, is_anonymous=True),
)


def measure(harness: Harness) -> list[Figure]:
    """Measure the bystander alone, and in turns beside each attack and beside cheap requests at the
    same rate, which take as much of this machine's CPU outside of the stores. The best of turns."""
    harness.clear()
    fill(harness)
    pages.run_shop_jobs()
    seconds = max(harness.scale(SECONDS), 3)
    with pages.without_aws():
        _ask(1)
        quiet_ms = _ask(seconds)
        figures = [Figure("a bystander's p95, quiet", quiet_ms, "ms")]
        for attack in ATTACKS:
            counts: Counter[int] = Counter()
            attacked_ms, calm_ms = [], []
            for _ in range(TURNS):
                with _running(attack._replace(route=CHEAP)):
                    calm_ms.append(_ask(seconds))
                with _running(attack) as statuses:
                    attacked_ms.append(_ask(seconds))
                counts.update(statuses)
            figures += [
                Figure(
                    f"during {attack.name}",
                    min(attacked_ms),
                    "ms",
                    Peer("as many of one shop", min(calm_ms)),
                    Goal("at most", 2, "ratio"),
                ),
                Figure("  answered", counts[200] / seconds / TURNS, "/s"),
                Figure("  refused", counts[429] / seconds / TURNS, "/s"),
            ]
    return figures


def _ask(seconds: float) -> float:
    """Read a post by Redis and a list by MySQL in turns; return the p95 of both, in ms."""
    content = load_handler("content")
    events = [
        make_api_event("GET /posts/{post_id}", READER + 9, post_id=POST + 7),
        make_api_event("GET /users/{user_id}/posts", READER + 9, user_id=WRITER),
    ]
    took_ms: list[float] = []
    for number in _beats(BYSTANDER_PER_S, seconds):
        clear_caches()
        began_s = time.perf_counter()
        call(content, events[number % len(events)])
        took_ms.append((time.perf_counter() - began_s) * 1_000)
    return quantiles(took_ms, n=20)[-1]


def _beats(per_s: float, seconds: float) -> Iterator[int]:
    """Yield 0, 1, 2, ... at a fixed rate; a beat that is late follows at once."""
    began_s = time.monotonic()
    for number in range(int(per_s * seconds)):
        time.sleep(max(0.0, began_s + number / per_s - time.monotonic()))
        yield number


@contextmanager
def _running(attack: Attack) -> Iterator[list[int]]:
    """Attack during the block; yield the statuses of its answers, complete after it."""
    fork = multiprocessing.get_context("fork")
    results: Queue[list[int]] = fork.Queue()
    ends = fork.Event()
    mysql.forget_connection()
    connections.forget_client()
    processes = [
        fork.Process(target=_attack, args=(attack, number, ends, results))
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    statuses: list[int] = []
    try:
        time.sleep(1)  # all have connected
        yield statuses
    finally:
        ends.set()
        for _ in processes:
            statuses += results.get(timeout=60)
        for process in processes:
            process.join()


def _attack(attack: Attack, number: int, ends: object, results: "Queue[list[int]]") -> None:
    case = CASES[attack.route]
    module = load_function(f"api/{case.function}")

    def identify(header: str | None, address: str, route: str) -> Caller:
        bucket = anonymous_bucket(address) if attack.is_anonymous else bucket_of_user(READER, route)
        [reply] = redis.run_all([bucket.acquire_call])
        wait_ms, quota = bucket.read_reply(int(reply))
        user_id, role = (None, None) if attack.is_anonymous else (READER, "user")
        return Caller(user_id, role, wait_ms=wait_ms, quota=quota, bucket=bucket)

    module.app.identify = identify
    statuses = []
    for beat in _beats(attack.per_s / PROCESSES, 3_600):
        if ends.is_set():  # type: ignore[attr-defined]
            break
        event = build_event(attack.route, case, beat * PROCESSES + number)
        statuses.append(module.handler(event, CONTEXT)["statusCode"])
    results.put(statuses)
