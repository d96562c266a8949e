"""``python -m tests.support.coverage [--missing]``: the lines of the layer that tests cover."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import groupby
from pathlib import Path

from cli.paths import LAYER, ROOT

RESULT = ROOT / ".coverage.json"  # [tool.slipcover] of pyproject.toml


def main() -> int:
    """Print the covered share; with ``--missing`` the other lines. Return 1 without a result."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.coverage", description=__doc__)
    parser.add_argument(
        "--missing", action="store_true", help="print the lines that no test covers"
    )
    options = parser.parse_args()
    if not RESULT.exists():
        print(f"{RESULT.name} does not exist: run `make test`", file=sys.stderr)
        return 1
    document = json.loads(RESULT.read_text())
    if options.missing:
        for name, of_file in sorted(document["files"].items()):
            if lines := of_file["missing_lines"]:
                print(f"{Path(name).resolve().relative_to(LAYER)}: {render_lines(lines)}")
    summary = document["summary"]
    covered = summary["covered_lines"]
    total = covered + summary["missing_lines"]
    print(f"{covered:,} of {total:,} lines of the layer covered, {covered / total:.1%}")
    return 0


def render_lines(lines: list[int]) -> str:
    """Return ``3, 7-9`` for 3, 7, 8, 9."""
    parts = []
    for _, group in groupby(enumerate(sorted(lines)), key=lambda pair: pair[1] - pair[0]):
        run = [line for _, line in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
