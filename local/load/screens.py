"""``screens``: thousands of screens that follow totals while parts of the stack fail.

The screens are objects of this process: each polls, waits and keeps the highest token as the client
does (clients/typescript/src/live.ts, totals.ts). They share an edge, which asks the API over HTTP.
Writers only like, so a total that falls on a screen has gone back, unless data were lost.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import heapq
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from cli.output import (
    console,
    mark,
    new_table,
    print_report,
    progress_console,
    read_percentiles,
    require_positive,
    show_step,
)
from cli.paths import DIRECTORY, ROOT, CommandError
from local.audit.backlog import shorten_visibility_timeout, wait_until_quiet
from local.load.crowd import Answer, Client, Pace, send_once
from local.load.failover import stop_master
from local.load.interactions import create_posts
from local.load.requests import Call
from local.stack import deployment
from local.stack.cluster import Cluster
from local.stack.servers import connect_mysql, connect_redis
from local.stack.sms import read_code
from local.stack.stack import Stack, use_stack
from local.stack.tokens import open_sessions

OPERATOR = 9_600_000
FIRST_WRITER = 9_600_001
FIRST_POST = 9_600_000_000
PHONE = "+12025550147"
WRITERS = 300
PAGES = 20
POSTS_OF_PAGE = 5  # a page has the posts from its number on, so each post is on five pages
LIKES_PER_S = 20.0
MAX_FACTOR, GROWTH = 5.0, 1.5
FIRST_BACKOFF_S, MAX_BACKOFF_S = 5.0, 60.0
SLACK = 1.2  # of the polls a second, because screens begin at random
CALM = "calm"
_REQUESTS_AT_ONCE = 64
_TICK_S, _CHECK_S = 0.02, 0.2
_QUIET_S = 300.0
_WIDTH = 120


class Known(NamedTuple):
    """A total and its token."""

    total: int
    at: str | None


def is_newer(after: Known, before: Known | None) -> bool:
    """Return whether a client replaces ``before``: the rule of docs/live-numbers.md."""
    if before is None:
        return True
    if after.at is None:
        return before.at is None and after.total != before.total
    return before.at is None or after.at > before.at


class Reading(NamedTuple):
    """What the edge answered to a poll. ``totals``: by post; None if it was refused."""

    status: int
    totals: Mapping[int, Known] | None
    max_age_s: float = 0.0
    shared_s: float = 0.0
    retry_after_s: float = 0.0


def read_answer(answer: Answer) -> Reading:
    """Return an answer to ``GET /totals`` as screens see it."""
    if answer.status != 200:
        return Reading(answer.status, None, retry_after_s=answer.retry_after_s)
    ages = dict(re.findall(r"(max-age|s-maxage)=(\d+)", answer.headers["cache-control"]))
    totals = {int(i["id"]): Known(i["likes"], i["likes_at"]) for i in answer.body["items"]}
    return Reading(200, totals, float(ages["max-age"]), float(ages["s-maxage"]))


@dataclass(slots=True)
class Screen:
    """A screen that shows one page."""

    page: int
    shown: dict[int, Known] = field(default_factory=dict)
    factor: float = 1.0
    failures: int = 0

    def take(self, reading: Reading) -> bool:
        """Take a reading over. Returns whether a total fell."""
        if reading.totals is None:
            self.failures += 1
            return False
        changed = fell = False
        for post, known in reading.totals.items():
            before = self.shown.get(post)
            if is_newer(known, before):
                changed = True
                fell = fell or (before is not None and known.total < before.total)
                self.shown[post] = known
        self.failures = 0
        self.factor = 1.0 if changed else min(MAX_FACTOR, self.factor * GROWTH)
        return fell

    def draw_delay_s(self, reading: Reading) -> float:
        """Return the time until the next poll."""
        if reading.totals is not None:
            return reading.max_age_s * self.factor
        backoff_s = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** (self.failures - 1))
        return reading.retry_after_s + random.random() * backoff_s


@dataclass(slots=True)
class Phase:
    """What happened during one event and until the screens had settled.

    ``unequal``: tokens that were sent with two totals. ``settled_s``: from empty queues until each
    screen showed what MySQL has; None if that took too long.
    """

    name: str
    loses: bool = False
    polls: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    likes: Counter[int] = field(default_factory=Counter)
    fell: set[int] = field(default_factory=set)
    unequal: int = 0
    latencies_s: list[float] = field(default_factory=list)
    polls_per_s: float = 0.0
    requests_per_s: float = 0.0
    settled_s: float | None = None

    def end(self, took_s: float) -> None:
        """Take the rates of the time in which writers liked."""
        self.polls_per_s = self.polls / took_s
        self.requests_per_s = self.answers.total() / took_s

    def to_json(self) -> dict[str, Any]:
        return {
            "event": self.name,
            "polls_per_s": round(self.polls_per_s, 1),
            "requests_per_s": round(self.requests_per_s, 1),
            "like_p99_ms": read_percentiles(self.latencies_s).p99_ms,
            "answers": {str(status): n for status, n in sorted(self.answers.items())},
            "likes": {str(status): n for status, n in sorted(self.likes.items())},
            "went_back": 0 if self.loses else len(self.fell),
            "unseen_after_loss": len(self.fell) if self.loses else 0,
            "unequal": self.unequal,
            "settled_s": None if self.settled_s is None else round(self.settled_s, 1),
        }


@dataclass(slots=True)
class ScreensReport:
    """Result of a run. ``resting_per_s``: polls a second when no total changed any more."""

    screens: int
    poll_s: int
    phases: list[Phase] = field(default_factory=list)
    resting_per_s: float = 0.0
    signed_in: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.problems

    @property
    def deadline_s(self) -> float:
        """Return within which time all screens must show what MySQL has."""
        return MAX_FACTOR * self.poll_s + 5

    def find_problems(self) -> Iterator[str]:
        """Yield what is not as docs/live-numbers.md promises."""
        most_per_s = SLACK * self.screens / self.poll_s
        for phase in self.phases:
            values = phase.to_json()
            if values["went_back"]:
                yield f"{phase.name}: {values['went_back']} screens went back"
            if phase.unequal:
                yield f"{phase.name}: {phase.unequal} tokens had two totals"
            if phase.settled_s is None:
                yield f"{phase.name}: not settled after {self.deadline_s:g} s"
            if phase.polls_per_s > most_per_s:
                yield f"{phase.name}: {phase.polls_per_s:.1f} polls a second"
            if not phase.likes[200]:
                yield f"{phase.name}: no like passed"
        if self.resting_per_s > most_per_s / MAX_FACTOR:
            yield f"{self.resting_per_s:.1f} polls a second at rest"
        if not self.signed_in:
            yield "a sign-in beside the screens failed"

    def to_json(self) -> dict[str, Any]:
        return {
            "clean": self.clean,
            "problems": self.problems,
            "screens": self.screens,
            "poll_s": self.poll_s,
            "resting_per_s": round(self.resting_per_s, 1),
            "signed_in": self.signed_in,
            "phases": [phase.to_json() for phase in self.phases],
        }


class Event(NamedTuple):
    """``play``: what happens, in so many seconds. ``loses``: Redis may lose data."""

    play: Callable[[float], None]
    loses: bool = False


class Screens:
    """All screens, and the edge that they share: one request at a time for a page, whose answer is
    fresh for its ``s-maxage``."""

    def __init__(self, posts: Sequence[int], count: int, poll_s: float, client: Client) -> None:
        self.screens = [Screen(number % PAGES) for number in range(count)]
        self.phase = Phase("")
        self._paths = [
            "/totals?of=" + ",".join(f"post:{posts[(page + n) % len(posts)]}" for n in range(5))
            for page in range(PAGES)
        ]
        self._client = client
        self._due = [(time.monotonic() + random.random() * poll_s, n) for n in range(count)]
        heapq.heapify(self._due)
        self._fresh: dict[int, tuple[float, Reading]] = {}
        self._waiting: dict[int, list[int]] = {}
        self._tokens: dict[tuple[int, str], int] = {}

    async def poll(self) -> None:
        """Poll until cancelled."""
        async with asyncio.TaskGroup() as requests:
            while True:
                now_s = time.monotonic()
                while self._due and self._due[0][0] <= now_s:
                    number = heapq.heappop(self._due)[1]
                    page = self.screens[number].page
                    self.phase.polls += 1
                    until_s, reading = self._fresh.get(page, (0.0, Reading(0, None)))
                    if now_s < until_s:
                        self._show(number, reading)
                    elif page in self._waiting:
                        self._waiting[page].append(number)
                    else:
                        self._waiting[page] = [number]
                        requests.create_task(self._ask(page))
                await asyncio.sleep(_TICK_S)

    async def _ask(self, page: int) -> None:
        reading = read_answer(await self._client.send(Call("GET", self._paths[page])))
        self.phase.answers[reading.status] += 1
        for post, known in (reading.totals or {}).items():
            if known.at is not None:
                first = self._tokens.setdefault((post, known.at), known.total)
                self.phase.unequal += first != known.total
        self._fresh[page] = time.monotonic() + reading.shared_s, reading
        for number in self._waiting.pop(page):
            self._show(number, reading)

    def _show(self, number: int, reading: Reading) -> None:
        screen = self.screens[number]
        if screen.take(reading):
            self.phase.fell.add(number)
        heapq.heappush(self._due, (time.monotonic() + screen.draw_delay_s(reading), number))

    def count_wrong(self, recorded: Mapping[int, int]) -> int:
        """Count the screens that show another total than ``recorded``."""
        return sum(
            len(screen.shown) < POSTS_OF_PAGE
            or any(recorded[post] != known.total for post, known in screen.shown.items())
            for screen in self.screens
        )


def main(args: argparse.Namespace) -> int:
    """Play on the stack of ``--dir``, else on one of its own. Raises CommandError."""
    require_positive(args, "screens", "seconds", "poll_s")
    out = progress_console(args)
    with open_stack(args.dir) as stack:
        report = play(stack, args.screens, args.seconds, args.poll_s, out=out)
    return print_report(args, report, show)


@contextlib.contextmanager
def open_stack(directory: Path) -> Iterator[Stack]:
    """Yield the stack that runs in ``directory``, unless that is the usual one; else start one with
    a Redis Cluster and the limits of production. Raises CommandError."""
    if directory != DIRECTORY:
        yield Stack.load(directory)
        return
    stack = Stack(ROOT / ".local-screens")
    stack.down()
    try:
        stack.up(
            for_tests=True,
            redis_cluster=True,
            step=show_step,
            parameters=deployment.LIMITS_OF_TEMPLATE,
        )
        yield stack
    finally:
        stack.down()


def play(
    stack: Stack,
    screens: int,
    seconds: float,
    poll_s: int,
    *,
    out: Console = console,
) -> ScreensReport:
    """Play each event for an equal part of ``seconds``. Sets the interval of clients, which is as
    before afterwards. Raises CommandError."""
    report = ScreensReport(screens, poll_s)
    writers = range(FIRST_WRITER, FIRST_WRITER + WRITERS)
    [token] = open_sessions(stack, [OPERATOR], "admin")
    tokens = dict(zip(writers, open_sessions(stack, writers), strict=True))
    posts = [FIRST_POST + n for n in range(PAGES)]
    with use_stack(stack):
        create_posts(posts, [OPERATOR])
    with (
        switched(stack.base_url, token, live_poll_s=poll_s),
        shorten_visibility_timeout(stack, *stack.queues),
    ):
        asyncio.run(_play(stack, report, posts, tokens, seconds, out))
    report.problems += report.find_problems()
    return report


@contextlib.contextmanager
def switched(base_url: str, token: str, **values: Any) -> Iterator[None]:
    """Change switches as an operator, for the block. Raises CommandError."""

    before = switch(base_url, token, values)
    try:
        yield
    finally:
        switch(base_url, token, {name: before[name] for name in values})


def switch(base_url: str, token: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Change switches as an operator. Returns them as they were. Raises CommandError."""
    before = send_once(base_url, token, Call("GET", "/ops/switches")).body
    body = {
        "version": before["version"],
        "reason": "Screens are measured.",
        "switches": before["switches"] | values,
    }
    answer = send_once(base_url, token, Call("PUT", "/ops/switches", body))
    if not answer.is_success:
        raise CommandError(f"the switches can't be changed: {answer}")
    switches: Mapping[str, Any] = before["switches"]
    return switches


async def _play(
    stack: Stack,
    report: ScreensReport,
    posts: Sequence[int],
    tokens: Mapping[int, str],
    seconds: float,
    out: Console,
) -> None:
    pairs = [(user, post) for user in tokens for post in posts]
    random.shuffle(pairs)
    likes = iter(pairs)
    async with (
        Client(stack.base_url, tokens, _REQUESTS_AT_ONCE, max_attempts=1) as client,
        asyncio.TaskGroup() as tasks,
    ):
        events = events_of(stack)
        length_s = seconds / len(events)
        screens = Screens(posts, report.screens, report.poll_s, client)
        polling = tasks.create_task(screens.poll())
        for name, event in events.items():
            out.print(f"{name} ...", style="dim")
            screens.phase = phase = Phase(name, event.loses)
            report.phases.append(phase)
            began_s = time.monotonic()
            over = asyncio.Event()
            writing = tasks.create_task(_write(client, likes, phase, over))
            await asyncio.to_thread(event.play, length_s)
            if name == CALM:
                report.signed_in = await _sign_in(stack, client)
            await asyncio.sleep(began_s + length_s - time.monotonic())
            phase.end(time.monotonic() - began_s)
            over.set()
            await writing
            if not await asyncio.to_thread(wait_until_quiet, stack, _QUIET_S):
                raise CommandError(f"{name}: the queues are not empty after {_QUIET_S:g} s")
            phase.settled_s = await _settle(stack, screens, report.deadline_s)
        report.resting_per_s = await _rest(screens, report.poll_s)
        polling.cancel()


async def _write(
    client: Client, likes: Iterator[tuple[int, int]], phase: Phase, over: asyncio.Event
) -> None:
    """Like at an even pace until it is ``over``; return when all likes are answered."""
    pace = Pace(LIKES_PER_S)

    async def like(user: int, post: int) -> None:
        call = Call("PUT", f"/posts/{post}/likes/me")
        answer = await client.send(call, user)
        phase.likes[answer.status] += 1
        phase.latencies_s.append(answer.took_s)

    async with asyncio.TaskGroup() as sent:
        while not over.is_set():
            await pace.wait()
            sent.create_task(like(*next(likes)))


async def _sign_in(stack: Stack, client: Client) -> bool:
    """Sign a new user in from the address of the screens. Returns whether that passed."""
    sent = await client.send(Call("POST", "/auth/codes", {"phone": PHONE}))
    if not sent.is_success:
        return False
    code = await asyncio.to_thread(read_code, stack, PHONE)
    body = {"challenge": sent.body["challenge"], "code": code}
    return (await client.send(Call("POST", "/auth/sessions", body))).is_success


async def _settle(stack: Stack, screens: Screens, deadline_s: float) -> float | None:
    """Return after how many seconds each screen shows what MySQL has; None if that takes longer
    than ``deadline_s``."""
    began_s = time.monotonic()
    with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT target_id, COUNT(*) FROM reaction WHERE target_type = 'post' AND kind = 'like'"
            " AND state = 1 AND target_id BETWEEN %s AND %s GROUP BY target_id",
            (FIRST_POST, FIRST_POST + PAGES),
        )
        recorded = Counter(dict(cursor.fetchall()))
    while screens.count_wrong(recorded):
        if time.monotonic() - began_s > deadline_s:
            return None
        await asyncio.sleep(_CHECK_S)
    return time.monotonic() - began_s


async def _rest(screens: Screens, poll_s: int) -> float:
    """Return the polls a second when each screen polls as rarely as it does."""
    while any(screen.factor < MAX_FACTOR for screen in screens.screens):
        await asyncio.sleep(_CHECK_S)
    screens.phase, window_s = Phase("at rest"), MAX_FACTOR * poll_s
    await asyncio.sleep(window_s)
    return screens.phase.polls / window_s


def events_of(stack: Stack) -> dict[str, Event]:
    """Return the events that a stack can have, in their order."""
    nodes, mysql = stack.redis, stack.mysql
    if nodes is None or mysql is None:
        raise CommandError("the stack has to run its own Redis and MySQL")

    def cut(seconds: float) -> None:
        nodes.pause()
        time.sleep(seconds / 3)
        nodes.resume()

    def flush(_: float) -> None:
        with connect_redis(stack.redis_url, cluster=stack.redis_cluster) as client:
            client.flushall()

    def stop_mysql(seconds: float) -> None:
        mysql.stop()
        time.sleep(seconds / 3)
        mysql.start(attached=False)  # the stack ends it, not a thread of this process

    events = {CALM: Event(lambda _: None), "Redis cut and back": Event(cut)}
    if isinstance(nodes, Cluster):

        def fail_over(_: float) -> None:
            stop_master(nodes, "die")
            nodes.start(attached=False)

        events["failover"] = Event(fail_over, loses=True)
    return events | {
        "FLUSHALL": Event(flush, loses=True),
        "MySQL away": Event(stop_mysql),
    }


def show(report: ScreensReport, out: Console) -> None:
    table = new_table(
        *("event", "polls/s", "requests/s", "refused", "liked", "later", "no", "p99 ms"),
        *("back", "un-seen", "settled"),
    )
    for phase in report.phases:
        values, likes = phase.to_json(), phase.likes
        settled = values["settled_s"]
        table.add_row(
            phase.name,
            f"{phase.polls_per_s:,.0f}",
            f"{phase.requests_per_s:,.0f}",
            f"{phase.answers.total() - phase.answers[200]:,}",
            f"{likes[200]:,}",
            f"{likes[202]:,}",
            f"{likes.total() - likes[200] - likes[202]:,}",
            f"{values['like_p99_ms']:,.0f}",
            f"{values['went_back']:,}",
            f"{values['unseen_after_loss']:,}",
            "never" if settled is None else f"{settled:.1f} s",
        )
    out.print(f"\n[bold]{report.screens:,} screens, P = {report.poll_s} s[/bold]")
    out.width = max(out.width, _WIDTH)
    out.print(table)
    out.print(
        f"at rest {report.resting_per_s:,.0f} polls/s; a sign-in beside them"
        f" {mark(report.signed_in)}; allowed {report.deadline_s:g} s"
    )
    for problem in report.problems:
        out.print(f"[red]{problem}[/red]")
