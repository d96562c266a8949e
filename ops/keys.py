"""``keys``: the biggest and the hottest keys of Redis, as ScanKeys reports them."""

import argparse
import json
import time
from typing import Any

from cli.output import new_table, wide_console
from ops.environment import use_environment
from plaza.operate.keyspace import key_scan

MAX_SCAN_S = 60.0


def main(args: argparse.Namespace) -> int:
    with use_environment(args):
        report = read_report(args.limit, args.minutes)
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        _print(report, args.minutes)
    return 1 if any(not row["expected"] for row in report["oversized"]) else 0


def read_report(limit: int, minutes: int) -> dict[str, Any]:
    """Return ``scanned`` keys, the ``big`` ones of each type, the ``oversized``, the ``hot``."""
    walk = key_scan.continue_scan(key_scan.ScanState(time.time()), MAX_SCAN_S)
    hottest = key_scan.read_hot_keys(minutes, limit)
    return {
        "scanned": walk.scanned,
        "complete": walk.finished_s > 0,
        "big": [_row(big) for kind in sorted(walk.biggest) for big in walk.biggest[kind][:limit]],
        "oversized": [_row(big) for big in walk.oversized],
        "hot": [
            {"key": key_scan.redact_key(hot.key), "per_s": hot.commands_per_s} for hot in hottest
        ],
    }


def _row(key: Any) -> dict[str, Any]:
    return {
        "key": key_scan.redact_key(key.key),
        "type": key.type,
        "bytes": key.bytes,
        "members": None if key.type == "string" else key.length,
        "oversized": key.is_oversized,
        "expected": key.is_expected,
    }


def _print(report: dict[str, Any], minutes: int) -> None:
    console = wide_console()
    rest = "" if report["complete"] else ", incomplete: out of time"
    console.print(f"{report['scanned']:,} keys{rest}\n")
    big = new_table("biggest", "type", "bytes", "members", "", left=("type", ""))
    rows = {row["key"]: row for row in [*report["oversized"], *report["big"]]}
    for row in rows.values():
        members = "" if row["members"] is None else f"{row['members']:,}"
        size = "big, as expected" if row["expected"] else "[red]too big[/red]"
        note = size if row["oversized"] else ""
        big.add_row(row["key"], row["type"], f"{row['bytes']:,}", members, note)
    console.print(big)
    console.print()
    hot = new_table(f"hottest, of the last {minutes} minutes", "commands a second, about")
    for row in report["hot"]:
        hot.add_row(row["key"], f"{row['per_s']:,}")
    console.print(hot if report["hot"] else "no hot keys were reported")
