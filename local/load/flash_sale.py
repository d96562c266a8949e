"""``flash-sale``: a crowd at a sale, then every promise held against the record.

A small crowd comes through the deployed stack. One above what the emulator carries comes through
the handlers of the API, in processes of their own; queue, consumers, Redis and MySQL are those of
the stack all the same.
"""

import argparse
import contextlib
import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from local.audit.quiet import deliver_again_sooner
from local.load import buyers
from local.load.buyers import Crowd, Gateway, Tale
from local.load.meanwhile import killing, working
from local.load.town import make_voucher
from local.output import (
    console,
    console_of,
    finish,
    latencies_ms,
    new_list,
    require_positive,
    show_progress,
)
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
        p50_ms, p99_ms = latencies_ms(self.tale.latencies_s)
        learned_p50_ms, learned_p99_ms = latencies_ms(self.tale.learned_s)
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
    require_positive(args, "buyers", "stock", "clicks")
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
    return finish(args, hold(stack, options, console_of(args)), show)


def hold(stack: Stack, options: Options, out: Console = console) -> Report:
    """Offer a voucher, let the crowd at it, and read what came of it. Raises LocalError."""
    if options.database_away_s and stack.mysql is None:
        raise LocalError("MySQL is your own: it is not stopped")
    with out.status("offering the voucher"):
        voucher_id = offer(stack, options.stock)
    trouble, killed = Trouble(), list[int]()
    processes = 1 if options.over_http else max(2, os.cpu_count() or 2)
    with contextlib.ExitStack() as meanwhile:
        if options.kill_consumers:
            meanwhile.enter_context(deliver_again_sooner(stack, "orders", after_s=ORDERS_AGAIN_S))
            killed = meanwhile.enter_context(
                killing(stack, "SaveOrders", KILL_EVERY_S, options.seed)
            )
        if options.database_away_s and (mysql := stack.mysql):
            meanwhile.enter_context(
                working(lambda end: _stop_mysql(trouble, stack, mysql, options, voucher_id, end))
            )
        began_s = time.monotonic()
        play = play_over_http if options.over_http else play_in_processes
        tale = play(stack, options, voucher_id, out)
        took_s = time.monotonic() - began_s
    trouble.killed = len(killed)
    record = read_record(stack, voucher_id)
    return Report(options, tale, record, trouble, took_s, processes)


def offer(stack: Stack, stock: int, open_s: float = _OPEN_S) -> int:
    """A voucher by an admin, through the API; its id. The sale is open for ``open_s``."""
    create_users(stack.mysql_url, [ADMIN], "admin")
    [token] = open_sessions(stack, [ADMIN], "admin")
    with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Flash sales')", (SHOP,))
        connection.commit()
    body = make_voucher(str(SHOP), time.time(), stock, open_s)
    door = Gateway(stack.base_url, {ADMIN: token}, 1)
    reply = door.ask("POST", "/vouchers", ADMIN, body)
    if reply.status != 201:
        raise LocalError(f"no voucher could be offered: {reply.status} {reply.body}")
    return int(reply.body["id"])


def play_over_http(stack: Stack, options: Options, voucher_id: int, out: Console) -> Tale:
    """The crowd through the deployed stack, some of them at a time."""
    ids = range(FIRST_BUYER, FIRST_BUYER + options.buyers)
    with out.status("signing them in"):
        tokens = dict(zip(ids, open_sessions(stack, ids), strict=True))
    door = Gateway(stack.base_url, tokens, _AT_ONCE)
    done = Counter[str]()
    tell = lambda count: done.update(clicks=count)  # noqa: E731
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        groups = split(options, voucher_id, _AT_ONCE)
        playing = [pool.submit(buyers.play, group, door, tell) for group in groups]
        return watch(options, playing, lambda: done["clicks"], out)


def play_in_processes(stack: Stack, options: Options, voucher_id: int, out: Console) -> Tale:
    """The crowd through the handlers, in processes that share a core."""
    workers = max(2, os.cpu_count() or 2)
    context = multiprocessing.get_context("spawn")
    # On a machine that is all crowd half a second is no outage.
    environment = stack.environment() | {"PLAZA_REDIS_TIMEOUT_S": "5"}
    manager = context.Manager()
    clicks, lock = manager.Value("q", 0), manager.RLock()
    with manager, ProcessPoolExecutor(workers, mp_context=context) as pool:
        groups = split(options, voucher_id, workers)
        playing = [
            pool.submit(buyers.play_in_process, group, environment, clicks, lock)
            for group in groups
        ]
        return watch(options, playing, lambda: int(clicks.value), out)


def watch(
    options: Options, playing: Sequence[Future[Tale]], count: Callable[[], int], out: Console
) -> Tale:
    """Show how many clicks there are until all groups are done; what they went through."""
    total = options.buyers * options.clicks
    with show_progress("clicks", "clicks", total, out) as tell:
        while not all(group.done() for group in playing):
            done = count()
            tell(done, "waiting for decisions" if done >= total else "")
            time.sleep(0.2)
    return add_up([group.result() for group in playing])


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
    speed = tale.clicks / max(report.took_s, 1e-9)
    answers = ", ".join(f"{count:,} {name}" for name, count in tale.answers.most_common())
    failed = ", ".join(f"{count:,} {reason}" for reason, count in said["failed"].items())
    left, pending, sold = report.record.redis
    agreed = (
        f"left {left:,} = {report.record.stock:,}, sold {sold:,} = {report.success:,},"
        f" pending {pending:,}"
    )
    p50_s, p99_s = (said[name] / 1000 for name in ("learned_p50_ms", "learned_p99_ms"))
    facts = new_list(
        ("clicks", f"{tale.clicks:,} in {report.took_s:,.1f} s, {speed:,.0f}/s", ""),
        ("answers", answers, not tale.wrong),
        (
            "success",
            f"{report.success:,} of {report.wanted:,}",
            report.success == report.wanted,
        ),
        *(
            (name, f"{said[name]:,}", not said[name])
            for name in ("oversold", "lost", "doubled", "untrue", "undecided")
        ),
        *([("failed", failed, "")] if failed else []),
        ("Redis = MySQL", agreed, report.agreed),
        *([("consumers killed", f"{said['killed']:,}", "")] if said["killed"] else []),
        *(
            [("database away", f"{said['database_away_s']:,} s", "")]
            if report.trouble.away_s
            else []
        ),
        ("click to answer", f"p50 {said['p50_ms']} ms, p99 {said['p99_ms']} ms", ""),
        ("click to decision", f"p50 {p50_s:.1f} s, p99 {p99_s:.1f} s", ""),
    )
    out.print(facts)
    for wrong in tale.wrong[:SHOWN]:
        out.print(Text(f"  {wrong}"))
    out.print("[green]clean[/green]" if report.clean else "[red]not clean[/red]")


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
