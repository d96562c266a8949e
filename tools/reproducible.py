"""``python -m tools reproducible``: build twice from nothing and compare all bytes.

Code is uploaded under the hash of its bytes, so equal builds deploy nothing. Exits 1 and names the
files that differ.
"""

import argparse
import filecmp
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from cli.paths import ROOT, RUNTIME, TEMPLATE, TOOLS


def build(directory: Path) -> None:
    """Run ``sam build`` into a directory, without its cache."""
    env = os.environ | {"PYTHON": RUNTIME, "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}"}
    command: list[str | Path] = [TOOLS / "sam", "build", "--template-file", TEMPLATE]
    command += ["--build-dir", directory, "--parameter-overrides", f"Runtime={RUNTIME}"]
    built = subprocess.run(
        [*command, "--no-cached"], env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if built.returncode:
        raise SystemExit(built.stderr)


def list_files(directory: Path) -> set[Path]:
    return {path.relative_to(directory) for path in directory.rglob("*") if path.is_file()}


def find_differences(first: Path, other: Path) -> list[str]:
    """Return the files that only one build has, or that differ."""
    files = list_files(first), list_files(other)
    same = files[0] & files[1]
    differ = {file for file in same if not filecmp.cmp(first / file, other / file, shallow=False)}
    return sorted(map(str, (files[0] ^ files[1]) | differ))


def hash_build(directory: Path) -> str:
    """Return a digest of the names and bytes of all files."""
    digest = hashlib.sha256()
    for file in sorted(list_files(directory)):
        digest.update(f"{file}\0".encode() + (directory / file).read_bytes())
    return digest.hexdigest()


def main(args: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as name:
        first, other = Path(name) / "one", Path(name) / "other"
        for directory in (first, other):
            build(directory)
        different = find_differences(first, other)
        for file in different:
            print(f"differs: {file}")
        if not different:
            print(f"{len(list_files(first))} files are equal in both builds: {hash_build(first)}")
    return int(bool(different))
