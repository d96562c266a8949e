"""``keys``: the biggest and the hottest keys of the stack's Redis, as ScanKeys reports them."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from local.paths import LocalError
from local.stack.stack import Stack

MAX_SCAN_S = 60.0


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Scan all keys and print the findings. Returns 1 when a key is bigger than it should be."""
    report = read_report(stack, args.limit, args.minutes)
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        _print(report, args.minutes)
    return 1 if any(not row["expected"] for row in report["oversized"]) else 0


def read_report(stack: Stack, limit: int, minutes: int) -> dict[str, Any]:
    """Return ``scanned`` keys, the ``big`` ones of each type, the ``oversized``, the ``hot``."""
    os.environ.update(stack.environment())  # before plaza reads its settings, once
    from plaza.infra.redis import RedisDown
    from plaza.keyspace import key_scan

    try:
        walk = key_scan.continue_scan(key_scan.ScanState(time.time()), MAX_SCAN_S)
        hottest = key_scan.read_hot_keys(minutes, limit)
    except RedisDown as error:
        raise LocalError(f"the stack's Redis does not answer: {error}") from None
    return {
        "scanned": walk.scanned,
        "complete": walk.finished_s > 0,
        "big": [_row(big) for kind in sorted(walk.biggest) for big in walk.biggest[kind][:limit]],
        "oversized": [_row(big) for big in walk.oversized],
        "hot": [
            {"key": key_scan.redact_key(hot.key), "per_s": hot.commands_per_s} for hot in hottest
        ],
    }


def _row(found: Any) -> dict[str, Any]:
    from plaza.keyspace.key_scan import redact_key

    return {
        "key": redact_key(found.key),
        "type": found.type,
        "bytes": found.bytes,
        "members": None if found.type == "string" else found.length,
        "oversized": found.is_oversized,
        "expected": found.is_expected,
    }


def _print(report: dict[str, Any], minutes: int) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
    rest = "" if report["complete"] else ", incomplete: out of time"
    console.print(f"{report['scanned']:,} keys{rest}\n")
    big = _table("biggest", "type", "bytes", "members", "")
    for row in _once([*report["oversized"], *report["big"]]):
        members = "" if row["members"] is None else f"{row['members']:,}"
        size = "big, as expected" if row["expected"] else "[red]too big[/red]"
        big.add_row(
            row["key"], row["type"], f"{row['bytes']:,}", members, size if row["oversized"] else ""
        )
    console.print(big)
    console.print()
    hot = _table(f"hottest, of the last {minutes} minutes", "commands a second, about")
    for row in report["hot"]:
        hot.add_row(row["key"], f"{row['per_s']:,}")
    console.print(hot if report["hot"] else "no hot keys were reported")


def _once(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({row["key"]: row for row in rows}.values())


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for number, column in enumerate(columns):
        is_number = column in ("bytes", "members") or column.startswith("commands")
        table.add_column(
            column,
            justify="right" if is_number else "left",
            no_wrap=number > 0,
            overflow="fold",
        )
    return table
