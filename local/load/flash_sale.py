"""``flash-sale``: a crowd at a sale, then every promise held against the record.

A small crowd comes through the deployed stack. One above what the emulator carries comes through
the handlers of the API, in processes of their own; queue, consumers, Redis and MySQL are those of
the stack all the same.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import psutil
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

from local.audit.audit import mark, new_list
from local.audit.quiet import deliver_again_sooner
from local.load import buyers
from local.load.buyers import Crowd, Gateway, Tale
from local.paths import LocalError
from local.stack.servers import Server, connect_mysql, connect_redis
from local.stack.stack import Stack
from local.stack.tokens import create_users, open_sessions

MOST_CLICKS_OVER_HTTP = 3_000  # a second's work of Lambda, a minute's of the emulator
FIRST_BUYER = 9_500_001
ADMIN = 9_499_999
SHOP = 9_500_000
PATIENCE_S = 300.0
KILL_EVERY_S = (1.0, 3.0)
ORDERS_AGAIN_S = 11  # a second more than their consumer may run
SHOWN = 10
_AT_ONCE = 4  # functions that start cold do so one after the other on two cores
_OPEN_S = 3_600

console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Options:
    """Who comes to what; see the command's help."""

    buyers: int
    stock: int
    clicks: int
    seed: int = 0
    kill_consumers: bool = False
    database_away_s: float = 0.0
    through: str = "auto"

    @property
    def over_http(self) -> bool:
        """Whether the crowd comes through the deployed stack."""
        if self.through == "auto":
            return self.buyers * self.clicks <= MOST_CLICKS_OVER_HTTP
        return self.through == "http"


@dataclass(slots=True)
class Trouble:
    """What was done to the stack meanwhile."""

    killed: int = 0
    away_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Record:
    """What MySQL and Redis say after it. ``decided``: order -> (buyer, reason of a failure)."""

    decided: dict[int, tuple[int, str | None]]
    stock: int
    redis: tuple[int, int, int]


@dataclass(slots=True)
class Report:
    """What a sale came to."""

    options: Options
    tale: Tale
    record: Record
    trouble: Trouble
    took_s: float
    processes: int
    problems: list[str] = field(default_factory=list)

    @property
    def winners(self) -> Counter[int]:
        """Buyer -> how many they have."""
        return Counter(b for b, reason in self.record.decided.values() if reason is None)

    @property
    def success(self) -> int:
        """Orders that succeeded."""
        return self.winners.total()

    @property
    def wanted(self) -> int:
        """How many must succeed."""
        return min(self.options.stock, self.options.buyers)

    @property
    def lost(self) -> int:
        """Orders that somebody was told of, and that MySQL does not have."""
        told = {order for heard in self.tale.orders.values() for order in heard}
        return len(told - self.record.decided.keys())

    @property
    def doubled(self) -> int:
        """Buyers who have more than one."""
        return sum(count > 1 for count in self.winners.values())

    @property
    def untrue(self) -> int:
        """Orders that are not what their buyers were told."""
        return sum(
            order in self.record.decided
            and status != "pending"
            and (status == "success") != (self.record.decided[order][1] is None)
            for heard in self.tale.orders.values()
            for order, status in heard.items()
        )

    @property
    def agreed(self) -> bool:
        """Redis and MySQL say the same, and nothing is pending."""
        return self.record.redis == (self.record.stock, 0, self.success)

    @property
    def clean(self) -> bool:
        """All is as it must be."""
        bad = self.lost or self.doubled or self.untrue or self.tale.undecided or self.tale.wrong
        return not bad and self.success == self.wanted and self.agreed

    def to_json(self) -> dict[str, Any]:
        """For a machine. Latencies in milliseconds."""
        p50_ms, p99_ms = _percentiles(self.tale.latencies_s)
        learned_p50_ms, learned_p99_ms = _percentiles(self.tale.learned_s)
        return {
            "clean": self.clean,
            "buyers": self.options.buyers,
            "stock": self.options.stock,
            "clicks": self.tale.clicks,
            "answers": dict(self.tale.answers),
            "success": self.success,
            "oversold": max(0, self.success - self.options.stock),
            "lost": self.lost,
            "doubled": self.doubled,
            "untrue": self.untrue,
            "undecided": self.tale.undecided,
            "wrong": self.tale.wrong[:SHOWN],
            "failed": Counter(r for _, r in self.record.decided.values() if r is not None),
            "agreed": self.agreed,
            "killed": self.trouble.killed,
            "database_away_s": round(self.trouble.away_s, 1),
            "took_s": round(self.took_s, 1),
            "p50_ms": p50_ms,
            "p99_ms": p99_ms,
            "learned_p50_ms": learned_p50_ms,
            "learned_p99_ms": learned_p99_ms,
        }


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Hold a sale; 1 unless all of it is clean. Raises LocalError."""
    for name in ("buyers", "stock", "clicks"):
        if getattr(args, name) <= 0:
            raise LocalError(f"--{name} must be above 0")
    if args.database_away < 0:
        raise LocalError("--database-away can't be below 0")
    options = Options(
        buyers=args.buyers,
        stock=args.stock,
        clicks=args.clicks,
        seed=args.seed,
        kill_consumers=args.kill_consumers,
        database_away_s=args.database_away,
        through=args.through,
    )
    out = Console(stderr=True, highlight=False) if args.json else console
    report = hold(stack, options, out)
    if args.json:
        print(json.dumps(report.to_json()))
    else:
        show(report, console)
    return 0 if report.clean else 1


def hold(stack: Stack, options: Options, out: Console = console) -> Report:
    """Offer a voucher, let the crowd at it, and read what came of it. Raises LocalError."""
    if options.database_away_s and stack.mysql is None:
        raise LocalError("MySQL is your own: it is not stopped")
    with out.status("offering the voucher"):
        voucher_id = offer(stack, options.stock)
    trouble, end = Trouble(), threading.Event()
    processes = 1 if options.over_http else max(2, os.cpu_count() or 2)
    with contextlib.ExitStack() as meanwhile:
        if options.kill_consumers:
            meanwhile.enter_context(deliver_again_sooner(stack, "orders", after_s=ORDERS_AGAIN_S))
        meanwhile.enter_context(_making(trouble, stack, options, voucher_id, end))
        began_s = time.monotonic()
        play = play_over_http if options.over_http else play_in_processes
        tale = play(stack, options, voucher_id, out)
        took_s = time.monotonic() - began_s
    record = read_record(stack, voucher_id)
    return Report(options, tale, record, trouble, took_s, processes)


def offer(stack: Stack, stock: int, open_s: float = _OPEN_S) -> int:
    """A voucher by an admin, through the API; its id. The sale is open for ``open_s``."""
    create_users(stack.mysql_url, [ADMIN], "admin")
    [token] = open_sessions(stack, [ADMIN], "admin")
    with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Flash sales')", (SHOP,))
        connection.commit()
    now_s = time.time()
    body = {
        "shop_id": str(SHOP),
        "title": "Dinner for two",
        "price_cents": 1990,
        "stock": stock,
        "opens_at": _rfc3339(now_s - 1),
        "closes_at": _rfc3339(now_s + open_s),
    }
    door = buyers.Gateway(stack.base_url, {ADMIN: token}, 1)
    reply = door.send("POST", "/vouchers", ADMIN, body)
    if reply.status != 201:
        raise LocalError(f"no voucher could be offered: {reply.status} {reply.body}")
    return int(reply.body["id"])


def play_over_http(stack: Stack, options: Options, voucher_id: int, out: Console) -> Tale:
    """The crowd through the deployed stack, some of them at a time."""
    ids = range(FIRST_BUYER, FIRST_BUYER + options.buyers)
    with out.status("signing them in"):
        tokens = dict(zip(ids, open_sessions(stack, ids), strict=True))
    door = Gateway(stack.base_url, tokens, _AT_ONCE)
    groups = split(options, voucher_id, _AT_ONCE)
    done = Counter[str]()
    with (
        ThreadPoolExecutor(_AT_ONCE) as pool,
        show_progress(options, lambda: done["clicks"], out) as watch,
    ):
        tell = lambda count: done.update(clicks=count)  # noqa: E731
        return add_up(watch([pool.submit(buyers.play, group, door, tell) for group in groups]))


def play_in_processes(stack: Stack, options: Options, voucher_id: int, out: Console) -> Tale:
    """The crowd through the handlers, in processes that share a core."""
    workers = max(2, os.cpu_count() or 2)
    context = multiprocessing.get_context("spawn")
    # On a machine that is all crowd half a second is no outage.
    environment = stack.environment() | {"PLAZA_REDIS_TIMEOUT_S": "5"}
    manager = context.Manager()
    clicks = manager.Value("q", 0)
    lock = manager.RLock()
    with (
        manager,
        ProcessPoolExecutor(workers, mp_context=context) as pool,
        show_progress(options, lambda: int(clicks.value), out) as watch,
    ):
        groups = split(options, voucher_id, workers)
        return add_up(
            watch(
                [
                    pool.submit(buyers.play_in_process, group, environment, clicks, lock)
                    for group in groups
                ]
            )
        )


def split(options: Options, voucher_id: int, parts: int) -> list[Crowd]:
    """The crowd in groups of about the same size."""
    ids = list(range(FIRST_BUYER, FIRST_BUYER + options.buyers))
    patience_s = PATIENCE_S + options.database_away_s
    return [
        Crowd(voucher_id, ids[part::parts], options.clicks, options.seed + part, patience_s)
        for part in range(min(parts, len(ids)))
    ]


def add_up(tales: Sequence[Tale]) -> Tale:
    """What all groups went through."""
    whole = Tale()
    for tale in tales:
        whole.clicks += tale.clicks
        whole.answers += tale.answers
        whole.orders |= tale.orders
        whole.latencies_s += tale.latencies_s
        whole.learned_s += tale.learned_s
        whole.wrong += tale.wrong
        whole.undecided += tale.undecided
    return whole


def read_record(stack: Stack, voucher_id: int) -> Record:
    """What MySQL and Redis have of a sale."""
    with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT order_id, buyer_id, reason FROM voucher_order WHERE voucher_id = %s",
            (voucher_id,),
        )
        decided = {order: (buyer, reason) for order, buyer, reason in cursor.fetchall()}
        cursor.execute("SELECT stock FROM voucher WHERE id = %s", (voucher_id,))
        [(stock,)] = cursor.fetchall()
    return Record(decided, stock, _read_counts(stack, voucher_id))


def show(report: Report, out: Console) -> None:
    """Print what a sale came to."""
    options, tale, said = report.options, report.tale, report.to_json()
    how = f"handlers in {report.processes} processes on a core"
    if options.over_http:
        how = "the deployed stack"
    out.print(
        f"[bold]{options.stock:,} vouchers, {options.buyers:,} people,"
        f" {options.clicks} clicks each[/bold], through {how}"
    )
    facts = new_list()
    speed = tale.clicks / max(report.took_s, 1e-9)
    facts.add_row("clicks", f"{tale.clicks:,} in {report.took_s:,.1f} s, {speed:,.0f}/s", "")
    answers = ", ".join(f"{count:,} {name}" for name, count in tale.answers.most_common())
    facts.add_row("answers", answers, mark(not tale.wrong))
    facts.add_row(
        "success", f"{report.success:,} of {report.wanted:,}", mark(report.success == report.wanted)
    )
    for name in ("oversold", "lost", "doubled", "untrue", "undecided"):
        facts.add_row(name, f"{said[name]:,}", mark(not said[name]))
    if said["failed"]:
        failed = ", ".join(f"{count:,} {reason}" for reason, count in said["failed"].items())
        facts.add_row("failed", failed, "")
    left, pending, sold = report.record.redis
    facts.add_row(
        "Redis = MySQL",
        f"left {left:,} = {report.record.stock:,}, sold {sold:,} = {report.success:,},"
        f" pending {pending:,}",
        mark(report.agreed),
    )
    if report.trouble.killed:
        facts.add_row("consumers killed", f"{report.trouble.killed:,}", "")
    if report.trouble.away_s:
        facts.add_row("database away", f"{report.trouble.away_s:,.1f} s", "")
    facts.add_row("click to answer", f"p50 {said['p50_ms']} ms, p99 {said['p99_ms']} ms", "")
    facts.add_row(
        "click to decision",
        f"p50 {said['learned_p50_ms'] / 1000:.1f} s, p99 {said['learned_p99_ms'] / 1000:.1f} s",
        "",
    )
    out.print(facts)
    for wrong in tale.wrong[:SHOWN]:
        out.print(Text(f"  {wrong}"))
    out.print("[green]clean[/green]" if report.clean else "[red]not clean[/red]")


@contextlib.contextmanager
def show_progress(
    options: Options, count: Callable[[], int], out: Console
) -> Iterator[Callable[[list[Future[Tale]]], list[Tale]]]:
    """A progress bar of clicks; what it yields waits for workers and moves it."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    total = options.buyers * options.clicks
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task("clicks", total=total, speed="")

        def watch(workers: list[Future[Tale]]) -> list[Tale]:
            while not all(worker.done() for worker in workers):
                done = count()
                speed = f"{progress.tasks[0].speed or 0:,.0f} clicks/s"
                if done >= total:
                    speed = "waiting for decisions"
                progress.update(task, completed=done, speed=speed)
                time.sleep(0.2)
            return [worker.result() for worker in workers]

        yield watch


@contextlib.contextmanager
def _making(
    trouble: Trouble, stack: Stack, options: Options, voucher_id: int, end: threading.Event
) -> Iterator[None]:
    """The troubles that were asked for, until the end of the block."""
    makers = []
    if options.kill_consumers:
        makers.append(threading.Thread(target=_kill, args=(trouble, stack, options, end)))
    if options.database_away_s and stack.mysql is not None:
        asked = (trouble, stack, stack.mysql, options, voucher_id, end)
        makers.append(threading.Thread(target=_stop_mysql, args=asked))
    for maker in makers:
        maker.start()
    try:
        yield
    finally:
        end.set()
        for maker in makers:
            maker.join()


def _kill(trouble: Trouble, stack: Stack, options: Options, end: threading.Event) -> None:
    """Kill consumers that are at work: those that are connected (see ``replay``)."""
    chance = random.Random(options.seed)
    while not end.wait(chance.uniform(*KILL_EVERY_S)):
        connected = []
        for worker in stack.find_workers("SaveOrders"):
            with contextlib.suppress(psutil.Error):
                if worker.net_connections("tcp"):
                    connected.append(worker)
        if connected:
            with contextlib.suppress(psutil.NoSuchProcess):
                chance.choice(connected).kill()
                trouble.killed += 1


def _stop_mysql(
    trouble: Trouble,
    stack: Stack,
    mysql: Server,
    options: Options,
    voucher_id: int,
    end: threading.Event,
) -> None:
    """Stop the database once a tenth is taken, and start it again."""
    tenth = max(1, min(options.stock, options.buyers) // 10)
    while not end.wait(0.02):
        _, pending, sold = _read_counts(stack, voucher_id)
        if pending + sold >= tenth:
            break
    began_s = time.monotonic()
    try:
        mysql.stop()
        time.sleep(options.database_away_s)
    finally:
        mysql.start(attached=False)  # as the stack's own, which ends it
        trouble.away_s = time.monotonic() - began_s


def _read_counts(stack: Stack, voucher_id: int) -> tuple[int, int, int]:
    """(stock, pending, sold) in Redis."""
    from plaza.flash_sales.redis_vouchers import state_key

    with connect_redis(stack.redis_url, cluster=stack.redis_cluster) as client:
        found: Any = client.hmget(state_key(voucher_id), "stock", "pending", "sold")
    stock, pending, sold = (int(part or 0) for part in found)
    return stock, pending, sold


def _percentiles(values_s: Sequence[float]) -> tuple[float, float]:
    """The 50th and 99th percentile, milliseconds."""
    if len(values_s) < 2:
        only = round(sum(values_s) * 1000, 1)
        return only, only
    cuts = statistics.quantiles(values_s, n=100, method="inclusive")
    return round(cuts[49] * 1000, 1), round(cuts[98] * 1000, 1)


def _rfc3339(at_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_s))
