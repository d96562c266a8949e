"""The lines of the layer that tests cover, as ``python -m tests --coverage`` measured them."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from cli.paths import LAYER, ROOT

RESULT = ROOT / ".coverage.json"  # [tool.slipcover] of pyproject.toml
MIN_BODY_LINES = 10


def report(*, list_missing: bool = False) -> int:
    """Print the covered share. Return 1 without a result, or with one that leaves out modules that
    ran."""
    if not RESULT.exists():
        print(f"{RESULT.name} does not exist: run `make coverage`", file=sys.stderr)
        return 1
    document = json.loads(RESULT.read_text())
    if list_missing:
        for name, of_file in sorted(document["files"].items()):
            if lines := of_file["missing_lines"]:
                print(f"{Path(name).resolve().relative_to(LAYER)}: {render_lines(lines)}")
    summary = document["summary"]
    covered = summary["covered_lines"]
    total = covered + summary["missing_lines"]
    print(f"{covered:,} of {total:,} lines of the layer covered, {covered / total:.1%}")
    if unmeasured := list(find_unmeasured(document["files"])):
        names = ", ".join(str(file.resolve().relative_to(LAYER)) for file in unmeasured)
        print(f"not measured, imported before slipcover was loaded: {names}", file=sys.stderr)
        return 1
    return 0


def find_unmeasured(files: dict[str, dict[str, list[int]]]) -> Iterator[Path]:
    """Yield the modules in whose functions no line ran: tests call functions of each, so the module
    was imported before the measurement began."""
    for name, of_file in sorted(files.items()):
        bodies = set(lines_of_bodies(ast.parse(Path(name).read_text())))
        measured = bodies & {*of_file["executed_lines"], *of_file["missing_lines"]}
        if len(measured) >= MIN_BODY_LINES and measured.isdisjoint(of_file["executed_lines"]):
            yield Path(name)


def lines_of_bodies(tree: ast.Module) -> Iterable[int]:
    """Yield the numbers of the lines inside of functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from range(node.body[0].lineno, (node.end_lineno or 0) + 1)


def render_lines(lines: list[int]) -> str:
    """Return ``3, 7-9`` for 3, 7, 8, 9."""
    parts = []
    for _, group in groupby(enumerate(sorted(lines)), key=lambda pair: pair[1] - pair[0]):
        run = [line for _, line in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(parts)
