"""``soak``: hours of use in minutes; checks that memory stays flat and the audit clean.

A steady crowd uses every route on a rotating set of posts, which are evicted after seconds instead
of days; every schedule runs again and again; one more consumer, in a process of its own, gets
batches all the time. In regular pauses, once the queues are empty, the audit runs and memory is
measured, so the samples show the same state at different times.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import random
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from typing import Any

import psutil
import redis
from rich.console import Console

from cli.output import console, new_table, print_report, require_positive, show_step
from cli.paths import DIRECTORY, ROOT, CommandError
from local.audit.audit import audit_when_quiet
from local.load.background import run_threads
from local.load.crowd import Client
from local.load.flash_sale import SHOP, create_voucher
from local.load.interactions import create_posts
from local.load.requests import Call
from local.stack.functions import CONTEXT, become_function, load_function, make_record
from local.stack.servers import connect_mysql
from local.stack.stack import Stack
from local.stack.tokens import open_sessions
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS

FIRST_ID = 9_600_001
PEOPLE = 40
POSTS = 240
FED_POSTS = 200
ROUNDS = 8
WARM_UP = 3  # rounds that are not compared: caches fill, processes import modules
MAX_REDIS_PERCENT = 5.0  # growth outside of keys, from the middle to the end
MAX_PROCESS_PERCENT = 5.0
MAX_BAD_PERCENT = 1.0  # of requests: on a busy machine some time out
IDLE_TTL_S = 10
_CROWD = 4  # concurrent users
_ROTATE_EVERY_S = 5.0
_AT_ONCE = 24  # posts in use at a time
_BATCH = 200
_FEED_EVERY_S = 0.4
_SALE_S = 60

Act = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class KeyFamily:
    """Keys of one kind: their number, their bytes, and how many never expire."""

    keys: int = 0
    size: int = 0
    persistent: int = 0


@dataclass(frozen=True, slots=True)
class MemorySample:
    """Memory in bytes while the queues are empty. ``consumers``: pid -> resident."""

    at_s: float
    used: int
    families: Mapping[str, KeyFamily]
    consumers: Mapping[int, int]
    fed: int

    @property
    def in_keys(self) -> int:
        return sum(family.size for family in self.families.values())

    @property
    def outside_keys(self) -> int:
        return self.used - self.in_keys


@dataclass(slots=True)
class SoakReport:
    samples: list[MemorySample] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        return {
            "flat": self.clean,
            "problems": self.problems,
            "answers": dict(self.answers),
            "runs": dict(self.runs),
            "batches": self.batches,
            "memory": tabulate(self),
        }


def main(args: argparse.Namespace) -> int:
    require_positive(args, "minutes")
    directory = ROOT / ".local-soak" if args.dir == DIRECTORY else args.dir
    stack = Stack(directory)
    stack.down()
    try:
        stack.up(for_tests=True, step=show_step, parameters={"IdleTtl": str(IDLE_TTL_S)})
        report = soak(stack, args.minutes * 60)
    finally:
        stack.down()
    return print_report(args, report, show)


def soak(stack: Stack, length_s: float) -> SoakReport:
    """Run the crowd, schedules and consumer for ``length_s``, in rounds. Raises CommandError."""
    report = SoakReport()
    crowd = SimulatedUsers(stack, report)
    asyncio.run(crowd.warm_up())
    schedules = sorted(
        path.name.title().replace("_", "")
        for path in (ROOT / "functions" / "schedule").iterdir()
        if path.is_dir()
    )
    with fed_consumer(stack, report) as (fed, feeding):
        for number in range(ROUNDS):
            feeding.set()
            with run_schedules(stack, schedules, report):
                asyncio.run(crowd.work(length_s / ROUNDS))
            feeding.clear()
            audit_report = audit_when_quiet(stack)
            if not audit_report.quiet:
                report.problems.append(f"round {number + 1} left messages in the queues")
            if not audit_report.clean:
                report.problems.append(f"round {number + 1}: {json.dumps(audit_report.to_json())}")
            report.samples.append(measure_memory(stack, fed))
            console.print(
                f"round {number + 1} of {ROUNDS}: {describe_sample(report.samples[-1])}",
                style="dim",
            )
    report.problems += find_growth(report.samples)
    bad = {name: n for name, n in report.answers.items() if not name.startswith(("2", "4"))}
    if sum(bad.values()) > MAX_BAD_PERCENT / 100 * report.answers.total():
        report.problems.append(f"{sum(bad.values())} requests failed: {bad}")
    return report


class SimulatedUsers:
    """Some users that call every route, over and over."""

    def __init__(self, stack: Stack, report: SoakReport) -> None:
        self._stack = stack
        self._report = report
        self._people = range(FIRST_ID, FIRST_ID + PEOPLE)
        self._tokens = dict(zip(self._people, open_sessions(stack, self._people), strict=True))
        self._posts = range(FIRST_ID + 1_000, FIRST_ID + 1_000 + POSTS)
        self._began_s = time.monotonic()
        self._written: list[tuple[int, str]] = []
        self._reviews: list[str] = []
        self._reviewers: set[int] = set()
        self._sale: tuple[float, int] = (0.0, 0)
        create_posts(self._posts, self._people[:1])
        with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
            cursor.execute("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Soaked')", (SHOP,))

    async def warm_up(self) -> None:
        """Act once each, in sequence, so that functions start cold one at a time."""
        await self._play(((act, self._people[0]) for act in self._acts()), 1)

    async def work(self, length_s: float) -> None:
        """Let users act at random for ``length_s``."""
        await self._play(self._draw_turns(time.monotonic() + length_s), _CROWD)

    def _draw_turns(self, end_s: float) -> Iterator[tuple[Act, int]]:
        acts = self._acts()
        while time.monotonic() < end_s:
            [act] = random.choices(list(acts), weights=list(acts.values()))
            yield act, random.choice(self._people)

    async def _play(self, turns: Iterable[tuple[Act, int]], concurrency: int) -> None:
        def act(turn: tuple[Act, int]) -> Awaitable[None]:
            return turn[0](turn[1])

        async with Client(self._stack.base_url, self._tokens, concurrency, 1) as self._client:
            await self._client.play(turns, act)

    def _acts(self) -> dict[Act, int]:
        """Return what users do -> how often."""
        return {
            self._react: 60,
            self._read: 26,
            self._check_in: 3,
            self._write: 2,
            self._order: 6,
            self._review: 2,
        }

    async def _send(
        self, user: int, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Any:
        answer = await self._client.send(Call(method, path, body), user)
        self._report.answers[str(answer.status)] += 1
        return answer.body if answer.is_success else None

    def _pick_post(self) -> int:
        """Draw a post of those in use now; the others become idle and are evicted."""
        rotation = int((time.monotonic() - self._began_s) / _ROTATE_EVERY_S)
        return self._posts[(rotation * _AT_ONCE // 2 + random.randrange(_AT_ONCE)) % POSTS]

    async def _react(self, user: int) -> None:
        post, other = f"/posts/{self._pick_post()}", f"/users/{random.choice(self._people)}"
        calls = {
            ("PUT", f"{post}/likes/me"): 27,
            ("PUT", f"{post}/collects/me"): 13,
            ("DELETE", f"{post}/likes/me"): 12,
            ("PUT", f"{other}/followers/me"): 5,
            ("DELETE", f"{other}/followers/me"): 3,
        }
        [call] = random.choices(list(calls), weights=list(calls.values()))
        await self._send(user, *call)

    async def _read(self, user: int) -> None:
        """Read all that a visit shows."""
        targets = [{"type": "post", "id": str(self._pick_post())} for _ in range(20)]
        await self._send(user, "POST", "/reactions/query", {"targets": targets})
        for path in random.sample(
            (
                f"/posts/{self._pick_post()}/likers",
                "/feed?limit=20",
                f"/posts/ranking?window={random.choice(('day', 'week', 'all'))}",
                f"/shops/{SHOP}/reviews/recommended",
                f"/users/{random.choice(self._people)}",
            ),
            2,
        ):
            await self._send(user, "GET", path)

    async def _write(self, user: int) -> None:
        """Write a post; above ``PEOPLE`` posts, delete the oldest to keep their number stable."""
        text = {"kind": "note", "title": "Noodles", "body": "Ask for the thick ones.", "images": []}
        if made := await self._send(user, "POST", "/posts", text):
            await self._send(user, "POST", f"/posts/{made['id']}/comments", {"body": "I do."})
            self._written.append((user, made["id"]))
            if len(self._written) > PEOPLE:
                author, oldest = self._written.pop(0)
                await self._send(author, "DELETE", f"/posts/{oldest}")

    async def _order(self, user: int) -> None:
        opened_s, voucher = self._sale
        if time.monotonic() - opened_s > _SALE_S:
            self._sale = time.monotonic(), voucher  # the others do not open one
            with contextlib.suppress(CommandError):  # the previous sale continues
                new = asyncio.to_thread(create_voucher, self._stack, PEOPLE // 2, open_s=_SALE_S)
                voucher = await new
                self._sale = time.monotonic(), voucher
        made = await self._send(user, "POST", f"/vouchers/{voucher}/orders") if voucher else None
        if made:
            await self._send(user, "GET", f"/orders/{made['order_id']}")

    async def _check_in(self, user: int) -> None:
        await self._send(user, "PUT", "/checkins/today")

    async def _review(self, user: int) -> None:
        if user not in self._reviewers:
            self._reviewers.add(user)
            review = {"score": 5, "body": "Come hungry."}
            if made := await self._send(user, "POST", f"/shops/{SHOP}/reviews", review):
                self._reviews.append(made["id"])
        if self._reviews:
            await self._send(user, "PUT", f"/reviews/{random.choice(self._reviews)}/likes/me")


def run_schedules(
    stack: Stack, schedules: Sequence[str], report: SoakReport
) -> contextlib.AbstractContextManager[None]:
    """Invoke the schedules in turn, two at a time, for the duration of the block."""
    turns = itertools.cycle(schedules)
    lock = threading.Lock()

    def run(end: threading.Event) -> None:
        while not end.is_set():
            with lock:
                name = next(turns)
            try:
                stack.invoke(name, {})
                report.runs[name] += 1
            except CommandError as error:
                report.problems.append(str(error).partition("\n")[0])
            end.wait(0.1)

    return run_threads(run, threads=2)


@contextlib.contextmanager
def fed_consumer(stack: Stack, report: SoakReport) -> Iterator[tuple[psutil.Process, Event]]:
    """Start a consumer process that saves batch after batch while the event is set."""
    posts = range(FIRST_ID + 5_000, FIRST_ID + 5_000 + FED_POSTS)
    create_posts(posts, [FIRST_ID])
    context = multiprocessing.get_context("spawn")
    feeding, end, batches = context.Event(), context.Event(), context.Value("L", 0)
    process = context.Process(
        target=save_batches, args=(stack.environment(), list(posts), feeding, end, batches)
    )
    process.start()
    try:
        yield psutil.Process(process.pid), feeding
    finally:
        end.set()
        process.join(60)
        report.batches = batches.value
        if process.exitcode != 0:
            report.problems.append(f"the fed consumer ended with {process.exitcode}")
            process.kill()


def save_batches(
    environment: Mapping[str, str], posts: Sequence[int], feeding: Event, end: Event, batches: Any
) -> None:
    """Call the handler of SaveReactions with made-up likes and unlikes of 500 actors."""
    become_function(environment)
    consumer = load_function("queue/save_reactions")
    while not end.is_set():
        if feeding.wait(0.2):
            consumer.handler({"Records": [_message(i, posts) for i in range(_BATCH)]}, CONTEXT)
            batches.value += 1
            end.wait(_FEED_EVERY_S)


def _message(number: int, posts: Sequence[int]) -> dict[str, Any]:
    actor_id, version_us = FIRST_ID + 10_000 + random.randrange(500), time.time_ns() // 1000
    key = ReactionKey("post", random.choice(posts), "like", actor_id)
    event = ReactionEvent(key, random.random() < 0.5, version_us)
    return make_record(number, REACTIONS.encode(event), version_us // 1000)


def measure_memory(stack: Stack, fed: psutil.Process) -> MemorySample:
    """Measure Redis by kind of key, and each process that runs the consumer."""
    families: dict[str, list[int]] = {}
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        for batch in _batches(client.scan_iter(count=1000), 500):
            pipe = client.pipeline(transaction=False)
            for key in batch:
                pipe.memory_usage(key, samples=0)
                pipe.ttl(key)
            replies = pipe.execute()
            for key, size, ttl_s in zip(batch, replies[::2], replies[1::2], strict=True):
                if size is not None:
                    counts = families.setdefault(family_of(key), [0, 0, 0])
                    counts[0] += 1
                    counts[1] += size
                    counts[2] += ttl_s == -1
        memory = client.info("memory")
    consumers = {}
    for worker in stack.find_workers("SaveReactions"):
        with contextlib.suppress(psutil.Error):
            consumers[worker.pid] = worker.memory_info().rss
    return MemorySample(
        time.monotonic(),
        memory["used_memory_dataset"],
        {name: KeyFamily(*counts) for name, counts in families.items()},
        consumers,
        fed.memory_info().rss,
    )


def family_of(key: str) -> str:
    """Return the kind of a key: its name without shards, ids and digests."""
    name = re.sub(r"(?:auth)?\{\d+\}:?", "", key)
    return re.sub(r"[0-9a-f]{16,}|\d+", "#", name)


def find_growth(samples: Sequence[MemorySample]) -> list[str]:
    """Return what grew from the first round after the warm-up to the last."""
    if len(samples) <= WARM_UP:
        return ["too few rounds to compare"]
    first, last = samples[WARM_UP], samples[-1]
    problems = []
    grown = percent(first.outside_keys, last.outside_keys, of=first.used)
    if grown > MAX_REDIS_PERCENT:
        problems.append(f"Redis uses {grown:.1f}% more memory outside of keys")
    for name, now in sorted(last.families.items()):
        then = first.families.get(name, KeyFamily())
        if now.persistent > max(then.persistent * 1.1, then.persistent + 20):
            problems.append(f"{name}: {then.persistent} persistent keys became {now.persistent}")
    if (grown := percent(first.fed, last.fed)) > MAX_PROCESS_PERCENT:
        problems.append(f"the fed consumer grew by {grown:.1f}%")
    if first.consumers and last.consumers:
        grown = percent(max(first.consumers.values()), max(last.consumers.values()))
        if grown > MAX_PROCESS_PERCENT:
            problems.append(f"the biggest worker of SaveReactions grew by {grown:.1f}%")
    return problems


def percent(first: int, last: int, of: int = 0) -> float:
    return 100 * (last - first) / (of or first)


def describe_sample(sample: MemorySample) -> str:
    return (
        f"Redis {sample.used / 1e6:.2f} MB, {sum(f.keys for f in sample.families.values()):,} keys,"
        f" fed consumer {sample.fed / 1e6:.1f} MB,"
        f" workers {', '.join(f'{rss / 1e6:.1f}' for rss in sample.consumers.values())} MB"
    )


def tabulate(report: SoakReport) -> dict[str, list[float]]:
    """Return name -> value at each sample, in MB or as a count."""
    samples = report.samples
    values: dict[str, list[float]] = {
        "Redis, data (MB)": [s.used / 1e6 for s in samples],
        "  in keys (MB)": [s.in_keys / 1e6 for s in samples],
        "  outside of keys (MB)": [s.outside_keys / 1e6 for s in samples],
        "Redis, keys": [sum(f.keys for f in s.families.values()) for s in samples],
        "  that never expire": [sum(f.persistent for f in s.families.values()) for s in samples],
        "fed consumer (MB)": [s.fed / 1e6 for s in samples],
    }
    values["biggest worker of SaveReactions (MB)"] = [
        max(s.consumers.values(), default=0) / 1e6 for s in samples
    ]
    return values


def show(report: SoakReport, out: Console) -> None:
    table = new_table("", "start", "middle", "end", "slope a minute")
    times = [sample.at_s / 60 for sample in report.samples]
    middle = min(WARM_UP, len(times) - 1)
    for name, values in tabulate(report).items():
        slope = 0.0
        if len(values) - middle > 1:
            slope = statistics.linear_regression(times[middle:], values[middle:]).slope
        cells = [f"{values[at]:,.2f}" for at in (0, middle, -1)]
        table.add_row(name, *cells, f"{slope:+,.3f}")
    out.print(table)
    out.print(
        f"{report.answers.total():,} requests ({_listed(report.answers)}),"
        f" {report.batches:,} batches of {_BATCH}; schedules: {_listed(report.runs)}",
        style="dim",
    )
    last, middle_sample = report.samples[-1].families, report.samples[middle].families
    grown = sorted(
        last, key=lambda name: middle_sample.get(name, KeyFamily()).size - last[name].size
    )
    for name in grown[:8]:
        then = middle_sample.get(name, KeyFamily())
        out.print(f"  {name}: {then} -> {last[name]}", style="dim")
    for problem in report.problems:
        out.print(f"[red]✗[/red] {problem}")
    if not report.problems:
        out.print("[green]flat and clean[/green]")


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def _batches(keys: Iterator[str], count: int) -> Iterator[list[str]]:
    while batch := list(itertools.islice(keys, count)):
        yield batch
