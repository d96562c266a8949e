"""``generate``: write all generated files, each by its own command, in the order of what they read.

The web pages and the types of the TypeScript client need npm packages, and are left out without
them. ``--check`` writes nothing: it lists the files that would change.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from cli.paths import ROOT, CommandError

_COMMANDS = ("contract", "template", "samples", "alarms", "balancer")
_NPM = ("contract:client", "build:app", "build:console")
_WRITTEN = (
    "functions/api/system/openapi.json",
    "clients/python/src/plaza_client/*.py",
    "clients/python/src/plaza_client/*.json",
    "clients/typescript/src/contract.ts",
    "template.yaml",
    "events/*.json",
    "alarms.json",
    "docs/*.md",
    "docs/runbooks/README.md",
    "deploy/balancer-rules.json",
    "web/app/dist/**/*",
    "web/console/dist/**/*",
)


def main(args: argparse.Namespace) -> int:
    """Write the files; with ``--check`` print those that change, restore them, and return 1 if
    there are any. Raises CommandError."""
    before = _read() if args.check else {}
    _write()
    if not args.check:
        return 0
    after = _read()
    changed = sorted(file for file in {*before, *after} if before.get(file) != after.get(file))
    for file in changed:
        print(f"{file.relative_to(ROOT)} is out of date: run `make generate`")
        if file in before:
            file.write_bytes(before[file])
        else:
            file.unlink()
    return 1 if changed else 0


def _write() -> None:
    for command in _COMMANDS:
        _run(sys.executable, "-m", "tools", command)
    if (ROOT / "node_modules" / ".ready").exists():
        for task in _NPM:
            script, _, package = task.partition(":")
            _run(
                *(sys.executable, "-m", "tools", "node", "npm", "run", "--silent"),
                *(script, "-w", f"plaza-{package}"),
            )


def _run(*command: str) -> None:
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise CommandError(f"{' '.join(command[1:])} failed")


def _read() -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in _find()}


def _find() -> Iterator[Path]:
    for pattern in _WRITTEN:
        yield from (file for file in ROOT.glob(pattern) if file.is_file())
