"""``burst``: thousands of likes of one post within seconds, with a consumer that lags.

Viewer states and totals must be exact at every moment, not only when the queue is empty: after
``liked: true`` an actor is a liker, whether or not MySQL has the row. The command runs on a Redis
and a MariaDB of its own and prints the number of wrong answers at each moment.
"""

import argparse
import contextlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from cli.output import (
    mark,
    new_summary,
    new_table,
    print_report,
    progress_console,
    require_positive,
)
from cli.paths import CommandError
from local.load.burst_workers import FIRST_ACTOR, REACTIONS, Answer, Shared, start_workers
from local.stack import packages, servers
from local.stack.processes import wait_until
from plaza.infra.mysql import migrations, mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.errors import Unavailable
from plaza.reactions import LIKE, Target, queries, react

POST = 9_700_001
AUTHOR = 9_700_000
TARGET = Target("post", POST)
MAX_PHASE_S = 120.0
_TOUCHED_SHARE = 0.1  # of the sampled actors: unlike, and as many like again


@dataclass(frozen=True, slots=True)
class Options:
    """Size of a burst. ``every_s``: seconds between two observations.

    ``earlier`` likes by other actors are saved first, then Redis is emptied: the burst begins with
    the build of a bloom filter, which starts ``build_lag_s`` after it was requested.
    """

    likes: int
    seconds: float
    lag_s: float
    earlier: int = 0
    build_lag_s: float = 0.0
    sample: int = 300
    every_s: float = 1.0
    seed: int = 0
    workers: int = field(default_factory=lambda: max(2, os.cpu_count() or 2))


@dataclass(slots=True)
class Observation:
    """Answers at one moment. ``refused``: answers with 503, which are not wrong.

    ``at_s``: seconds since the first like. ``liked``: actors with the answer ``liked: true``.
    ``unsaved``: reaction messages that no consumer has finished.
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
        return (
            sum(moment.wrong for moment in self.observations) + self.wrong_likes + self.wrong_rows
        )

    @property
    def clean(self) -> bool:
        return not self.wrong and self.quiet_after_s is not None

    def to_json(self) -> dict[str, Any]:
        return {
            "clean": self.clean,
            "wrong": self.wrong,
            **{name: value for name, value in asdict(self).items() if name != "observations"},
            "observations": [
                asdict(moment) | {"wrong": moment.wrong} for moment in self.observations
            ],
        }


def main(args: argparse.Namespace) -> int:
    """Run a burst on its own servers. Returns 1 unless the report is clean. Raises CommandError."""
    require_positive(args, "likes", "seconds", "sample")
    if args.lag < 0:
        raise CommandError("--lag can't be below 0")
    options = Options(args.likes, args.seconds, args.lag, sample=args.sample, seed=args.seed)
    out = progress_console(args)
    packages.check_servers()
    with contextlib.ExitStack() as ends:
        directory = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="plaza-burst-")))
        with out.status("starting Redis and MariaDB"):
            databases = servers.run_databases(directory)
            redis_server, mysql_server = ends.enter_context(databases)
        environment = {
            "PLAZA_ENVIRONMENT": "local",
            "PLAZA_REDIS_URL": redis_server.url,
            "PLAZA_REDIS_CLUSTER": "0",
            "PLAZA_MYSQL_URL": mysql_server.url,
            # On a busy machine half a second without a reply is no outage.
            "PLAZA_REDIS_TIMEOUT_S": "5",
        }
        os.environ.update(environment)
        with _quiet_log():
            migrations.apply_migrations()
        with out.status("likes"):
            report = run_burst(environment, options)
    return print_report(args, report, show)


def run_burst(environment: Mapping[str, str], options: Options) -> Report:
    """Run a burst on servers that have the tables. Raises CommandError when a process fails.

    ``environment`` has the settings (``PLAZA_*``); this process must have them too.
    """
    shared = Shared(options.likes, options.workers)
    with contextlib.ExitStack() as ends:
        ends.enter_context(_quiet_log())
        ends.enter_context(shared.replace_sqs())
        _add_post()
        observer = Observer(shared, options)
        actors, consumers = ends.enter_context(
            start_workers(shared, environment, POST, options.likes, options.seconds)
        )
        if options.earlier:
            observer.seed_likes(options.earlier)
        shared.lag_s.value, shared.build_lag_s.value = options.lag_s, options.build_lag_s
        shared.start.wait()
        began_s = time.monotonic()
        observations: list[Observation] = []
        took_s = 0.0

        def watch(until: Callable[[], bool], *, touch: bool) -> bool:
            deadline_s = time.monotonic() + MAX_PHASE_S
            while not until():
                if not all(consumer.is_alive() for consumer in consumers):
                    raise CommandError("a consumer of the burst failed; its error is above")
                if time.monotonic() > deadline_s:
                    return False
                at_s = began_s + (len(observations) + 1) * options.every_s
                if wait_until(until, at_s - time.monotonic()):
                    break
                now_s = time.monotonic() - began_s
                observations.append(observer.observe(now_s, options.sample, touch=touch))
            return True

        def is_quiet() -> bool:
            return shared.count_unfinished() == 0

        if not watch(lambda: not any(actor.is_alive() for actor in actors), touch=True):
            raise CommandError("the likes did not end")
        took_s = time.monotonic() - began_s
        if any(actor.exitcode for actor in actors):
            raise CommandError("a process of the burst failed; its error is above")
        # Touches are saved after the lag, so this phase would not end with them: it only reads.
        quiet = watch(is_quiet, touch=False)
        quiet_after_s = time.monotonic() - began_s - took_s if quiet else None
        observations.append(observer.observe(time.monotonic() - began_s, options.likes, touch=True))
        quiet = quiet and wait_until(is_quiet, MAX_PHASE_S)
        observations.append(
            observer.observe(time.monotonic() - began_s, options.sample, touch=False)
        )
        wrong_rows = observer.count_wrong_rows()
        total = observer.read_total()
    answers = shared.count_answers()
    return Report(
        options,
        took_s,
        answers[Answer.LIKED],
        answers[Answer.UNDECIDED],
        answers[Answer.WRONG],
        observations,
        wrong_rows,
        total,
        observer.expect_total(answers, answers),
        quiet_after_s if quiet else None,
    )


class Observer:
    """Reads the states of actors with an answer, and repeats or undoes the likes of some.

    An actor acts in one process first and here later, never at the same time, so each answer
    follows from the previous ones.
    """

    def __init__(self, shared: Shared, options: Options) -> None:
        self._shared = shared
        self._rng = random.Random(options.seed)
        self._earlier = 0
        self._unliked: set[int] = set()  # places of actors that removed their like
        self._unknown: set[int] = set()  # places whose last request was answered with 202 or 503

    def seed_likes(self, count: int) -> None:
        """Save likes of ``count`` other actors, then empty Redis.

        Raises CommandError when the queues do not become empty.
        """

        for number in range(1, count + 1):
            react.react(LIKE, TARGET, FIRST_ACTOR - number, True)
        if not wait_until(lambda: self._shared.count_unfinished() == 0, MAX_PHASE_S):
            raise CommandError("the earlier likes were not saved")
        redis.execute("FLUSHALL")
        self._earlier = count

    def observe(self, at_s: float, limit: int, *, touch: bool) -> Observation:
        """Check the total and up to ``limit`` actors; with ``touch`` some of them act again.

        Costs one call for each actor and one for the total.
        """
        before = self._shared.count_answers()
        total = self.read_total()
        after = self._shared.count_answers()
        low, high = self.expect_total(before, after)
        moment = Observation(at_s, before[Answer.LIKED], self._shared.count_unfinished(REACTIONS))
        moment.wrong_totals = int(not low <= total <= high)
        chosen = self._choose(limit)
        self._check_states(chosen, moment)
        if not touch:
            return moment
        touched = [number for number in chosen if number not in self._unliked]
        count = int(min(len(touched), limit) * _TOUCHED_SHARE)
        unlikers, repeaters = touched[:count], touched[count : 2 * count]
        moment.unlikes, moment.repeats = len(unlikers), len(repeaters)
        for number in unlikers:
            moment.wrong_unlikes += self._react(number, False, moment) is False
        for number in repeaters:
            moment.wrong_repeats += self._react(number, True, moment) is True
        self._check_states(unlikers + repeaters, moment)
        return moment

    def read_total(self) -> int:

        [count], _ = queries.read_counts([(LIKE, TARGET)], AUTHOR)
        return count.total

    def expect_total(
        self, before: Mapping[Answer, int], after: Mapping[Answer, int]
    ) -> tuple[int, int]:
        """Return the lowest and the highest total that is true between two counts of answers."""
        high = self._earlier + sum(after.values()) - after[Answer.NONE]
        low = self._earlier + before[Answer.LIKED] + before[Answer.WRONG]
        return low - len(self._unliked | self._unknown), high - len(self._unliked)

    def count_wrong_rows(self) -> int:
        """Count actors whose row differs from their last answer. One statement."""

        rows = mysql.fetch_all(
            "SELECT actor_id FROM reaction WHERE target_type = 'post' AND target_id = %s"
            " AND kind = 'like' AND state = 1",
            (POST,),
        )
        on = {int(row[0]) - FIRST_ACTOR for row in rows}
        return sum((number in on) is not self._expect(number) for number in self._find_answered())

    def _choose(self, limit: int) -> list[int]:
        """Draw up to ``limit`` actors whose last answer is final."""
        answered = self._find_answered()
        return self._rng.sample(answered, min(limit, len(answered)))

    def _find_answered(self) -> list[int]:
        good = (Answer.LIKED, Answer.WRONG)
        return [
            number
            for number, answer in enumerate(bytes(self._shared.answers))
            if answer in good and number not in self._unknown
        ]

    def _expect(self, number: int) -> bool:
        return number not in self._unliked

    def _check_states(self, numbers: Iterable[int], moment: Observation) -> None:

        for number in numbers:
            if number in self._unknown:
                continue
            moment.asked += 1
            try:
                [count], exact = queries.read_counts([(LIKE, TARGET)], FIRST_ACTOR + number)
            except Unavailable:
                moment.refused += 1
                continue
            if not exact:
                moment.inexact += 1
            elif count.viewer_state is not self._expect(number):
                moment.wrong_states += 1

    def _react(self, number: int, on: bool, moment: Observation) -> bool | None:
        """Send a like or an unlike. Returns ``changed``, or None for 202 and 503."""

        try:
            outcome = react.react(LIKE, TARGET, FIRST_ACTOR + number, on)
        except Unavailable:
            self._unknown.add(number)
            moment.refused += 1
            return None
        if not outcome.exact:
            self._unknown.add(number)
            moment.inexact += 1
            return None
        if not on:
            self._unliked.add(number)
        return outcome.changed


def show(report: Report, out: Console) -> None:
    options = report.options
    out.print(
        f"[bold]{options.likes:,} likes of one post in {report.took_s:.1f} s[/bold]"
        f" ({options.seconds:g} s requested), consumer lag {options.lag_s:g} s"
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
        ("likes answered 202 or 503", f"{report.undecided:,}", ""),
        ("later answers 503, inexact", f"{refused:,}, {inexact:,}", not inexact),
        ("first likes answered unchanged", f"{report.wrong_likes:,}", not report.wrong_likes),
        ("queues empty, after the last like", after, report.quiet_after_s is not None),
        (
            "total at quiet",
            f"{report.total:,}, expected {expected}",
            low <= report.total <= high,
        ),
        ("wrong rows at quiet", f"{report.wrong_rows:,}", not report.wrong_rows),
        ("wrong answers", f"{report.wrong:,}", not report.wrong),
    )
    out.print(summary)
    out.print("[green]clean[/green]" if report.clean else "[red]not clean[/red]")


def _share(wrong: int, of: int) -> str:
    return f"{wrong:,} of {of:,}"


def _add_post() -> None:

    mysql.write(
        "INSERT IGNORE INTO content (content_type, content_id, author_id) VALUES ('post', %s, %s)",
        (POST, AUTHOR),
    )


@contextlib.contextmanager
def _quiet_log() -> Iterator[None]:
    """Discard the log lines of functions for the duration of the block."""
    with open(os.devnull, "w") as log, contextlib.redirect_stdout(log):
        yield
