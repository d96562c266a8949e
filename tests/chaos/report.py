"""The report: the matrix as Markdown tables, one for each part, and their place in the document."""

from __future__ import annotations

import os
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.expectations import EXPECTED, FAULTS, NOT_TESTED, OPERATIONS, SWAP_OPERATIONS
from tests.chaos.verdict import Cell, Row

BEGIN = "<!-- figures of `make chaos`: it writes from here -->"
BEGIN_PAIRS = '<!-- figures of `make chaos ARGS="pairs"`: it writes from here -->'
BEGIN_DEATHS = '<!-- figures of `make chaos ARGS="deaths"`: it writes from here -->'
BEGIN_SWAPS = '<!-- figures of `make chaos ARGS="swaps"`: it writes from here -->'
END = "<!-- to here -->"
_NAMES = {
    "redis": "Redis",
    "cluster": "Redis Cluster",
    "mysql": "MySQL",
    "sqs": "SQS",
    "redis+mysql": "Redis and MySQL",
}


def line(row: Row) -> str:
    """Return one fault as one line."""
    parts = [f"{row.name:22}"]
    parts += [f"{cell.operation} {_labels(cell)} {cell.slowest_s:.1f} s" for cell in row.cells]
    return " | ".join([*parts, f"quiet after {row.quiet_s:.0f} s"])


def render(rows: Sequence[Row], took_s: float) -> str:
    """Return the tables of the results."""
    results = {row.name: row for row in rows}
    promised = Counter(dict.fromkeys(OPERATIONS, 0))
    lost = 0
    for row in rows:
        for cell in row.cells:
            promised[cell.operation] += cell.promised
            lost += cell.lost
    load = statistics.fmean(row.load for row in rows) if rows else 0.0
    kept = ", ".join(
        f"{promised[name]:,} {_PROMISES[name]}" for name in _PROMISES if name in OPERATIONS
    )
    lines = [
        f"Seen on {os.cpu_count()} cores with a mean load of {load:.1f}, in"
        f" {took_s / 60:.0f} minutes: {kept}; {lost} lost or wrong.",
    ]
    for part in dict.fromkeys(name.split()[0] for name in EXPECTED if name in results):
        lines += ["", f"### {_NAMES[part]}", ""]
        lines += [
            f"| fault | {' | '.join(OPERATIONS)} | all quiet |",
            "|---" * (len(OPERATIONS) + 2) + "|",
        ]
        notes = []
        for fault in FAULTS:
            name = f"{part} {fault}"
            if name in results:
                row = results[name]
                cells = " | ".join(_cell(cell) for cell in row.cells)
                lines.append(f"| {fault} | {cells} | {row.quiet_s:.0f} s |")
                notes.append(f"* {fault}: {row.how}.")
                notes += [f"* **{fault} is not as expected**: {p}" for p in row.problems]
            elif name in NOT_TESTED:
                lines.append(f"| {fault} | {' | '.join(['-'] * len(OPERATIONS))} | - |")
                notes.append(f"* {fault}: not there. {NOT_TESTED[name]}.")
        lines += ["", *notes]
    return "\n".join(lines)


def render_swaps(rows: Sequence[Row], took_s: float) -> str:
    """Return the table of failovers there and back."""
    promised = Counter(dict.fromkeys(SWAP_OPERATIONS, 0))
    for row in rows:
        for cell in row.cells:
            promised[cell.operation] += cell.promised
    lost = sum(cell.lost for row in rows for cell in row.cells)
    kept = ", ".join(f"{promised[name]:,} {_PROMISES[name]}" for name in SWAP_OPERATIONS)
    lines = [
        f"Seen on {os.cpu_count()} cores in {took_s / 60:.0f} minutes: {kept}; {lost} lost or"
        " wrong.",
        "",
        f"| failover | {' | '.join(SWAP_OPERATIONS)} | all quiet |",
        "|---" * (len(SWAP_OPERATIONS) + 2) + "|",
    ]
    notes: dict[str, str] = {}
    for row in rows:
        name = row.name.removeprefix("redis ")
        cells = " | ".join(_cell(cell) for cell in row.cells)
        lines.append(f"| {name} | {cells} | {row.quiet_s:.0f} s |")
        notes.setdefault(row.how, f"* {name}: {row.how}.")
    wrong = [
        f"* **{row.name.removeprefix('redis ')} is not as expected**: {problem}"
        for row in rows
        for problem in row.problems
    ]
    return "\n".join([*lines, "", *notes.values(), *wrong])


def write(path: Path, text: str, begin: str = BEGIN) -> None:
    """Replace the figures after ``begin``, and keep the text around them."""
    before, _, rest = path.read_text().partition(begin)
    _, _, after = rest.partition(END)
    path.write_text(f"{before}{begin}\n\n{text}\n\n{END}{after}")


_PROMISES = {
    "like": "likes promised",
    "order": "orders",
    "sign-in": "sign-ins",
    "read": "reads",
    "feed": "feeds",
    "toggle": "toggles",
    "follow": "follows",
    "check-in": "check-ins",
    "return": "orders, cancellations and positions in the waitlist of a small voucher",
}


def _labels(cell: Cell) -> str:
    return ", ".join(f"{label} ×{count}" for label, count in cell.labels.most_common())


def _cell(cell: Cell) -> str:
    back = "never" if cell.recovery_s is None else f"{cell.recovery_s:.1f} s"
    return f"{_labels(cell)}; {cell.slowest_s:.1f} s; back {back}; lost {cell.lost}/{cell.promised}"
