"""``audit``: print the audit report as text or JSON."""

import argparse
import os
import time
from collections.abc import Mapping

import pymysql
import redis
from redis.exceptions import RedisClusterException
from rich.console import Group, RenderableType
from rich.text import Text

from cli.output import mark, new_summary, new_table, print_report
from cli.paths import CommandError
from local.audit.backlog import TIMEOUT_S, wait_until_quiet
from local.audit.compare import AuditReport, Sums, compare
from local.audit.stores import read_mysql_state, read_redis_state
from local.stack.stack import Stack
from local.stack.status import count_messages
from plaza.core.reaction_log.s3_archive import ArchiveCorrupt
from plaza.infra.aws.objects import ObjectsDown

SHOWN = 20


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Print the audit report; return 1 unless it is clean."""
    report = audit_when_quiet(stack) if args.wait else run_audit(stack)
    return print_report(args, report, lambda audit_report, out: out.print(render(audit_report)))


def audit_when_quiet(stack: Stack, timeout_s: float = TIMEOUT_S) -> AuditReport:
    """Wait until nothing is in transit, and return the report of an audit then.

    A schedule may begin during the audit: then waits and audits again. Returns the last report
    after ``timeout_s``. Raises CommandError when a store can't be read.
    """
    ends_s = time.monotonic() + timeout_s
    while True:
        wait_until_quiet(stack, ends_s - time.monotonic())
        report = run_audit(stack)
        if report.quiet or time.monotonic() > ends_s:
            return report


def run_audit(stack: Stack) -> AuditReport:
    """Return the audit report of a stack. Raises CommandError when a store can't be read."""
    os.environ.update(stack.environment())  # before plaza reads its settings, once
    try:
        before = count_messages(stack)
        # Redis first: MySQL is then never older, and the log has the commits in between.
        cache = read_redis_state(stack.redis_url, cluster=stack.redis_cluster)
        record = read_mysql_state(stack.mysql_url, archives=True, cache=cache)
    except (redis.RedisError, RedisClusterException) as error:
        raise CommandError(f"Redis can't be read: {error}") from None
    except pymysql.err.MySQLError as error:
        raise CommandError(f"MySQL can't be read: {error}") from None
    except (ObjectsDown, ArchiveCorrupt) as error:
        raise CommandError(f"the archive of the log can't be read: {error}") from None
    # A message that was processed during the audit was in transit, too.
    return compare(record, cache, {q: max(d, before[q]) for q, d in count_messages(stack).items()})


def render(audit_report: AuditReport) -> RenderableType:
    """Return the audit report as text for a terminal."""
    totals = new_table("", "Redis", "counter", "COUNT(*)", "")
    for kind, sums in audit_report.totals.items():
        totals.add_row(*_row(f"{kind}s", sums))
    for name, sums in audit_report.counters.items():
        totals.add_row(*_row(name.replace("_", " "), sums))
    summary = new_summary(
        ("targets", f"{audit_report.targets:,}, {audit_report.hot:,} totals in Redis", True),
        ("vouchers", f"{audit_report.vouchers:,}, {audit_report.sold:,} units sold", True),
        ("check-ins", f"{audit_report.checkins:,}", True),
        (
            "unread counters",
            "{:,}, {:,} groups with {:,} new".format(*audit_report.unread_counters),
            True,
        ),
        ("drift", f"{audit_report.drift:,}", not audit_report.drift),
        ("other differences", f"{audit_report.others:,}", not audit_report.others),
        ("events accepted", f"{audit_report.accepted:,}", True),
        (
            "events persisted",
            f"{audit_report.persisted:,}",
            audit_report.persisted == audit_report.accepted,
        ),
        ("pending in Redis", f"{audit_report.pending:,}", not audit_report.pending),
        ("in the outbox index", f"{audit_report.outbox_index:,}", not audit_report.outbox_index),
        ("changed while read", f"{audit_report.moving:,}", not audit_report.moving),
        (
            "spilled to MySQL",
            _by_queue(audit_report.spilled),
            not any(audit_report.spilled.values()),
        ),
        ("in queues", _by_queue(audit_report.queued), not any(audit_report.queued.values())),
        ("in DLQs", _by_queue(audit_report.dead), not any(audit_report.dead.values())),
    )
    parts: list[RenderableType] = [totals, "", summary, ""]
    parts += [Text(f"  {difference}") for difference in audit_report.differences[:SHOWN]]
    if len(audit_report.differences) > SHOWN:
        parts.append(f"  and {len(audit_report.differences) - SHOWN:,} more")
    parts += [Text(f"  accepted: {text}") for text in audit_report.accepted_differences[:SHOWN]]
    if audit_report.clean:
        parts.append("[green]clean[/green]")
    elif audit_report.quiet:
        parts.append("[red]not clean[/red]")
    else:
        parts.append("[yellow]not quiet: changes are still in transit[/yellow]")
    return Group(*parts)


def _row(name: str, sums: Sums) -> tuple[str, ...]:
    rows, counters, hot, hot_counters = sums
    of_all = "" if hot_counters == counters else f" of {hot_counters:,}"
    good = rows == counters and hot == hot_counters
    return name, f"{hot:,}{of_all}", f"{counters:,}", f"{rows:,}", mark(good)


def _by_queue(depths: Mapping[str, int]) -> str:
    full = ", ".join(f"{name} {depth:,}" for name, depth in sorted(depths.items()) if depth)
    return full or "0"
