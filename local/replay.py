"""``replay``: play a file of interactions through the HTTP API, then hold everything against it.

What must be true after a replay follows from the file alone: it is compared with the rows, the
counters, Redis and the answers of the API.
"""

import argparse
import asyncio
import contextlib
import json
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil
from pymysql.cursors import SSCursor
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

from local import audit
from local.audit import mark, new_list, new_table
from local.interactions import (
    Reaction,
    Request,
    Verb,
    author_of,
    foresee,
    plan,
    read_file,
)
from local.paths import LocalError
from local.players import Player, Tally, open_session
from local.quiet import deliver_again_sooner, wait_until_quiet
from local.servers import connect_mysql
from local.stack import Stack
from local.tokens import open_sessions
from local.truth import Truth

CONCURRENCY = 8
KILL_EVERY_S = (2.0, 5.0)
SHOWN = 10
_BATCH = 1000
_QUERY = 100  # the most targets one question takes
_LISTED = 20  # the most liked posts: their likers are read through the API

console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Options:
    """How to play; see the command's help. ``quiet_s`` is how long to wait for quiet."""

    concurrency: int = CONCURRENCY
    rate: float | None = None
    duplicates: float = 0.0
    seed: int = 0
    kill_consumers: bool = False
    quiet_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay came to.

    ``expected`` changes are those the file makes; ``persisted`` facts were saved during the
    replay. ``totals``: kind -> (what the file says, rows, API). ``differences`` are between
    the file and the rows, lists and totals that there are.
    """

    name: str
    requests: Sequence[Request]
    tally: Tally
    expected: int
    persisted: int
    killed: int
    totals: Mapping[str, tuple[int, int, int]]
    differences: Sequence[str]
    truth: Truth

    @property
    def clean(self) -> bool:
        """Everything was taken, every answer can be true, and all agree with the file."""
        wrong = self.tally.failures or self.tally.wrong or self.differences
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
                kind: dict(zip(("file", "rows", "api"), all_, strict=True))
                for kind, all_ in self.totals.items()
            },
            "differences": list(self.differences[:SHOWN]),
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
    report = replay(stack, args.file, options, limit=args.limit, out=out)
    if args.json:
        print(json.dumps(report.to_json()))
    else:
        show(report, console)
    return 0 if report.clean else 1


def replay(
    stack: Stack,
    path: Path,
    options: Options,
    *,
    limit: int | None = None,
    out: Console = console,
) -> Report:
    """Play the file at ``path``, wait for quiet, and compare. Raises LocalError."""
    requests = plan(read_file(path, limit), options.duplicates, options.seed)
    user_ids = sorted({request.user_id for request in requests})
    item_ids = sorted({request.item_id for request in requests})
    with out.status("preparing users and posts"):
        if not wait_until_quiet(stack, options.quiet_s):
            raise LocalError("the stack does not come to rest; `audit` says what is on its way")
        create_posts(stack.mysql_url, item_ids, user_ids)
        tokens = dict(zip(user_ids, open_sessions(stack, user_ids), strict=True))
        before, logged = read_reactions(stack.mysql_url, set(item_ids))
    forecasts, after = foresee(requests, before)
    killed: list[int] = []

    async def play() -> Tally:
        with show_progress(path.name, len(requests), out) as tell:
            async with open_session(options.concurrency) as session:
                player = Player(session, stack.base_url, tokens, tell)
                killer = asyncio.create_task(kill_at_random(stack, options, killed))
                try:
                    await player.play(
                        requests, forecasts, concurrency=options.concurrency, rate=options.rate
                    )
                finally:
                    killer.cancel()
                return player.tally

    with contextlib.ExitStack() as meanwhile:
        if options.kill_consumers:
            meanwhile.enter_context(deliver_again_sooner(stack, "reactions", "settlements"))
        tally = asyncio.run(play())
        with out.status("waiting for quiet") as status:
            wait_until_quiet(
                stack, options.quiet_s, lambda text: status.update(f"waiting for quiet: {text}")
            )
    with out.status("comparing"):
        rows, logged_now = read_reactions(stack.mysql_url, set(item_ids))
        truth = audit.read_truth(stack)
        seen = asyncio.run(ask_totals(stack.base_url, item_ids))
        likers = asyncio.run(ask_likers(stack.base_url, find_most_liked(after)))
    return Report(
        name=path.name,
        requests=requests,
        tally=tally,
        expected=sum(forecast.changes for forecast in forecasts),
        persisted=logged_now - logged,
        killed=len(killed),
        totals=add_up(after, rows, seen),
        differences=find_differences(after, rows, seen, likers),
        truth=truth,
    )


def show(report: Report, out: Console) -> None:
    """Print what a replay came to."""
    tally = report.tally
    verbs = Counter(request.verb for request in report.requests)
    p50_ms, p99_ms = latencies_ms(tally)
    facts = new_list()
    parts = ", ".join(f"{verbs[verb]:,} {verb.name.lower()}s" for verb in Verb if verbs[verb])
    facts.add_row("requests in the file", f"{len(report.requests):,}: {parts}", "")
    retried = ", ".join(f"{count:,} after {why}" for why, count in tally.retries.most_common())
    again = f"{tally.duplicates:,} duplicates, {sum(tally.retries.values()):,} retries"
    facts.add_row("sent", f"{tally.sent:,}: {again}" + (f" ({retried})" if retried else ""), "")
    failed = f", {len(tally.failures):,} given up" if tally.failures else ""
    facts.add_row("accepted", f"{tally.accepted:,}{failed}", mark(not tally.failures))
    unsure = f", {tally.unsure:,} answers lost" if tally.unsure else ""
    told = tally.changed == report.expected or tally.unsure
    facts.add_row("changed", f"{tally.changed:,} of {report.expected:,}{unsure}", mark(bool(told)))
    facts.add_row("persisted", f"{report.persisted:,}", mark(report.persisted >= report.expected))
    facts.add_row("answers that can't be true", f"{len(tally.wrong):,}", mark(not tally.wrong))
    if report.killed:
        facts.add_row("consumers killed", f"{report.killed:,}", "")
    speed = tally.sent / max(tally.took_s, 1e-9)
    facts.add_row("speed", f"{tally.took_s:,.1f} s, {speed:,.0f} requests/s", "")
    facts.add_row("latency", f"p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f} ms", "")
    out.print(f"[bold]{report.name}[/bold]")
    out.print(facts)
    problems = [*tally.failures[:SHOWN], *tally.wrong[:SHOWN], *report.differences[:SHOWN]]
    for problem in problems:
        out.print(Text(f"  {problem}"))
    out.print()
    totals = new_table("of its posts", "the file", "COUNT(*)", "API", "")
    for kind, (expected, rows, seen) in report.totals.items():
        totals.add_row(
            f"{kind}s", f"{expected:,}", f"{rows:,}", f"{seen:,}", mark(expected == rows == seen)
        )
    out.print(totals)
    found = f"{len(report.differences):,} differences from the file"
    out.print(f"{found} {mark(not report.differences)}\n")
    out.print("[bold]audit of everything[/bold]")
    out.print(audit.render(report.truth))


def create_posts(mysql_url: str, item_ids: Sequence[int], user_ids: Sequence[int]) -> None:
    """Rows of ``content`` for posts that have none, each by one of ``user_ids`` (sorted)."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        for start in range(0, len(item_ids), _BATCH):
            cursor.executemany(
                "INSERT IGNORE INTO content (content_type, content_id, author_id)"
                " VALUES ('post', %s, %s)",
                [(id_, author_of(id_, user_ids)) for id_ in item_ids[start : start + _BATCH]],
            )


def read_reactions(mysql_url: str, item_ids: Set[int]) -> tuple[set[Reaction], int]:
    """What is on of these posts, and how many facts were ever saved."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute("SELECT COUNT(*) FROM reaction_log")
        ((logged,),) = cursor.fetchall()
        cursor.execute(
            "SELECT kind, target_id, actor_id FROM reaction"
            " WHERE target_type = 'post' AND state = 1"
        )
        return {Reaction(*row) for row in cursor if row[1] in item_ids}, logged


async def ask_totals(base_url: str, item_ids: Sequence[int]) -> dict[int, dict[str, int]]:
    """The totals of posts by the API: post -> kind -> total. Raises LocalError."""
    seen = {}
    async with open_session(4) as session:
        for start in range(0, len(item_ids), _QUERY):
            part = item_ids[start : start + _QUERY]
            targets = [{"type": "post", "id": str(item_id)} for item_id in part]
            answer = await _ask(
                session, "POST", f"{base_url}/reactions/query", {"targets": targets}
            )
            for item_id, said in zip(part, answer["items"], strict=True):
                seen[item_id] = {"like": said["likes"], "collect": said["collects"]}
    return seen


async def ask_likers(base_url: str, item_ids: Iterable[int]) -> dict[int, list[int]]:
    """Who likes each of these posts, by all pages of the API. Raises LocalError."""
    likers: dict[int, list[int]] = {}
    async with open_session(4) as session:
        for item_id in item_ids:
            found, cursor = likers.setdefault(item_id, []), ""
            while cursor is not None:
                url = f"{base_url}/posts/{item_id}/likers?limit=100{cursor}"
                page = await _ask(session, "GET", url)
                found += [int(liker["user_id"]) for liker in page["items"]]
                cursor = page["next"] and f"&cursor={page['next']}"
    return likers


async def _ask(
    session: aiohttp.ClientSession, method: str, url: str, question: Any = None
) -> dict[str, Any]:
    async with session.request(method, url, json=question) as response:
        if response.status != 200:
            text = await response.text()
            raise LocalError(f"{method} {url} answers {response.status}: {text[:300]}")
        answer: dict[str, Any] = await response.json()
    return answer


def find_most_liked(reactions: Iterable[Reaction]) -> list[int]:
    """The posts with the most likes, most first."""
    likes = Counter(reaction.item_id for reaction in reactions if reaction.kind == "like")
    return [item_id for item_id, _ in likes.most_common(_LISTED)]


def add_up(
    after: Set[Reaction], rows: Set[Reaction], seen: Mapping[int, Mapping[str, int]]
) -> dict[str, tuple[int, int, int]]:
    """Kind -> what the file says, COUNT(*) and what the API says, of all posts of the file."""
    expected = Counter(reaction.kind for reaction in after)
    counted = Counter(reaction.kind for reaction in rows)
    return {
        kind: (expected[kind], counted[kind], sum(totals[kind] for totals in seen.values()))
        for kind in ("like", "collect")
    }


def find_differences(
    after: Set[Reaction],
    rows: Set[Reaction],
    seen: Mapping[int, Mapping[str, int]],
    likers: Mapping[int, Sequence[int]],
) -> list[str]:
    """Where rows, the API's totals or its lists of likers are not as the file says.

    As sets, post by post and kind by kind: a wrong one and a missing one are two differences.
    """
    differences = [
        f"{kind} of post {item_id} by user {user_id} is in the rows, not in the file"
        for kind, item_id, user_id in sorted(rows - after)
    ]
    differences += [
        f"{kind} of post {item_id} by user {user_id} is in the file, not in the rows"
        for kind, item_id, user_id in sorted(after - rows)
    ]
    expected = Counter((reaction.item_id, reaction.kind) for reaction in after)
    differences += [
        f"post {item_id} has {total} {kind}s by the API, {expected[item_id, kind]} by the file"
        for item_id, totals in seen.items()
        for kind, total in totals.items()
        if total != expected[item_id, kind]
    ]
    for item_id, found in likers.items():
        should = {r.user_id for r in after if r.kind == "like" and r.item_id == item_id}
        if sorted(found) != sorted(should):
            wrong = sorted(set(found) ^ should) or "some twice"
            differences.append(f"likers of post {item_id} by the API are wrong: {wrong}"[:200])
    return differences


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


def find_consumers(stack: Stack) -> list[psutil.Process]:
    """The SaveReactions workers that have saved something: they are connected.

    One that is only starting is left alone. MiniStack answers its death with the death of all
    workers of that function, also those that start in their place, and so on: messages end in
    the DLQ that no Lambda would have tried to work on.
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
