"""What a change adds: resources of the templates, MB of the layer, ms of first requests.

``python -m tools budget`` prints the checkout beside a commit (``--since``, main by default). The
layer is of the last ``make build``; ``--cold`` measures first requests (``python -m bench
cold-start``), which takes minutes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from cli.includes import insert_included
from cli.output import wide_console
from cli.paths import ROOT, TOOLS, CommandError
from tools.template.text import load

LAYER = ROOT / ".aws-sam" / "build" / "CommonLayer"
TRANSFORM = ROOT / "tests" / "support" / "sam_transform.py"
APPLICATION = "template.yaml"
MAX_RESOURCES = 500  # of CloudFormation, a template
MAX_BYTES = 1_000_000  # the same, processed
MAX_LAYER_MB = 22
SOURCES = (APPLICATION, "alarms.json", "deploy")


class Size(NamedTuple):
    """A template after the transform of SAM: what CloudFormation counts."""

    resources: int = 0
    size_bytes: int = 0


def main(args: argparse.Namespace) -> None:
    """Print the tables. Raises CommandError."""
    console = wide_console()
    console.print(_compare(measure_commit(args.since), measure_templates(ROOT), args.since))
    if LAYER.exists():
        megabytes = sum(f.stat().st_size for f in LAYER.rglob("*") if f.is_file()) / 1e6
        console.print(f"layer, unzipped: {megabytes:.1f} MB of {MAX_LAYER_MB}")
    else:
        console.print("layer: not built; run `make build`")
    if args.cold:
        for name, ms in _measure_first_requests():
            console.print(f"{name}: {ms:.0f} ms")


def measure_templates(root: Path) -> dict[str, Size]:
    """Return template -> its size, of the templates below ``root``."""
    files = [root / APPLICATION, *sorted((root / "deploy").glob("*.yaml"))]
    return {str(file.relative_to(root)): measure_template(file) for file in files}


def measure_commit(commit: str) -> dict[str, Size]:
    """Return template -> its size at a commit. Raises CommandError without it."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", commit, "--", *SOURCES],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        if archive.returncode:
            raise CommandError(f"{commit} has no templates: {archive.stderr.decode().strip()}")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        return measure_templates(Path(folder))


def measure_template(file: Path) -> Size:
    """Return the size of a template. Raises CommandError if SAM cannot transform it."""
    text = insert_included(file.read_text(), file.parent)
    if "Transform" not in load(text):
        return Size(len(load(text)["Resources"]), len(text))
    completed = subprocess.run(
        [TOOLS / "python", TRANSFORM], input=text, capture_output=True, text=True, check=False
    )
    if completed.returncode:
        raise CommandError(f"{file.name}: {completed.stderr[-2000:]}")
    return Size(len(json.loads(completed.stdout)["Resources"]), len(completed.stdout))


def _compare(before: dict[str, Size], after: dict[str, Size], commit: str) -> Table:
    columns = ("template", f"resources at {commit}", "now", "added", "KB", "added")
    table = Table(*columns, title=f"of {MAX_RESOURCES} resources and {MAX_BYTES // 1000:,} KB")
    for name in sorted({*before, *after}, key=lambda name: (name != APPLICATION, name)):
        old, new = before.get(name, Size()), after.get(name, Size())
        table.add_row(
            name,
            str(old.resources),
            str(new.resources),
            f"{new.resources - old.resources:+d}",
            f"{new.size_bytes / 1000:.0f}",
            f"{(new.size_bytes - old.size_bytes) / 1000:+.1f}",
        )
    return table


def _measure_first_requests() -> Iterator[tuple[str, float]]:
    command = [sys.executable, "-m", "bench", "cold-start", "--json"]
    completed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if completed.returncode:
        raise CommandError("python -m bench cold-start failed")
    for figure in json.loads(completed.stdout):
        if figure["name"].startswith("first request"):
            yield figure["name"], figure["value"]
