"""``flash-sale``: a crowd at a sale, then a check of every answer against MySQL and Redis.

The buyers click at once, through the HTTP API. All connections are open before the first click,
like the connections of buyers who wait for noon on the page of the sale.
"""

import argparse
import asyncio
import contextlib
import random
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from cli.output import (
    console,
    new_summary,
    print_report,
    progress_console,
    read_options,
    read_percentiles,
    require_positive,
    show_progress,
)
from cli.paths import CommandError
from local.audit.backlog import shorten_visibility_timeout
from local.load.background import kill_workers, run_threads
from local.load.buyers import Buyers
from local.load.crowd import Client, Tally, send_once
from local.load.requests import Call
from local.load.town import make_voucher
from local.stack.servers import Server, connect_mysql, connect_redis
from local.stack.stack import Stack
from local.stack.tokens import create_users, open_sessions
from plaza.commerce.flash_sales.redis_keys import state_key
from plaza.commerce.flash_sales.redis_sales import parse_counts

MAX_CONCURRENCY = 10_000  # by default: each takes a port and a file of two processes
FIRST_BUYER = 9_500_001
ADMIN = 9_499_999
SHOP = 9_500_000
DECISION_TIMEOUT_S = 300.0
KILL_EVERY_S = (1.0, 3.0)
ORDERS_VISIBILITY_TIMEOUT_S = 11  # the timeout of the consumer plus 1 s
SHOWN = 10
_OPEN_S = 3_600


@dataclass(frozen=True, slots=True)
class Options:
    """Size of the crowd and of the sale, and the disruptions."""

    buyers: int
    stock: int
    clicks: int
    seed: int = 0
    concurrency: int | None = None
    kill_consumers: bool = False
    database_outage_s: float = 0.0

    @property
    def clicks_at_once(self) -> int:
        """Return the clicks in flight: by default one of each buyer."""
        return self.concurrency or min(self.buyers, MAX_CONCURRENCY)


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
    result: Buyers
    record: SaleRecord
    disruption: Disruption
    tally: Tally
    took_s: float

    @property
    def success(self) -> int:
        return sum(reason is None for _, reason in self.record.decided.values())

    @property
    def wanted(self) -> int:
        return min(self.options.stock, self.options.buyers)

    @property
    def stores_agree(self) -> bool:
        return self.record.redis == (self.record.stock, 0, self.success)

    @property
    def clean(self) -> bool:
        bad = self.result.wrong or any(self.count_faults().values())
        return not bad and self.success == self.wanted and self.stores_agree

    def count_faults(self) -> dict[str, int]:
        """Count units sold beside the stock, orders that were reported to a buyer and are not in
        MySQL, buyers with two units, and orders that have another state in MySQL or none yet."""
        decided, orders = self.record.decided, self.result.orders
        winners = Counter(buyer for buyer, reason in decided.values() if reason is None)
        reported = {order: status for known in orders.values() for order, status in known.items()}
        return {
            "oversold": max(0, self.success - self.options.stock),
            "lost": len(reported.keys() - decided.keys()),
            "duplicated": sum(count > 1 for count in winners.values()),
            "mismatched": sum(
                (status == "success") != (decided[order][1] is None)
                for order, status in reported.items()
                if order in decided and status != "pending"
            ),
            "undecided": list(reported.values()).count("pending"),
        }

    def to_json(self) -> dict[str, Any]:
        in_flight, max_in_flight = self.tally.in_flight
        decisions = read_percentiles(self.result.decision_s)._asdict()
        return {
            "clean": self.clean,
            "buyers": self.options.buyers,
            "stock": self.options.stock,
            "clicks": self.result.clicks,
            "answers": dict(self.result.answers),
            "success": self.success,
            **self.count_faults(),
            "wrong": self.result.wrong[:SHOWN],
            "failed": Counter(r for _, r in self.record.decided.values() if r is not None),
            "stores_agree": self.stores_agree,
            "killed": self.disruption.killed,
            "database_outage_s": round(self.disruption.outage_s, 1),
            "repeated": self.result.clicks - self.options.buyers * self.options.clicks,
            "took_s": round(self.took_s, 1),
            "clicks_at_once": self.options.clicks_at_once,
            "in_flight_mean": round(in_flight, 1),
            "in_flight_max": max_in_flight,
            **read_percentiles(self.result.latencies_s)._asdict(),
            **{f"decision_{name}": value for name, value in decisions.items()},
        }


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Run a sale. Returns 1 unless the report is clean. Raises CommandError."""
    require_positive(args, "buyers", "stock", "clicks", "concurrency")
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
        ids = range(FIRST_BUYER, FIRST_BUYER + options.buyers)
        with out.status("opening sessions"):
            tokens = dict(zip(ids, open_sessions(stack, ids), strict=True))
        began_s = time.monotonic()
        result, tally = asyncio.run(play(stack.base_url, tokens, options, voucher_id, out))
        took_s = time.monotonic() - began_s
    disruption.killed = len(killed)
    return Report(options, result, read_sale(stack, voucher_id), disruption, tally, took_s)


def create_voucher(stack: Stack, stock: int, open_s: float = _OPEN_S) -> int:
    """Create a voucher through the API, as an admin. Returns its id. The sale is open for
    ``open_s``."""
    create_users(stack.mysql_url, [ADMIN], "admin")
    [token] = open_sessions(stack, [ADMIN], "admin")
    with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT IGNORE INTO shop (id, name) VALUES (%s, 'Flash sales')", (SHOP,))
        connection.commit()
    body = make_voucher(str(SHOP), time.time(), stock, open_s)
    answer = send_once(stack.base_url, token, Call("POST", "/vouchers", body))
    if answer.status != 201:
        raise CommandError(f"the voucher was not created: {answer}")
    return int(answer.body["id"])


async def play(
    base_url: str, tokens: dict[int, str], options: Options, voucher_id: int, out: Console
) -> tuple[Buyers, Tally]:
    """Play all clicks, in random order, and wait for the decisions. Raises CommandError."""
    clicks = [buyer for buyer in tokens for _ in range(options.clicks)]
    random.Random(options.seed).shuffle(clicks)
    with contextlib.ExitStack() as ends:
        on_progress = ends.enter_context(show_progress("clicks", "clicks", len(clicks), out))

        def note(clicked: int) -> None:
            if clicked % 50 == 0 or clicked >= len(clicks):
                on_progress(clicked, "waiting for decisions" if clicked >= len(clicks) else "")

        async with Client(base_url, tokens, options.clicks_at_once, max_attempts=1) as client:
            await client.connect_all()
            buyers = Buyers(voucher_id, client.send, note)
            tally = await client.play(clicks, buyers.click)
            await buyers.wait_for_decisions(DECISION_TIMEOUT_S + options.database_outage_s)
    return buyers, tally


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
    options, result, disruption = report.options, report.result, report.disruption
    out.print(
        f"[bold]{options.stock:,} vouchers, {options.buyers:,} people,"
        f" {options.clicks} clicks each[/bold], {options.clicks_at_once:,} at once"
    )
    repeated = result.clicks - options.buyers * options.clicks
    speed = result.clicks / max(report.took_s, 1e-9)
    left, pending, sold = report.record.redis
    stores_agree = (
        f"left {left:,} = {report.record.stock:,}, sold {sold:,} = {report.success:,},"
        f" pending {pending:,}"
    )
    rows: list[tuple[str, str, str | bool]] = [
        ("clicks", f"{result.clicks:,} in {report.took_s:,.1f} s, {speed:,.0f}/s", ""),
        ("repeated later", f"{repeated:,}", ""),
        ("in flight", report.tally.describe_in_flight(), ""),
        ("click to answer", str(read_percentiles(result.latencies_s)), ""),
        ("click to decision", str(read_percentiles(result.decision_s)), ""),
        ("answers", _list(result.answers), not result.wrong),
        ("success", f"{report.success:,} of {report.wanted:,}", report.success == report.wanted),
        *((name, f"{count:,}", not count) for name, count in report.count_faults().items()),
        ("failed", _list(report.to_json()["failed"]), ""),
        ("Redis = MySQL", stores_agree, report.stores_agree),
        ("consumers killed", f"{disruption.killed:,}" * options.kill_consumers, ""),
        ("database away", f"{disruption.outage_s:.1f} s" * bool(disruption.outage_s), ""),
    ]
    out.print(new_summary(*(row for row in rows if row[1])))
    for wrong in result.wrong[:SHOWN]:
        out.print(Text(f"  {wrong}"))
    out.print("[green]clean[/green]" if report.clean else "[red]not clean[/red]")


def _list(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.most_common())


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
