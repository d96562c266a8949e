"""``burst``: thousands of likes of one post within seconds, with a consumer that lags.

Viewer states and totals must be exact at every moment, not only when the queue is empty: after
``liked: true`` an actor is a liker, whether or not MySQL has the row. The crowd and the observer
use the HTTP API. The command prints the number of wrong answers at each moment.
"""

import argparse
import asyncio
import contextlib
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from cli.output import (
    mark,
    new_summary,
    new_table,
    print_report,
    progress_console,
    read_options,
    require_positive,
)
from cli.paths import CommandError
from local.audit.backlog import wait_until_quiet
from local.load.crowd import Client, Tally
from local.load.interactions import create_posts
from local.load.requests import Call, Reaction, set_reaction
from local.stack import deployment
from local.stack.servers import connect_mysql, connect_redis
from local.stack.stack import Stack
from local.stack.status import count_messages
from local.stack.tokens import open_sessions

FIRST_POST = 9_700_001
AUTHOR = 9_700_000
FIRST_ACTOR = 9_710_001
CONCURRENCY = 64
OBSERVERS = 64  # an observation waits behind the likes in flight
QUIET_S = 120.0
EVERY_S = 1.0
_TOUCHED_SHARE = 0.1  # of the sampled actors: unlike, and as many like again


@dataclass(frozen=True, slots=True)
class Options:
    """Size of a burst. ``every_s``: seconds between two observations.

    ``earlier`` likes by other actors are stored first, then Redis forgets the post: the burst
    begins with the build of a Bloom filter, ``build_lag`` seconds or more after it was requested.
    """

    likes: int
    seconds: float
    lag: float
    earlier: int = 0
    build_lag: float = 0.0
    sample: int = 300
    seed: int = 0
    concurrency: int = CONCURRENCY
    every_s: float = EVERY_S


@dataclass(slots=True)
class Observation:
    """Answers at one moment. ``refused``: answers with 429, 503 or none, which are not wrong.

    ``at_s``: seconds since the first like. ``liked``: actors with the answer ``liked: true``.
    ``unsaved``: messages that no consumer has finished.
    """

    at_s: float
    liked: int
    unsaved: int
    asked: int = 0
    wrong_states: int = 0
    inexact: int = 0
    unlikes: int = 0
    wrong_unlikes: int = 0
    repeats: int = 0
    wrong_repeats: int = 0
    wrong_totals: int = 0
    refused: int = 0

    @property
    def wrong(self) -> int:
        wrong = self.wrong_states + self.wrong_unlikes + self.wrong_repeats + self.wrong_totals
        return wrong + self.inexact


@dataclass(slots=True)
class Report:
    """Result of a burst. ``took_s``: seconds until the last like was answered.

    ``wrong_likes``: first likes answered with ``changed: false``. ``wrong_rows``: actors whose row
    differs from their last answer after the queues are empty.
    """

    options: Options
    tally: Tally
    took_s: float
    liked: int
    undecided: int
    wrong_likes: int
    observations: list[Observation]
    wrong_rows: int
    total: int
    expected_totals: tuple[int, int]
    quiet_after_s: float | None

    @property
    def wrong(self) -> int:
        moments = sum(moment.wrong for moment in self.observations)
        return moments + self.wrong_likes + self.wrong_rows

    @property
    def clean(self) -> bool:
        return not self.wrong and self.quiet_after_s is not None

    def to_json(self) -> dict[str, Any]:
        hidden = ("observations", "tally")
        return {
            "clean": self.clean,
            "wrong": self.wrong,
            **{name: value for name, value in asdict(self).items() if name not in hidden},
            "in_flight": self.tally.in_flight,
            **self.tally.percentiles._asdict(),
            "observations": [
                asdict(moment) | {"wrong": moment.wrong} for moment in self.observations
            ],
        }


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Run a burst. Returns 1 unless the report is clean. Raises CommandError."""
    require_positive(args, "likes", "seconds", "sample", "concurrency")
    if min(args.lag, args.build_lag, args.earlier) < 0:
        raise CommandError("--lag, --build-lag and --earlier can't be below 0")
    report = run_burst(stack, read_options(args, Options), progress_console(args))
    return print_report(args, report, show)


def run_burst(stack: Stack, options: Options, out: Console) -> Report:
    """Like a new post as many actors, and observe it. Raises CommandError."""
    actors = range(FIRST_ACTOR, FIRST_ACTOR + options.likes)
    before = range(actors.stop, actors.stop + options.earlier)
    everyone = [AUTHOR, *actors, *before]
    with out.status("opening sessions"):
        tokens = dict(zip(everyone, open_sessions(stack, everyone), strict=True))
        post_id = add_post(stack.mysql_url)
    with out.status("likes") as status:
        if before:
            status.update("earlier likes")
            asyncio.run(like_earlier(stack, post_id, tokens, before))
            forget(stack, post_id)
        lags_s = {"reactions": options.lag, "rebuilds": options.build_lag}
        with delay_messages(stack, lags_s):
            return asyncio.run(observe_burst(stack, post_id, options, tokens, actors))


async def like_earlier(
    stack: Stack, post_id: int, tokens: Mapping[int, str], actors: Sequence[int]
) -> None:
    """Like a post as ``actors``, and wait until that is stored. Raises CommandError."""
    async with Client(stack.base_url, tokens, CONCURRENCY) as client:
        tally = await client.play(actors, lambda actor: client.send(_like(post_id, actor), actor))
    if tally.errors or not await asyncio.to_thread(wait_until_quiet, stack, QUIET_S):
        raise CommandError("the earlier likes were not stored")


async def observe_burst(
    stack: Stack, post_id: int, options: Options, tokens: Mapping[int, str], actors: Sequence[int]
) -> Report:
    """Let the crowd like, observe it until all is stored, and once more then."""
    observations: list[Observation] = []
    async with (
        Client(stack.base_url, tokens, options.concurrency, max_attempts=1) as client,
        Client(stack.base_url, tokens, OBSERVERS, max_attempts=1) as reader,
    ):
        burst = Burst(client, reader, post_id, options)
        await client.connect_all()
        began_s = time.monotonic()

        async def observe(limit: int, *, touch: bool) -> None:
            moment = Observation(time.monotonic() - began_s, burst.liked, await count(stack))
            observations.append(moment)
            await burst.observe(moment, limit, touch=touch)

        async def watch(running: "asyncio.Future[Any]", *, touch: bool) -> None:
            while not running.done():
                due_s = began_s + (len(observations) + 1) * options.every_s
                await asyncio.wait({running}, timeout=max(0, due_s - time.monotonic()))
                if not running.done():
                    await observe(options.sample, touch=touch)

        playing = asyncio.create_task(
            client.play(actors, burst.like, rate=options.likes / options.seconds)
        )
        await watch(playing, touch=True)
        took_s = (await playing).took_s
        wait = asyncio.to_thread(wait_until_quiet, stack, QUIET_S + options.lag)
        quiet = asyncio.ensure_future(wait)
        # Touches are stored after the lag, so this phase would not end with them: it only reads.
        await watch(quiet, touch=False)
        quiet_after_s = time.monotonic() - began_s - took_s if await quiet else None
        await observe(options.likes, touch=True)
        if not await asyncio.to_thread(wait_until_quiet, stack, QUIET_S + options.lag):
            quiet_after_s = None
        await observe(options.sample, touch=False)
        total = await burst.read_total()
    return Report(
        options,
        client.tally,
        took_s,
        burst.liked,
        burst.undecided,
        burst.wrong_likes,
        observations,
        burst.count_wrong_rows(read_likers(stack.mysql_url, post_id)),
        total,
        burst.expect_total(burst.count_on(), burst.count_maybe()),
        quiet_after_s,
    )


class Burst:
    """The actors of a burst, what they were answered, and checks of later answers.

    An actor acts in the crowd first and for the observer later, never at the same time, so each
    answer follows from the previous ones. ``_states``: actor -> whether the like is on, by the last
    answer; None after one that does not tell.
    """

    def __init__(self, crowd: Client, observer: Client, post_id: int, options: Options) -> None:
        self.undecided = self.wrong_likes = 0
        self._crowd = crowd
        self._observer = observer
        self._post_id = post_id
        self._earlier = options.earlier
        self._rng = random.Random(options.seed)
        self._sent = 0
        self._answered = 0
        self._states: dict[int, bool | None] = {}

    @property
    def liked(self) -> int:
        return self._answered - self.undecided - self.wrong_likes

    async def like(self, actor_id: int) -> None:
        """Like the post for the first time."""
        self._sent += 1
        answer = await self._crowd.send(_like(self._post_id, actor_id), actor_id)
        self._answered += 1
        if answer.status == 200:
            self._states[actor_id] = True
            self.wrong_likes += answer.body["changed"] is not True
        else:
            self._states[actor_id] = None
            self.undecided += 1

    def count_on(self) -> int:
        """Count the actors whose like is on."""
        return list(self._states.values()).count(True)

    def count_maybe(self) -> int:
        """Count the actors whose like may be on: without an answer, or with one that leaves it
        open."""
        return self._sent - self._answered + list(self._states.values()).count(None)

    def expect_total(self, on: int, maybe: int) -> tuple[int, int]:
        """Return the lowest and the highest total that is true now, given an earlier ``on``."""
        return self._earlier + on, self._earlier + self.count_on() + maybe

    async def read_total(self) -> int:
        """Return the total as the post's author reads it; -1 without an answer."""
        item, _ = await self._read(AUTHOR)
        return int(item["likes"]) if item else -1

    async def observe(self, moment: Observation, limit: int, *, touch: bool) -> None:
        """Check the total and up to ``limit`` actors; with ``touch`` some of them act again."""
        on = self.count_on()
        total = await self.read_total()
        low, high = self.expect_total(on, self.count_maybe())
        moment.wrong_totals = int(total >= 0 and not low <= total <= high)
        known = [actor for actor, state in self._states.items() if state is not None]
        chosen = self._rng.sample(known, min(limit, len(known)))
        await self._observer.play(chosen, lambda actor: self._check_state(actor, moment))
        if not touch:
            return
        likers = [actor for actor in chosen if self._states[actor]]
        count = int(min(len(likers), limit) * _TOUCHED_SHARE)
        touched = likers[: 2 * count]
        moment.unlikes = moment.repeats = count
        unlikers = set(likers[:count])
        await self._observer.play(
            touched, lambda actor: self._touch(actor, moment, on=actor not in unlikers)
        )
        await self._observer.play(touched, lambda actor: self._check_state(actor, moment))

    def count_wrong_rows(self, likers: Set[int]) -> int:
        """Count actors whose row differs from their last answer."""
        return sum(
            (actor in likers) is not state
            for actor, state in self._states.items()
            if state is not None
        )

    async def _read(self, actor_id: int) -> tuple[Mapping[str, Any] | None, bool]:
        """Return the post as an actor reads it, None when refused, and whether it is exact."""
        body = {"targets": [{"type": "post", "id": str(self._post_id)}]}
        answer = await self._observer.send(Call("POST", "/reactions/query", body), actor_id)
        if answer.status != 200:
            return None, True
        return answer.body["items"][0], answer.body["exact"] is True

    async def _check_state(self, actor_id: int, moment: Observation) -> None:
        if self._states[actor_id] is None:
            return
        moment.asked += 1
        item, exact = await self._read(actor_id)
        if item is None:
            moment.refused += 1
        elif not exact:
            moment.inexact += 1
        else:
            moment.wrong_states += item["mine"]["liked"] is not self._states[actor_id]

    async def _touch(self, actor_id: int, moment: Observation, *, on: bool) -> None:
        """Like again, which must change nothing, or unlike, which must change the state."""
        answer = await self._observer.send(_like(self._post_id, actor_id, on=on), actor_id)
        if answer.status != 200:
            self._states[actor_id] = None
            moment.refused += answer.status != 202
            moment.inexact += answer.status == 202
            return
        self._states[actor_id] = on
        wrong = answer.body["changed"] is on
        moment.wrong_repeats += wrong and on
        moment.wrong_unlikes += wrong and not on


def show(report: Report, out: Console) -> None:
    options = report.options
    out.print(
        f"[bold]{options.likes:,} likes of one post in {report.took_s:.1f} s[/bold]"
        f" ({options.seconds:g} s requested), consumer lag {options.lag:g} s"
    )
    table = new_table("second", "liked", "unsaved", "mine", "unlikes", "again", "total", "")
    for moment in report.observations:
        table.add_row(
            f"{moment.at_s:.1f}",
            f"{moment.liked:,}",
            f"{moment.unsaved:,}",
            _share(moment.wrong_states + moment.inexact, moment.asked),
            _share(moment.wrong_unlikes, moment.unlikes),
            _share(moment.wrong_repeats, moment.repeats),
            "wrong" if moment.wrong_totals else "true",
            mark(not moment.wrong),
        )
    out.print("wrong answers at each moment")
    out.print(table)
    low, high = report.expected_totals
    expected = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    refused = sum(moment.refused for moment in report.observations)
    inexact = sum(moment.inexact for moment in report.observations)
    after = "never" if report.quiet_after_s is None else f"{report.quiet_after_s:.1f} s"
    summary = new_summary(
        ("in flight", report.tally.describe_in_flight(), ""),
        ("like to answer", str(report.tally.percentiles), ""),
        ("likes answered otherwise than 200", f"{report.undecided:,}", ""),
        ("later answers refused, inexact", f"{refused:,}, {inexact:,}", not inexact),
        ("first likes answered unchanged", f"{report.wrong_likes:,}", not report.wrong_likes),
        ("queues empty, after the last like", after, report.quiet_after_s is not None),
        ("total at quiet", f"{report.total:,}, expected {expected}", low <= report.total <= high),
        ("wrong rows at quiet", f"{report.wrong_rows:,}", not report.wrong_rows),
        ("wrong answers", f"{report.wrong:,}", not report.wrong),
    )
    out.print(summary)
    out.print("[green]clean[/green]" if report.clean else "[red]not clean[/red]")


@contextlib.contextmanager
def delay_messages(stack: Stack, lags_s: Mapping[str, float]) -> Iterator[None]:
    """Deliver the messages of each queue so many seconds after they were sent."""

    def put(lags_s: Mapping[str, float]) -> None:
        by_url = {stack.queues[queue]: lag_s for queue, lag_s in lags_s.items()}
        body = json.dumps({"lags_s": by_url})
        deployment.call_service(stack.lambda_url, "PUT", "/deliveries", body)

    put(lags_s)
    try:
        yield
    finally:
        put({})


def add_post(mysql_url: str) -> int:
    """Create a post of the author that has no likes. Returns its id."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM content WHERE author_id = %s", (AUTHOR,))
        [(count,)] = cursor.fetchall()
    create_posts([FIRST_POST + int(count)], [AUTHOR])
    return FIRST_POST + int(count)


def forget(stack: Stack, post_id: int) -> None:
    """Delete all keys of a post's likes from Redis."""
    with connect_redis(stack.redis_url, cluster=stack.redis_cluster) as client:
        for key in list(client.scan_iter(f"*:like:post:{post_id}:*", count=1000)):
            client.delete(key)


def read_likers(mysql_url: str, post_id: int) -> set[int]:
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT actor_id FROM reaction WHERE target_type = 'post' AND target_id = %s"
            " AND kind = 'like' AND state = 1",
            (post_id,),
        )
        return {int(actor_id) for (actor_id,) in cursor.fetchall()}


async def count(stack: Stack) -> int:
    """Count the reaction messages that are not stored."""
    return sum((await asyncio.to_thread(count_messages, stack))["reactions"])


def _like(post_id: int, actor_id: int, on: bool = True) -> Call:
    return set_reaction(Reaction("like", post_id, actor_id), on).call


def _share(wrong: int, of: int) -> str:
    return f"{wrong:,} of {of:,}"
