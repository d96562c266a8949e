"""An earlier version of Plaza beside a stack: on its Redis and MySQL, with an API and queues of its
own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from cli.paths import ROOT, CommandError
from local.stack.stack import Stack

FOLDER = ROOT / ".local-before"
_ENVIRONMENTS = (".venv", ".venv-tools", ".venv-lambda")


@contextlib.contextmanager
def run_version(stack: Stack, commit: str) -> Iterator[str]:
    """Start the version of ``commit``, and yield the URL of its API. It uses the packages of this
    version. Raises CommandError."""
    folder = _extract(commit)
    given = ("PLAZA_", "AWS_")
    environment = {name: v for name, v in os.environ.items() if not name.startswith(given)} | {
        "PLAZA_REDIS_URL": stack.redis_url,
        "PLAZA_MYSQL_URL": stack.mysql_url,
        "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "layers/common/python")]),
    }

    def run(*words: str) -> None:
        command = [sys.executable, "-m", "local", *words]
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if ended.returncode != 0:
            raise CommandError(f"version {commit}: {(ended.stderr or ended.stdout)[-1000:]}")

    try:
        run("up", "--detach", "--no-demo", *["--redis-cluster"] * stack.redis_cluster)
        yield json.loads((folder / ".local" / "stack.json").read_text())["base_url"]
    finally:
        run("down")


def _extract(commit: str) -> Path:
    """Write the files of a commit once. Returns their folder. Raises CommandError."""
    folder = FOLDER / commit
    if not folder.exists():
        folder.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True)
        if archive.returncode != 0:
            folder.rmdir()
            raise CommandError(f"commit {commit} can't be read: {archive.stderr.decode().strip()}")
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
        for name in _ENVIRONMENTS:
            (folder / name).symlink_to(ROOT / name)
    return folder
