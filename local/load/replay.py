"""``replay``: play a file through the HTTP API, then hold everything against it.

What must be true after a replay follows from the file alone: it is compared with the rows, the
counters, Redis and the answers of the API. What a file is about is known by its header.
"""

import argparse
import asyncio
import contextlib
import json
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import psutil
import redis
from botocore.exceptions import EndpointConnectionError
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from local.audit import audit
from local.audit.audit import mark, new_list, new_table
from local.audit.quiet import deliver_again_sooner, wait_until_quiet
from local.audit.truth import Truth
from local.load import files, follows, interactions
from local.load.asking import Asker
from local.load.follows_piece import FollowsPiece
from local.load.interactions_piece import InteractionsPiece
from local.load.plans import Comparison, Forecast, Request
from local.load.players import Player, Tally, open_session
from local.paths import LocalError
from local.stack.servers import connect_mysql
from local.stack.stack import Stack
from local.stack.tokens import open_sessions

CONCURRENCY = 8
KILL_EVERY_S = (2.0, 5.0)
SHOWN = 10

console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Options:
    """How to play; see the command's help. ``quiet_s`` is how long to wait for quiet.

    ``halfway`` is called once, in a thread, when half of the requests are over.
    """

    concurrency: int = CONCURRENCY
    rate: float | None = None
    duplicates: float = 0.0
    seed: int = 0
    kill_consumers: bool = False
    quiet_s: float = 300.0
    halfway: Callable[[], object] | None = None


class Piece(Protocol):
    """What is played of a file. Everybody in ``user_ids`` has a session before it begins."""

    @property
    def requests(self) -> Sequence[Request]:
        """What is sent, in the order of the file."""

    @property
    def user_ids(self) -> Sequence[int]:
        """Who takes part."""

    @property
    def kinds(self) -> Set[str]:
        """Of which kinds of reactions it makes facts."""

    def prepare(self, stack: Stack) -> Sequence[Forecast]:
        """Make what must be there; what each request must come to, by what is there already."""

    async def compare(self, stack: Stack, asker: Asker, tell: Callable[[str], None]) -> Comparison:
        """What is there now, beside what the file says. Raises LocalError."""


class Played(NamedTuple):
    """A piece that was played, not yet compared. ``tokens`` by user."""

    name: str
    piece: Piece
    tokens: Mapping[int, str]
    forecasts: Sequence[Forecast]
    tally: Tally
    killed: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay came to.

    ``expected`` changes are those the file makes; ``persisted`` ones were saved. These are fewer
    when the batch of a killed consumer comes again after a newer event of the same reaction: on and
    off again are no change then. ``compared``: with the rows, lists and totals that there are.
    """

    name: str
    requests: Sequence[Request]
    tally: Tally
    expected: int
    persisted: int
    killed: int
    compared: Comparison
    truth: Truth

    @property
    def clean(self) -> bool:
        """Everything was taken, every answer can be true, and all agree with the file."""
        wrong = self.tally.failures or self.tally.wrong or self.compared.differences
        return self.truth.clean and not wrong

    def to_json(self) -> dict[str, Any]:
        """For a machine. Latencies in milliseconds."""
        p50_ms, p99_ms = latencies_ms(self.tally)
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
            "per_s": round(self.tally.sent / max(self.tally.took_s, 1e-9), 1),
            "p50_ms": p50_ms,
            "p99_ms": p99_ms,
            "audit": self.truth.to_json(),
        }


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Play a file; 1 unless all of it is clean. Raises LocalError."""
    if not 0 <= args.duplicates <= 1:
        raise LocalError(f"--duplicates is a share from 0 to 1, not {args.duplicates:g}")
    for name in ("rate", "limit", "concurrency"):
        if getattr(args, name) is not None and getattr(args, name) <= 0:
            raise LocalError(f"--{name} must be above 0")
    options = Options(
        concurrency=args.concurrency,
        rate=args.rate,
        duplicates=args.duplicates,
        seed=args.seed,
        kill_consumers=args.kill_consumers,
    )
    out = Console(stderr=True, highlight=False) if args.json else console
    piece = read_piece(args.file, options, args.limit)
    try:
        report = replay(stack, args.file.name, piece, options, out=out)
    except (EndpointConnectionError, redis.ConnectionError) as error:
        raise LocalError(f"the stack went away: {error}") from None
    if args.json:
        print(json.dumps(report.to_json()))
    else:
        show(report, console)
    return 0 if report.clean else 1


def replay(
    stack: Stack, name: str, piece: Piece, options: Options, *, out: Console = console
) -> Report:
    """Play ``piece``, wait for quiet, and compare. Raises LocalError."""
    (report,) = replay_all(stack, {name: piece}, options, out=out)
    return report


def replay_all(
    stack: Stack, pieces: Mapping[str, Piece], options: Options, *, out: Console = console
) -> list[Report]:
    """Play pieces by name, one after the other, wait for quiet, and compare all of them.

    No two may make the same kinds of facts. Raises LocalError.
    """
    with out.status("waiting for quiet"):
        if not wait_until_quiet(stack, options.quiet_s):
            raise LocalError("the stack does not come to rest; `audit` says what is on its way")
    since = datetime.now(UTC).date()
    logged = count_log(stack.mysql_url, since)
    with contextlib.ExitStack() as meanwhile:
        if options.kill_consumers:
            meanwhile.enter_context(deliver_again_sooner(stack, "reactions", "settlements"))
        played = [play(stack, name, piece, options, out) for name, piece in pieces.items()]
        with out.status("waiting for quiet") as status:
            wait_until_quiet(
                stack, options.quiet_s, lambda text: status.update(f"waiting for quiet: {text}")
            )
    with out.status("comparing") as status:
        logged = count_log(stack.mysql_url, since) - logged
        compared = [
            asyncio.run(compare(stack, one, options, lambda said: status.update(said)))
            for one in played
        ]
        truth = audit.read_truth(stack)  # last: it sees what asking brought into Redis
    return [
        Report(
            name=one.name,
            requests=one.piece.requests,
            tally=one.tally,
            expected=sum(forecast.changes for forecast in one.forecasts),
            persisted=sum(logged[kind] for kind in one.piece.kinds),
            killed=one.killed,
            compared=seen,
            truth=truth,
        )
        for one, seen in zip(played, compared, strict=True)
    ]


def play(stack: Stack, name: str, piece: Piece, options: Options, out: Console) -> Played:
    """Prepare and play one piece. Raises LocalError."""
    with out.status(f"preparing {name}"):
        tokens = dict(zip(piece.user_ids, open_sessions(stack, piece.user_ids), strict=True))
        forecasts = piece.prepare(stack)
    killed: list[int] = []

    async def send() -> Tally:
        with show_progress(name, len(piece.requests), out) as tell:
            async with open_session(options.concurrency) as session:
                half = asyncio.Event()

                def note(tally: Tally) -> None:
                    if tally.done * 2 >= len(piece.requests):
                        half.set()
                    tell(tally)

                player = Player(session, stack.base_url, tokens, note)
                killer = asyncio.create_task(kill_at_random(stack, options, killed))
                trouble = asyncio.create_task(call_halfway(options, half))
                try:
                    await player.play(
                        piece.requests,
                        forecasts,
                        concurrency=options.concurrency,
                        rate=options.rate,
                    )
                    await trouble
                finally:
                    killer.cancel()
                    trouble.cancel()
                return player.tally

    return Played(name, piece, tokens, forecasts, asyncio.run(send()), len(killed))


async def compare(
    stack: Stack, played: Played, options: Options, tell: Callable[[str], None]
) -> Comparison:
    """What is there, beside what must be after a piece was played. Raises LocalError."""
    async with Asker(stack.base_url, played.tokens, options.concurrency) as asker:
        return await played.piece.compare(stack, asker, lambda text: tell(f"comparing: {text}"))


def read_piece(path: Path, options: Options, limit: int | None = None) -> Piece:
    """What is to be played of a file, by its header. Raises LocalError."""
    header = files.read_header(path)
    if header == interactions.COLUMNS:
        rows = interactions.read_file(path, limit)
        return InteractionsPiece(rows, options.duplicates, options.seed)
    if header == follows.COLUMNS:
        return FollowsPiece(follows.read_file(path, limit), options.duplicates, options.seed)
    wanted = " or ".join(",".join(module.COLUMNS) for module in (interactions, follows))
    raise LocalError(files.tell_header(path.name, header, wanted))


def show(report: Report, out: Console) -> None:
    """Print what a replay came to, and the audit after it."""
    show_played(report, out)
    out.print("\n[bold]audit of everything[/bold]")
    out.print(audit.render(report.truth))


def show_played(report: Report, out: Console) -> None:
    """Print what a replay came to, by itself."""
    tally = report.tally
    acts = Counter(request.act for request in report.requests)
    p50_ms, p99_ms = latencies_ms(tally)
    facts = new_list()
    parts = ", ".join(f"{count:,} {act}s" for act, count in acts.most_common())
    facts.add_row("requests", f"{len(report.requests):,}: {parts}", "")
    retried = ", ".join(f"{count:,} after {why}" for why, count in tally.retries.most_common())
    again = f"{tally.duplicates:,} duplicates, {sum(tally.retries.values()):,} retries"
    facts.add_row("sent", f"{tally.sent:,}: {again}" + (f" ({retried})" if retried else ""), "")
    failed = f", {len(tally.failures):,} given up" if tally.failures else ""
    facts.add_row("accepted", f"{tally.accepted:,}{failed}", mark(not tally.failures))
    unsure = f", {tally.unsure:,} answers lost" if tally.unsure else ""
    told = tally.changed == report.expected or tally.unsure
    facts.add_row("changed", f"{tally.changed:,} of {report.expected:,}{unsure}", mark(bool(told)))
    saved = report.persisted >= report.expected or report.killed > 0
    facts.add_row("persisted", f"{report.persisted:,}", mark(saved))
    facts.add_row("answers that can't be true", f"{len(tally.wrong):,}", mark(not tally.wrong))
    if report.killed:
        facts.add_row("consumers killed", f"{report.killed:,}", "")
    speed = tally.sent / max(tally.took_s, 1e-9)
    facts.add_row("speed", f"{tally.took_s:,.1f} s, {speed:,.0f} requests/s", "")
    facts.add_row("latency", f"p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f} ms", "")
    out.print(f"[bold]{report.name}[/bold]")
    out.print(facts)
    problems = [*tally.failures[:SHOWN], *tally.wrong[:SHOWN], *report.compared.differences[:SHOWN]]
    for problem in problems:
        out.print(Text(f"  {problem}"))
    out.print()
    totals = new_table(report.compared.of, "the file", "COUNT(*)", "API", "")
    for name, (expected, rows, seen) in report.compared.totals.items():
        good = mark(expected == rows == seen)
        totals.add_row(name.replace("_", " "), f"{expected:,}", f"{rows:,}", f"{seen:,}", good)
    out.print(totals)
    for note in report.compared.notes:
        out.print(f"compared: {note}")
    differences = report.compared.differences
    out.print(f"{len(differences):,} differences from the file {mark(not differences)}")


def count_log(mysql_url: str, since: date) -> Counter[str]:
    """How many changes of each kind were saved, of days that no archive has taken by then."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT kind, COUNT(*) FROM reaction_log WHERE create_date >= %s AND change_by <> 0"
            " GROUP BY kind",
            (since,),
        )
        return Counter(dict(cursor.fetchall()))


def latencies_ms(tally: Tally) -> tuple[float, float]:
    """The 50th and 99th percentile of answered tries, milliseconds."""
    if len(tally.latencies_s) < 2:
        only = sum(tally.latencies_s) * 1000
        return only, only
    cuts = statistics.quantiles(tally.latencies_s, n=100, method="inclusive")
    return round(cuts[49] * 1000, 2), round(cuts[98] * 1000, 2)


async def kill_at_random(stack: Stack, options: Options, killed: list[int]) -> None:
    """Kill a consumer at work every few seconds, until cancelled; pids go to ``killed``."""
    chance = random.Random(options.seed)
    while options.kill_consumers:
        await asyncio.sleep(chance.uniform(*KILL_EVERY_S))
        workers = await asyncio.to_thread(find_consumers, stack)
        if workers:
            worker = chance.choice(workers)
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()
                killed.append(worker.pid)


async def call_halfway(options: Options, half: asyncio.Event) -> None:
    """Call ``options.halfway``, if there is one, in a thread, once it is time."""
    if options.halfway is not None:
        await half.wait()
        await asyncio.to_thread(options.halfway)


def find_consumers(stack: Stack) -> list[psutil.Process]:
    """The SaveReactions workers that have saved something: they are connected.

    One that is only starting is left alone: messages would use up their receives on consumers
    that never began.
    """
    found = []
    for worker in stack.find_workers("SaveReactions"):
        with contextlib.suppress(psutil.Error):
            if worker.net_connections("tcp"):
                found.append(worker)
    return found


@contextlib.contextmanager
def show_progress(name: str, total: int, out: Console) -> Iterator[Callable[[Tally], None]]:
    """A progress bar with requests a second; call what it yields with the tally so far."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task(name, total=total, speed="")

        def tell(tally: Tally) -> None:
            if tally.done % 20 and tally.done != total:
                return
            speed = progress.tasks[0].speed or 0
            failed = f" [red]{len(tally.failures)} failed[/red]" if tally.failures else ""
            progress.update(task, completed=tally.done, speed=f"{speed:,.0f} requests/s{failed}")

        yield tell
