"""``python -m tests.support.coverage [--missing]``: the lines of the layer that tests reached."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import groupby
from pathlib import Path

from local.paths import LAYER, ROOT

RESULT = ROOT / ".coverage.json"  # [tool.slipcover] of pyproject.toml


def main() -> int:
    """Print the share, and with ``--missing`` the lines file by file. Exit status 1 without one."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.coverage", description=__doc__)
    parser.add_argument("--missing", action="store_true", help="also the lines that none reached")
    options = parser.parse_args()
    if not RESULT.exists():
        print("no coverage is known: run `make test`", file=sys.stderr)
        return 1
    found = json.loads(RESULT.read_text())
    if options.missing:
        for name, of_file in sorted(found["files"].items()):
            if lines := of_file["missing_lines"]:
                print(f"{Path(name).resolve().relative_to(LAYER)}: {render_lines(lines)}")
    summary = found["summary"]
    reached = summary["covered_lines"]
    total = reached + summary["missing_lines"]
    print(f"{reached:,} of {total:,} lines of the layer reached, {reached / total:.1%}")
    return 0


def render_lines(lines: list[int]) -> str:
    """``3, 7-9`` for 3, 7, 8, 9."""
    parts = []
    for _, group in groupby(enumerate(sorted(lines)), key=lambda pair: pair[1] - pair[0]):
        run = [line for _, line in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
