"""Locks the dependencies of pyproject.toml: a version for each package, and file hashes.

``make lock`` adds and removes packages and keeps the versions of all others; ``make lock
ARGS=--upgrade`` takes the newest versions. The files name no index: pip's own configuration does.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.paths import LAYER, ROOT

PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
_OPTIONS = (
    "--generate-hashes",
    "--allow-unsafe",  # setuptools and pip are locked too
    "--strip-extras",
    "--no-annotate",
    "--no-header",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--quiet",
)


@dataclass(frozen=True, slots=True)
class Lock:
    """A file of locked packages. A package that is also in ``agrees_with`` has the same version
    there."""

    file: Path
    title: str
    requirements: tuple[str, ...]
    agrees_with: tuple[Path, ...] = ()


def read_locks(declared: dict[str, Any]) -> list[Lock]:
    """Return the files in the order in which they are made."""
    groups = declared["dependency-groups"]
    dependencies = tuple(declared["project"]["dependencies"])
    layer, folder = LAYER / "requirements.txt", ROOT / "requirements"
    runtime = folder / "lambda.txt"
    sign_in = ROOT / "functions" / "api" / "auth" / "requirements.txt"
    push = ROOT / "functions" / "queue" / "send_pushes" / "requirements.txt"
    return [
        Lock(layer, "What Lambda gets besides boto3, which the runtime brings.", dependencies),
        Lock(runtime, "What the Lambda runtime itself brings.", _members(groups, "lambda")),
        Lock(
            sign_in,
            "What the function of sign-in has besides the layer.",
            _members(groups, "sign-in"),
        ),
        Lock(
            push,
            "What the function that sends pushes has besides the layer.",
            _members(groups, "push"),
        ),
        Lock(
            folder / "dev.txt",
            "To develop and test: what Lambda has, and the tools.",
            dependencies + _members(groups, "dev"),
            (layer, runtime, sign_in, push),
        ),
        Lock(
            folder / "tools.txt",
            "What builds, deploys, and stands in for AWS on one machine.",
            _members(groups, "tools"),
        ),
        Lock(
            folder / "scan.txt",
            "What searches the templates for insecure settings.",
            _members(groups, "scan"),
        ),
        Lock(
            folder / "sbom.txt",
            "What writes the software bill of materials.",
            _members(groups, "sbom"),
        ),
        Lock(
            folder / "audit.txt",
            "What searches these files for known vulnerabilities.",
            _members(groups, "audit"),
        ),
        Lock(folder / "lock.txt", "What makes these files.", _members(groups, "lock")),
    ]


def _members(groups: dict[str, list[Any]], name: str) -> tuple[str, ...]:
    members: list[str] = []
    for member in groups[name]:
        if isinstance(member, str):
            members.append(member)
        else:
            members += _members(groups, member["include-group"])
    return tuple(members)


def write_lock(lock: Lock, options: tuple[str, ...] = ()) -> None:
    """Write a new file. Raises CalledProcessError when its packages conflict."""
    with tempfile.TemporaryDirectory() as name:
        requested, agreed, made = (
            Path(name) / file for file in ("wanted.in", "agreed", "made.txt")
        )
        requested.write_text("\n".join(lock.requirements) + "\n")
        agreed.write_text("".join(_read_pins(file) for file in lock.agrees_with))
        if lock.file.exists():
            made.write_text(lock.file.read_text())  # versions to keep, and their hashes
        command = [sys.executable, "-m", "piptools", "compile", *_OPTIONS, *options]
        files = ["--constraint", str(agreed), "--output-file", str(made), str(requested)]
        subprocess.run([*command, *files], check=True, stdout=subprocess.DEVNULL)
        lock.file.write_text(f"# {lock.title} Written by `make lock`.\n{made.read_text()}")


def _read_pins(file: Path) -> str:
    return "".join(f"{name}=={version}\n" for name, version in PINNED.findall(file.read_text()))


def main(args: argparse.Namespace) -> None:
    for each in read_locks(tomllib.loads((ROOT / "pyproject.toml").read_text())):
        print(f"locking {each.file.relative_to(ROOT)}", flush=True)
        write_lock(each, ("--upgrade",) if args.upgrade else ())
