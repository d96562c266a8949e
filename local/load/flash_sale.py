"""``flash-sale``: a crowd at a sale, then a check of every answer against MySQL and Redis.

A small crowd uses the deployed stack. A larger one, which the emulator cannot carry, uses the
handlers of the API in processes of their own; queue, consumers, Redis and MySQL are parts of the
stack in both cases.
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

from cli.output import (
    console,
    latencies_ms,
    new_summary,
    print_report,
    progress_console,
    read_options,
    require_positive,
    show_progress,
)
from cli.paths import CommandError
from local.audit.backlog import shorten_visibility_timeout
from local.load import buyers
from local.load.background import kill_workers, run_threads
from local.load.buyers import BuyerGroup, BuyersResult, HttpApiClient
from local.load.town import make_voucher
from local.stack.servers import Server, connect_mysql, connect_redis
from local.stack.stack import Stack
from local.stack.tokens import create_users, open_sessions
from plaza.flash_sales.redis_keys import state_key
from plaza.flash_sales.redis_sales import parse_counts

MAX_CLICKS_OVER_HTTP = 3_000  # Lambda serves them in a second, the emulator in a minute
FIRST_BUYER = 9_500_001
ADMIN = 9_499_999
SHOP = 9_500_000
DECISION_TIMEOUT_S = 300.0
KILL_EVERY_S = (1.0, 3.0)
ORDERS_VISIBILITY_TIMEOUT_S = 11  # the timeout of the consumer plus 1 s
SHOWN = 10
_CONCURRENCY = 4  # more cold starts at once only wait for each other on two cores
_OPEN_S = 3_600


@dataclass(frozen=True, slots=True)
class Options:
    """Size of the crowd and of the sale, and the disruptions."""

    buyers: int
    stock: int
    clicks: int
    seed: int = 0
    kill_consumers: bool = False
    database_outage_s: float = 0.0
    through: str = "auto"

    @property
    def over_http(self) -> bool:
        if self.through == "auto":
            return self.buyers * self.clicks <= MAX_CLICKS_OVER_HTTP
        return self.through == "http"


@dataclass(slots=True)
class Disruption:
    """What was done to the stack during the sale."""

    killed: int = 0
    outage_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SaleRecord:
    """State in MySQL and Redis afterwards. ``decided``: order -> (buyer, reason of a failure)."""

    decided: dict[int, tuple[int, str | None]]
    stock: int
    redis: tuple[int, int, int]


@dataclass(slots=True)
class Report:
    options: Options
    result: BuyersResult
    record: SaleRecord
    disruption: Disruption
    took_s: float
    processes: int

    @property
    def winners(self) -> Counter[int]:
        """Return buyer -> successful orders."""
        return Counter(b for b, reason in self.record.decided.values() if reason is None)

    @property
    def success(self) -> int:
        return self.winners.total()

    @property
    def wanted(self) -> int:
        return min(self.options.stock, self.options.buyers)

    @property
    def lost(self) -> int:
        """Count orders that were reported to a buyer and are not in MySQL."""
        reported = {order for statuses in self.result.orders.values() for order in statuses}
        return len(reported - self.record.decided.keys())

    @property
    def duplicated(self) -> int:
        return sum(count > 1 for count in self.winners.values())

    @property
    def mismatched(self) -> int:
        """Count orders whose state in MySQL differs from the one that was reported to the buyer."""
        return sum(
            order in self.record.decided
            and status != "pending"
            and (status == "success") != (self.record.decided[order][1] is None)
            for statuses in self.result.orders.values()
            for order, status in statuses.items()
        )

    @property
    def stores_agree(self) -> bool:
        return self.record.redis == (self.record.stock, 0, self.success)

    @property
    def clean(self) -> bool:
        bad = (
            self.lost
            or self.duplicated
            or self.mismatched
            or self.result.undecided
            or self.result.wrong
        )
        return not bad and self.success == self.wanted and self.stores_agree

    def to_json(self) -> dict[str, Any]:
        p50_ms, p99_ms = latencies_ms(self.result.latencies_s)
        decision_p50_ms, decision_p99_ms = latencies_ms(self.result.decision_s)
        return {
            "clean": self.clean,
            "buyers": self.options.buyers,
            "stock": self.options.stock,
            "clicks": self.result.clicks,
            "answers": dict(self.result.answers),
            "success": self.success,
            "oversold": max(0, self.success - self.options.stock),
            "lost": self.lost,
            "duplicated": self.duplicated,
            "mismatched": self.mismatched,
            "undecided": self.result.undecided,
            "wrong": self.result.wrong[:SHOWN],
            "failed": Counter(r for _, r in self.record.decided.values() if r is not None),
            "stores_agree": self.stores_agree,
            "killed": self.disruption.killed,
            "database_outage_s": round(self.disruption.outage_s, 1),
            "took_s": round(self.took_s, 1),
            "p50_ms": p50_ms,
            "p99_ms": p99_ms,
            "decision_p50_ms": decision_p50_ms,
            "decision_p99_ms": decision_p99_ms,
        }


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Run a sale. Returns 1 unless the report is clean. Raises CommandError."""
    require_positive(args, "buyers", "stock", "clicks")
    if args.database_away < 0:
        raise CommandError("--database-away can't be below 0")
    options = read_options(args, Options, database_outage_s=args.database_away)
    return print_report(args, run_sale(stack, options, progress_console(args)), show)


def run_sale(stack: Stack, options: Options, out: Console = console) -> Report:
    """Offer a voucher, play the crowd, and read the outcome. Raises CommandError."""
    if options.database_outage_s and stack.mysql is None:
        raise CommandError("--database-away needs a MySQL of the stack; PLAZA_MYSQL_URL has none")
    with out.status("offering the voucher"):
        voucher_id = create_voucher(stack, options.stock)
    disruption, killed = Disruption(), list[int]()
    processes = 1 if options.over_http else max(2, os.cpu_count() or 2)
    with contextlib.ExitStack() as meanwhile:
        if options.kill_consumers:
            meanwhile.enter_context(
                shorten_visibility_timeout(
                    stack, "orders", visibility_timeout_s=ORDERS_VISIBILITY_TIMEOUT_S
                )
            )
            killed = meanwhile.enter_context(
                kill_workers(stack, "SaveOrders", KILL_EVERY_S, options.seed)
            )
        if options.database_outage_s and (mysql := stack.mysql):
            meanwhile.enter_context(
                run_threads(
                    lambda end: _stop_mysql(disruption, stack, mysql, options, voucher_id, end)
                )
            )
        began_s = time.monotonic()
        play = play_over_http if options.over_http else play_in_processes
        result = play(stack, options, voucher_id, out)
        took_s = time.monotonic() - began_s
    disruption.killed = len(killed)
    record = read_sale(stack, voucher_id)
    return Report(options, result, record, disruption, took_s, processes)


def create_voucher(stack: Stack, stock: int, open_s: float = _OPEN_S) -> int:
    """Create a voucher through the API, as an admin. Returns its id. The sale is open for
    ``open_s``."""
    create_users(stack.mysql_url, [ADMIN], "admin")
    [token] = open_sessions(stack, [ADMIN], "admin")
    with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Flash sales')", (SHOP,))
        connection.commit()
    body = make_voucher(str(SHOP), time.time(), stock, open_s)
    client = HttpApiClient(stack.base_url, {ADMIN: token}, 1)
    reply = client.send("POST", "/vouchers", ADMIN, body)
    if reply.status != 201:
        raise CommandError(f"the voucher was not created: {reply.status} {reply.body}")
    return int(reply.body["id"])


def play_over_http(stack: Stack, options: Options, voucher_id: int, out: Console) -> BuyersResult:
    ids = range(FIRST_BUYER, FIRST_BUYER + options.buyers)
    with out.status("opening sessions"):
        tokens = dict(zip(ids, open_sessions(stack, ids), strict=True))
    client = HttpApiClient(stack.base_url, tokens, _CONCURRENCY)
    finished = Counter[str]()
    on_progress = lambda count: finished.update(clicks=count)  # noqa: E731
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        groups = split(options, voucher_id, _CONCURRENCY)
        playing = [pool.submit(buyers.play, group, client, on_progress) for group in groups]
        return watch(options, playing, lambda: finished["clicks"], out)


def play_in_processes(
    stack: Stack, options: Options, voucher_id: int, out: Console
) -> BuyersResult:
    workers = max(2, os.cpu_count() or 2)
    context = multiprocessing.get_context("spawn")
    # On a busy machine half a second without a reply is no outage.
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
    options: Options,
    playing: Sequence[Future[BuyersResult]],
    count: Callable[[], int],
    out: Console,
) -> BuyersResult:
    """Show the number of clicks until all groups are done. Returns their combined result."""
    total = options.buyers * options.clicks
    with show_progress("clicks", "clicks", total, out) as on_progress:
        while not all(group.done() for group in playing):
            finished = count()
            on_progress(finished, "waiting for decisions" if finished >= total else "")
            time.sleep(0.2)
    return add_up([group.result() for group in playing])


def split(options: Options, voucher_id: int, parts: int) -> list[BuyerGroup]:
    ids = list(range(FIRST_BUYER, FIRST_BUYER + options.buyers))
    timeout_s = DECISION_TIMEOUT_S + options.database_outage_s
    return [
        BuyerGroup(voucher_id, ids[part::parts], options.clicks, options.seed + part, timeout_s)
        for part in range(min(parts, len(ids)))
    ]


def add_up(results: Sequence[BuyersResult]) -> BuyersResult:
    whole = BuyersResult()
    for result in results:
        whole.orders |= result.orders
        for name in ("clicks", "answers", "latencies_s", "decision_s", "wrong", "undecided"):
            setattr(whole, name, getattr(whole, name) + getattr(result, name))
    return whole


def read_sale(stack: Stack, voucher_id: int) -> SaleRecord:
    with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT order_id, buyer_id, reason FROM voucher_order WHERE voucher_id = %s",
            (voucher_id,),
        )
        decided = {order: (buyer, reason) for order, buyer, reason in cursor.fetchall()}
        cursor.execute("SELECT stock FROM voucher WHERE id = %s", (voucher_id,))
        [(stock,)] = cursor.fetchall()
    return SaleRecord(decided, stock, _read_counts(stack, voucher_id))


def show(report: Report, out: Console) -> None:
    options, result, values = report.options, report.result, report.to_json()
    how = f"handlers in {report.processes} processes on one core"
    if options.over_http:
        how = "the deployed stack"
    out.print(
        f"[bold]{options.stock:,} vouchers, {options.buyers:,} people,"
        f" {options.clicks} clicks each[/bold], through {how}"
    )
    speed = result.clicks / max(report.took_s, 1e-9)
    answers = ", ".join(f"{count:,} {name}" for name, count in result.answers.most_common())
    failed = ", ".join(f"{count:,} {reason}" for reason, count in values["failed"].items())
    left, pending, sold = report.record.redis
    stores_agree = (
        f"left {left:,} = {report.record.stock:,}, sold {sold:,} = {report.success:,},"
        f" pending {pending:,}"
    )
    p50_s, p99_s = (values[name] / 1000 for name in ("decision_p50_ms", "decision_p99_ms"))
    summary = new_summary(
        ("clicks", f"{result.clicks:,} in {report.took_s:,.1f} s, {speed:,.0f}/s", ""),
        ("answers", answers, not result.wrong),
        (
            "success",
            f"{report.success:,} of {report.wanted:,}",
            report.success == report.wanted,
        ),
        *(
            (name, f"{values[name]:,}", not values[name])
            for name in ("oversold", "lost", "duplicated", "mismatched", "undecided")
        ),
        *([("failed", failed, "")] if failed else []),
        ("Redis = MySQL", stores_agree, report.stores_agree),
        *([("consumers killed", f"{values['killed']:,}", "")] if values["killed"] else []),
        *(
            [("database away", f"{values['database_outage_s']:,} s", "")]
            if report.disruption.outage_s
            else []
        ),
        ("click to answer", f"p50 {values['p50_ms']} ms, p99 {values['p99_ms']} ms", ""),
        ("click to decision", f"p50 {p50_s:.1f} s, p99 {p99_s:.1f} s", ""),
    )
    out.print(summary)
    for wrong in result.wrong[:SHOWN]:
        out.print(Text(f"  {wrong}"))
    out.print("[green]clean[/green]" if report.clean else "[red]not clean[/red]")


def _stop_mysql(
    disruption: Disruption,
    stack: Stack,
    mysql: Server,
    options: Options,
    voucher_id: int,
    end: threading.Event,
) -> None:
    """Stop the database when a tenth of the stock is reserved, and start it again."""
    tenth = max(1, min(options.stock, options.buyers) // 10)
    while not end.wait(0.02):
        _, pending, sold = _read_counts(stack, voucher_id)
        if pending + sold >= tenth:
            break
    began_s = time.monotonic()
    try:
        mysql.stop()
        time.sleep(options.database_outage_s)
    finally:
        mysql.start(attached=False)  # the stack ends it, not this process
        disruption.outage_s = time.monotonic() - began_s


def _read_counts(stack: Stack, voucher_id: int) -> tuple[int, int, int]:
    with connect_redis(stack.redis_url, cluster=stack.redis_cluster) as client:
        fields: Any = client.hmget(state_key(voucher_id), "counts", "sold")
    counts, sold = fields
    if counts is None:
        return 0, 0, 0
    stock, pending, _, _ = parse_counts(counts)
    return stock, pending, int(sold)
