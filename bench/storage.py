"""Likes a second that consumers store while a network is between them and MySQL, beside another
checkout: ``python -m bench consumer --latency 8 --against PATH``. Both take turns, on the same
stores, with notifications on."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlsplit

from bench.figures import Figure, Goal, Peer
from bench.harness import Harness
from cli.paths import ROOT, CommandError
from local.audit.unread import find_wrong_unread
from local.load.crowd import WORKERS
from local.stack.bed import serve_module
from local.stack.ports import free_port
from local.stack.servers import connect_mysql
from plaza.infra.mysql import mysql

_BATCH, _BATCHES, _LIKES = 250, 8, 12
_FIRST_POST, _FIRST_ACTOR = 50_000_000, 60_000_000
_AUTHORS = 4


class Scenario(NamedTuple):
    """What is stored: by how many consumers, events a batch, batches of each, how many posts of
    how many authors, whether the network is between, and the goal for this checkout."""

    name: str
    consumers: int
    size: int
    batches: int
    posts: int
    authors: int
    is_remote: bool
    goals: dict[int, float]

    def goal(self, latency_ms: float) -> Goal | None:
        if not self.is_remote:
            return Goal("at least", 1.0, "ratio")
        bound = self.goals.get(round(latency_ms))
        side = "at most" if self.size == 1 else "at least"
        return Goal(side, bound, "ratio") if bound else None  # type: ignore[arg-type]


SCENARIOS = (
    Scenario("one post", WORKERS, _BATCH, _BATCHES, 1, 1, True, {8: 2.5, 1: 1.25}),
    Scenario("four posts of one author", WORKERS, _BATCH, _BATCHES, 4, 1, True, {8: 2.8, 1: 1.4}),
    Scenario("four posts of four authors", WORKERS, _BATCH, _BATCHES, 4, 4, True, {8: 2.0, 1: 1.1}),
    Scenario("one like", 1, 1, _LIKES, 1, 1, True, {8: 0.5}),
    Scenario("batches of 1,000", 1, 1000, 6, 200, 200, False, {}),
    Scenario("batches of 200", 1, 200, 20, 200, 200, False, {}),
)


def measure(harness: Harness, latency_ms: float, against: Path | None, rounds: int) -> list[Figure]:
    """Measure each scenario in this checkout and in ``against``, in turns; print medians. Raises
    CommandError if an event was lost or an unread counter is wrong afterwards."""
    harness.clear()
    checkouts = {"this checkout": ROOT, **({str(against): against} if against else {})}
    actors, stored = count(_FIRST_ACTOR, 1_000_000), 0
    rates: dict[tuple[str, str], list[float]] = {}
    cpu_us: dict[tuple[str, str], list[float]] = {}
    with ExitStack() as stack:
        port = free_port()
        of_mysql = str(urlsplit(harness.mysql_url).port)
        stack.enter_context(
            serve_module(
                harness.directory, port, "bench.delay", str(port), of_mysql, f"{latency_ms}"
            )
        )
        remote_url = harness.mysql_url.replace(f":{of_mysql}/", f":{port}/")
        consumers = {
            (name, is_remote): [stack.enter_context(_consumer(root, url)) for _ in range(number)]
            for name, root in checkouts.items()
            for is_remote, url, number in (
                (True, remote_url, WORKERS),
                (False, harness.mysql_url, 1),
            )
        }
        for round_ in range(rounds):
            for number, scenario in enumerate(SCENARIOS):
                posts = _add_posts(100_000 * round_ + 1_000 * number, scenario)
                for name in checkouts:
                    used = consumers[name, scenario.is_remote][: scenario.consumers]
                    _save(used, scenario, posts, next(actors), batches=1)
                    rate, of_event = _save(used, scenario, posts, next(actors))
                    rates.setdefault((scenario.name, name), []).append(rate)
                    cpu_us.setdefault((scenario.name, name), []).append(of_event)
                    stored += scenario.consumers * scenario.size * (scenario.batches + 1)
    _check(harness.mysql_url, stored)
    ours, theirs = "this checkout", str(against)
    figures = []
    for s in SCENARIOS:
        how = f"{s.consumers} consumer{'s' * (s.consumers > 1)}"
        figures += [
            Figure(
                f"{s.name}, {how}, {latency_ms if s.is_remote else 0:g} ms",
                median(rates[s.name, ours]),
                "ms" if s.size == 1 else "events/s",
                Peer("before", median(rates[s.name, theirs])) if against else None,
                s.goal(latency_ms) if against else None,
            ),
            Figure(
                "  CPU an event, Python",
                median(cpu_us[s.name, ours]),
                "us",
                Peer("before", median(cpu_us[s.name, theirs])) if against else None,
            ),
        ]
    return figures


def _add_posts(first: int, scenario: Scenario) -> list[int]:
    posts = [_FIRST_POST + first + post for post in range(scenario.posts)]
    rows = ",".join(
        f"('post',{post},{_FIRST_POST + first + number % scenario.authors})"
        for number, post in enumerate(posts)
    )
    mysql.write(f"INSERT INTO content (content_type, content_id, author_id) VALUES {rows}")
    return posts


@contextmanager
def _consumer(root: Path, mysql_url: str) -> Iterator[subprocess.Popen[str]]:
    layer = root / "layers" / "common" / "python"
    process = subprocess.Popen(
        [sys.executable, "-P", str(ROOT / "bench" / "storing_worker.py")],
        env=os.environ | {"PLAZA_MYSQL_URL": mysql_url, "PYTHONPATH": str(layer)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.communicate()


def _save(
    consumers: Sequence[subprocess.Popen[str]],
    scenario: Scenario,
    posts: Sequence[int],
    first_actor: int,
    batches: int | None = None,
) -> tuple[float, float]:
    """Let the consumers save at once; return events a second, for one event its ms, and the us of
    CPU of an event."""
    batches = batches or scenario.batches
    for number, process in enumerate(consumers):
        assert process.stdin
        first = first_actor + number * scenario.size * batches
        own = [*posts[number % len(posts) :], *posts[: number % len(posts)]]
        if 1 < len(posts) <= len(consumers):
            own = own[:1]  # a post of its own
        process.stdin.write(json.dumps([first, scenario.size, batches, own]) + "\n")
        process.stdin.flush()
    results = []
    for process in consumers:
        assert process.stdout
        line = process.stdout.readline()
        if not line:
            raise CommandError("a consumer failed")
        results.append(json.loads(line))
    cpu_s = sum(of_batch for own in results for _, of_batch in own)
    cpu_us = cpu_s / (len(consumers) * scenario.size * batches) * 1e6
    if scenario.size == 1:
        return median(took_s for took_s, _ in results[0]) * 1000, cpu_us
    rates = [scenario.size * batches / sum(took_s for took_s, _ in own) for own in results]
    return sum(rates), cpu_us


def _check(mysql_url: str, stored: int) -> None:
    rows = mysql.fetch_all(
        """
        SELECT (SELECT COUNT(*) FROM reaction WHERE target_id >= %s AND state = 1),
               (SELECT SUM(total) FROM counter WHERE kind = 'like' AND target_id >= %s)
        """,
        (_FIRST_POST, _FIRST_POST),
    )
    if rows != [(stored, stored)]:
        raise CommandError(f"{stored} events made rows, totals {rows}")
    with connect_mysql(mysql_url) as connection, connection.cursor() as cursor:
        if wrong := list(find_wrong_unread(cursor)):
            raise CommandError(f"wrong unread counters: {wrong[:3]}")
