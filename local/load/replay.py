"""``replay``: play a file through the HTTP API, then compare all stores with the file.

The expected state follows from the file alone. It is compared with rows, counters, Redis and the
answers of the API. The header of a file determines its kind.
"""

import argparse
import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import redis
from botocore.exceptions import EndpointConnectionError
from rich.console import Console
from rich.text import Text

from cli import files
from cli.output import (
    console,
    mark,
    new_summary,
    new_table,
    print_report,
    progress_console,
    read_options,
    require_positive,
    show_progress,
)
from cli.paths import CommandError
from local.audit import audit
from local.audit.backlog import shorten_visibility_timeout, wait_until_quiet
from local.audit.compare import AuditReport
from local.load import follows, interactions
from local.load.api_reader import ApiReader
from local.load.background import kill_workers
from local.load.crowd import Tally
from local.load.follows import Follows
from local.load.interactions import Interactions
from local.load.player import Player
from local.load.requests import Expectation, Request
from local.load.scenario import Comparison, Scenario
from local.stack.servers import connect_mysql
from local.stack.stack import Stack
from local.stack.tokens import open_sessions

CONCURRENCY = 8
KILL_EVERY_S = (2.0, 5.0)
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a replay. ``quiet_s``: the longest wait for empty queues.

    ``meanwhile`` runs beside the requests, and the replay waits for its end.
    """

    concurrency: int = CONCURRENCY
    rate: float | None = None
    duplicates: float = 0.0
    seed: int = 0
    kill_consumers: bool = False
    quiet_s: float = 300.0
    meanwhile: Callable[[Player], Coroutine[Any, Any, None]] | None = None


class PlayedScenario(NamedTuple):
    """A scenario that was played and not yet compared. ``tokens`` by user."""

    name: str
    scenario: Scenario
    tokens: Mapping[int, str]
    expectations: Sequence[Expectation]
    tally: Tally
    killed: int


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a replay.

    ``expected``: changes by the file. ``persisted``: changes in the reaction log, which has fewer
    when the batch of a killed consumer is delivered again after a newer event of the same reaction:
    on and off again are no change then.
    """

    name: str
    requests: Sequence[Request]
    tally: Tally
    expected: int
    persisted: int
    killed: int
    compared: Comparison
    audit_report: AuditReport

    @property
    def clean(self) -> bool:
        """Return whether no request failed, no answer is false, and all stores match the file."""
        wrong = self.tally.failures or self.tally.wrong or self.compared.differences
        return self.audit_report.clean and not wrong

    def to_json(self) -> dict[str, Any]:
        return {
            "clean": self.clean,
            "requests": len(self.requests),
            "sent": self.tally.sent,
            "duplicates": self.tally.duplicates,
            "retries": dict(self.tally.retries),
            "accepted": self.tally.accepted,
            "failed": len(self.tally.failures),
            "failures": self.tally.failures[:SHOWN],
            "changed": self.tally.changed,
            "expected": self.expected,
            "persisted": self.persisted,
            "wrong": self.tally.wrong[:SHOWN],
            "killed": self.killed,
            "totals": {
                name: dict(zip(("file", "rows", "api"), all_, strict=True))
                for name, all_ in self.compared.totals.items()
            },
            "compared": list(self.compared.notes),
            "differences": list(self.compared.differences[:SHOWN]),
            "took_s": round(self.tally.took_s, 2),
            "per_s": round(self.tally.rate, 1),
            "in_flight_mean": round(self.tally.in_flight[0], 1),
            "in_flight_max": self.tally.in_flight[1],
            **self.tally.percentiles._asdict(),
            "audit": self.audit_report.to_json(),
        }


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Play a file. Returns 1 unless the report is clean. Raises CommandError."""
    if not 0 <= args.duplicates <= 1:
        raise CommandError(f"--duplicates is a share from 0 to 1, not {args.duplicates:g}")
    require_positive(args, "rate", "limit", "concurrency")
    options = read_options(args, Options)
    scenario = read_scenario(args.file, options, args.limit)
    try:
        report = replay(stack, args.file.name, scenario, options, out=progress_console(args))
    except (EndpointConnectionError, redis.ConnectionError) as error:
        raise CommandError(f"the stack stopped answering: {error}") from None
    return print_report(args, report, show)


def replay(
    stack: Stack, name: str, scenario: Scenario, options: Options, *, out: Console = console
) -> Report:
    """Play a scenario, wait until the queues are empty, and compare. Raises CommandError."""
    (report,) = replay_all(stack, {name: scenario}, options, out=out)
    return report


def replay_all(
    stack: Stack, scenarios: Mapping[str, Scenario], options: Options, *, out: Console = console
) -> list[Report]:
    """Play scenarios by name, one after the other, wait for empty queues, and compare all.

    No two may change the same kinds of reactions. Raises CommandError.
    """
    with out.status("waiting for quiet"):
        if not wait_until_quiet(stack, options.quiet_s):
            raise CommandError("the queues of the stack do not become empty; see `audit`")
    since = datetime.now(UTC).date()
    logged = count_log(stack.mysql_url, since)
    with contextlib.ExitStack() as meanwhile:
        if options.kill_consumers:
            meanwhile.enter_context(
                shorten_visibility_timeout(stack, "reactions", "acknowledgements")
            )
        played = [play(stack, name, scenario, options, out) for name, scenario in scenarios.items()]
        with out.status("waiting for quiet") as status:
            wait_until_quiet(
                stack, options.quiet_s, lambda text: status.update(f"waiting for quiet: {text}")
            )
    with out.status("comparing") as status:
        logged = count_log(stack.mysql_url, since) - logged
        compared = [asyncio.run(compare(stack, run, options, status.update)) for run in played]
        # Last: the comparisons hydrate targets.
        audit_report = audit.audit_when_quiet(stack, options.quiet_s)
    return [
        Report(
            name=run.name,
            requests=run.scenario.requests,
            tally=run.tally,
            expected=sum(expectation.changes for expectation in run.expectations),
            persisted=sum(logged[kind] for kind in run.scenario.kinds),
            killed=run.killed,
            compared=reported,
            audit_report=audit_report,
        )
        for run, reported in zip(played, compared, strict=True)
    ]


def play(
    stack: Stack, name: str, scenario: Scenario, options: Options, out: Console
) -> PlayedScenario:
    """Prepare and play one scenario. Raises CommandError."""
    requests = scenario.requests
    with out.status(f"preparing {name}"):
        user_ids = scenario.user_ids
        tokens = dict(zip(user_ids, open_sessions(stack, user_ids), strict=True))
        expectations = scenario.prepare(stack)

    async def send(on_progress: Callable[[int, str], None]) -> Tally:
        def note(tally: Tally) -> None:
            if tally.ended % 20 == 0 or tally.ended == len(requests):
                failed = len(tally.failures)
                on_progress(tally.ended, f"[red]{failed} failed[/red]" if failed else "")

        async with Player(stack.base_url, tokens, options.concurrency, note) as player:
            async with asyncio.TaskGroup() as group:
                if options.meanwhile:
                    group.create_task(options.meanwhile(player))
                await player.play_requests(requests, expectations, rate=options.rate)
            return player.tally

    with contextlib.ExitStack() as meanwhile:
        on_progress = meanwhile.enter_context(show_progress(name, "requests", len(requests), out))
        killed = list[int]()
        if options.kill_consumers:
            killer = kill_workers(stack, "SaveReactions", KILL_EVERY_S, options.seed)
            killed = meanwhile.enter_context(killer)
        try:
            tally = asyncio.run(send(on_progress))
        except* CommandError as errors:
            raise errors.exceptions[0] from None
    return PlayedScenario(name, scenario, tokens, expectations, tally, len(killed))


async def compare(
    stack: Stack, played: PlayedScenario, options: Options, on_progress: Callable[[str], None]
) -> Comparison:
    """Compare the stores with the scenario after it was played. Raises CommandError."""
    async with ApiReader(
        stack.base_url,
        played.tokens,
        options.concurrency,
        lambda text: on_progress(f"comparing: {text}"),
    ) as api:
        return await played.scenario.compare(stack, api)


def read_scenario(path: Path, options: Options, limit: int | None = None) -> Scenario:
    """Return the scenario of a file, chosen by its header. Raises CommandError."""
    header = files.read_header(path)
    if header == interactions.FILES.columns:
        rows = interactions.FILES.read(path, limit)
        return Interactions(rows, options.duplicates, options.seed)
    if header == follows.FILES.columns:
        return Follows(follows.FILES.read(path, limit), options.duplicates, options.seed)
    expected = " or ".join(",".join(module.FILES.columns) for module in (interactions, follows))
    raise CommandError(files.describe_bad_header(path.name, header, expected))


def show(report: Report, out: Console) -> None:
    show_replay(report, out)
    out.print("\n[bold]audit of everything[/bold]")
    out.print(audit.render(report.audit_report))


def show_replay(report: Report, out: Console) -> None:
    tally = report.tally
    acts = Counter(request.act for request in report.requests)
    parts = ", ".join(f"{count:,} {act}s" for act, count in acts.most_common())
    retried = ", ".join(
        f"{count:,} after {reason}" for reason, count in tally.retries.most_common()
    )
    again = f"{tally.duplicates:,} duplicates, {sum(tally.retries.values()):,} retries"
    failed = f", {len(tally.failures):,} failed" if tally.failures else ""
    uncertain = f", {tally.uncertain:,} uncertain" if tally.uncertain else ""
    plausible = tally.changed == report.expected or tally.uncertain > 0
    saved = report.persisted >= report.expected or report.killed > 0
    summary = new_summary(
        ("requests", f"{len(report.requests):,}: {parts}", ""),
        ("sent", f"{tally.sent:,}: {again}" + (f" ({retried})" if retried else ""), ""),
        ("accepted", f"{tally.accepted:,}{failed}", not tally.failures),
        ("changed", f"{tally.changed:,} of {report.expected:,}{uncertain}", plausible),
        ("persisted", f"{report.persisted:,}", saved),
        ("impossible answers", f"{len(tally.wrong):,}", not tally.wrong),
        *([("consumers killed", f"{report.killed:,}", "")] if report.killed else []),
        ("speed", f"{tally.took_s:,.1f} s, {tally.rate:,.0f} requests/s", ""),
        ("in flight", tally.describe_in_flight(), ""),
        ("latency", str(tally.percentiles), ""),
    )
    out.print(f"[bold]{report.name}[/bold]")
    out.print(summary)
    problems = [*tally.failures[:SHOWN], *tally.wrong[:SHOWN], *report.compared.differences[:SHOWN]]
    for problem in problems:
        out.print(Text(f"  {problem}"))
    out.print()
    totals = new_table(report.compared.of, "the file", "COUNT(*)", "API", "")
    for name, (expected, rows, reported) in report.compared.totals.items():
        good = mark(expected == rows == reported)
        totals.add_row(name.replace("_", " "), f"{expected:,}", f"{rows:,}", f"{reported:,}", good)
    out.print(totals)
    for note in report.compared.notes:
        out.print(f"compared: {note}")
    differences = report.compared.differences
    out.print(f"{len(differences):,} differences from the file {mark(not differences)}")


def count_log(mysql_url: str, since: date) -> Counter[str]:
    """Count the logged changes of each kind since a day that is not archived yet."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT kind, COUNT(*) FROM reaction_log WHERE create_date >= %s AND change_by <> 0"
            " GROUP BY kind",
            (since,),
        )
        return Counter(dict(cursor.fetchall()))
