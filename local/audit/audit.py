"""``audit``: the table of truth, to read or for a machine."""

import argparse
import os
from collections.abc import Mapping

import pymysql
import redis
from redis.exceptions import RedisClusterException
from rich.console import Group, RenderableType
from rich.text import Text

from local.audit.evidence import read_cache, read_record
from local.audit.quiet import wait_until_quiet
from local.audit.truth import Sums, Truth, compare
from local.output import finish, mark, new_list, new_table
from local.paths import LocalError
from local.stack.stack import Stack
from local.stack.status import count_messages
from plaza.infra.objects import ObjectsDown
from plaza.vote_log.s3_archive import ArchiveCorrupt

SHOWN = 20


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Print the table of truth; 1 unless it is clean."""
    if args.wait:
        wait_until_quiet(stack)
    return finish(args, read_truth(stack), lambda truth, out: out.print(render(truth)))


def read_truth(stack: Stack) -> Truth:
    """The table of truth of a stack. Raises LocalError when a part of it does not answer."""
    os.environ.update(stack.environment())  # before plaza reads its settings, once
    try:
        before = count_messages(stack)
        # Redis first: MySQL is then never the older one, and the log says what it is ahead by.
        cache = read_cache(stack.redis_url, cluster=stack.redis_cluster)
        record = read_record(stack.mysql_url, archives=True, cache=cache)
    except (redis.RedisError, RedisClusterException) as error:
        raise LocalError(f"Redis can't be read: {error}") from None
    except pymysql.err.MySQLError as error:
        raise LocalError(f"MySQL can't be read: {error}") from None
    except (ObjectsDown, ArchiveCorrupt) as error:
        raise LocalError(f"the archive of the log can't be read: {error}") from None
    # A message that was handled meanwhile was on its way, too.
    return compare(record, cache, {q: max(d, before[q]) for q, d in count_messages(stack).items()})


def render(truth: Truth) -> RenderableType:
    """The table of truth as people read it."""
    totals = new_table("", "Redis", "counter", "COUNT(*)", "")
    for kind, sums in truth.totals.items():
        totals.add_row(*_row(f"{kind}s", sums))
    for name, sums in truth.counters.items():
        totals.add_row(*_row(name.replace("_", " "), sums))
    facts = new_list(
        ("targets", f"{truth.targets:,}, {truth.hot:,} totals in Redis", True),
        ("vouchers", f"{truth.vouchers:,}, {truth.sold:,} units sold", True),
        ("check-ins", f"{truth.checkins:,}", True),
        ("drift", f"{truth.drift:,}", not truth.drift),
        ("other differences", f"{truth.others:,}", not truth.others),
        ("facts accepted", f"{truth.accepted:,}", True),
        ("facts persisted", f"{truth.persisted:,}", truth.persisted == truth.accepted),
        ("pending in Redis", f"{truth.pending:,}", not truth.pending),
        ("marked for the sweeper", f"{truth.dirty:,}", not truth.dirty),
        ("changed while read", f"{truth.moving:,}", not truth.moving),
        ("in MySQL for queues", _by_queue(truth.spilled), not any(truth.spilled.values())),
        ("in queues", _by_queue(truth.queued), not any(truth.queued.values())),
        ("in DLQs", _by_queue(truth.dead), not any(truth.dead.values())),
    )
    parts: list[RenderableType] = [totals, "", facts, ""]
    parts += [Text(f"  {difference}") for difference in truth.differences[:SHOWN]]
    if len(truth.differences) > SHOWN:
        parts.append(f"  and {len(truth.differences) - SHOWN:,} more")
    if truth.clean:
        parts.append("[green]clean[/green]")
    elif truth.quiet:
        parts.append("[red]not clean[/red]")
    else:
        parts.append("[yellow]not quiet yet: changes are still on their way[/yellow]")
    return Group(*parts)


def _row(name: str, sums: Sums) -> tuple[str, ...]:
    rows, counters, hot, hot_counters = sums
    of_all = "" if hot_counters == counters else f" of {hot_counters:,}"
    good = rows == counters and hot == hot_counters
    return name, f"{hot:,}{of_all}", f"{counters:,}", f"{rows:,}", mark(good)


def _by_queue(depths: Mapping[str, int]) -> str:
    full = ", ".join(f"{name} {depth:,}" for name, depth in sorted(depths.items()) if depth)
    return full or "0"
