"""Checkouts of Plaza: an earlier commit, the working tree, and a changed copy of it."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cli.paths import ROOT, CommandError

CACHE = ROOT / ".local-versions"
BASELINE = Path(__file__).with_name("baseline.txt")
# What a version consists of: the layer, the functions, and what declares queues and schedules.
PARTS = ("layers/common/python", "functions", "template.yaml", "alarms.json")


def read_baseline() -> str:
    """Return the commit that ``baseline.txt`` names."""
    [commit] = [line for line in BASELINE.read_text().splitlines() if not line.startswith("#")]
    return commit


def extract(commit: str, cache: Path = CACHE) -> Path:
    """Return a folder with the parts of a commit, which is written once. Raises CommandError."""
    shown = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    if shown.returncode != 0:
        raise CommandError(
            f"commit {commit} is not in this clone: fetch the whole history"
            " (`git fetch --unshallow`; in CI `fetch-depth: 0`)"
        )
    name = shown.stdout.decode().strip()
    folder = cache / name
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        archive = _git("archive", "--format=tar", name, *PARTS)
        if archive.returncode != 0:
            raise CommandError(f"commit {name} can't be read: {archive.stderr.decode().strip()}")
        temporary = tempfile.mkdtemp(dir=cache)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(temporary, filter="data")
        with contextlib.suppress(FileExistsError):  # another process was faster
            Path(temporary).rename(folder)
    return folder


def is_ancestor(commit: str) -> bool:
    """Return whether the working tree is based on a commit."""
    return _git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


def copy_changed(
    root: Path, to: Path, changes: Mapping[str, Mapping[str, str]], added: Mapping[str, str]
) -> Path:
    """Copy the parts of a checkout to ``to``, and change them there. Returns ``to``.

    ``changes``: text -> its replacement, by file. ``added``: text of new files.
    """
    for part in PARTS:
        if (root / part).is_dir():
            shutil.copytree(root / part, to / part)
        else:
            shutil.copy(root / part, to / part)
    for name, replaced in changes.items():
        text = (to / name).read_text()
        for old, new in replaced.items():
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new)
        (to / name).write_text(text)
    for name, text in added.items():
        (to / name).write_text(text)
    return to


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True)
