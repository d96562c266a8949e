"""What must not be in a file that ships or that builds what ships."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from local.stack.lock import PINNED, Lock, read_locks
from tests.unit.policy.modules import LAYER, ROOT

# Written in pieces, so that this file does not find itself.
REGISTRIES = "|".join(
    host.replace(" ", r"\.")
    for host in (
        "pypi org",
        "pythonhosted org",
        "npmjs org",
        "registry npmjs",
        "docker io",
        "ghcr io",
        "quay io",
        "conda anaconda",
        "proxy golang",
        "repo1 maven",
        "rubygems org",
        "deb debian",
        "archive ubuntu",
    )
)
FORBIDDEN = {
    "the host of a registry": re.compile(REGISTRIES),
    "an index": re.compile(r"--(?:extra-)?index" + r"-url|--find" + r"-links|--trusted" + r"-host"),
    "a download": re.compile(
        r"https?://[^\s\"'<>)]+\.(?:tar|tgz|gz|zip|whl|deb|rpm|exe|dmg|jar|sh)\b"
        r"|\b(?:curl|wget)\b[^\n]*https?://(?!127\.0\.0\.1|localhost|\$)"
    ),
    "a path of one machine": re.compile(
        r"(?<![\w.>})-])/(?:home|Users|root|work|mnt|media)/[\w.-]+"
    ),
}
LOCKS = read_locks(tomllib.loads((ROOT / "pyproject.toml").read_text()))
LOCKED = re.compile(
    r"[a-z0-9][a-z0-9.-]*==[0-9][a-z0-9.]*(?: ; [^\n\\]+)?( --hash=sha256:[0-9a-f]{64})+"
)


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone, nothing says which files are ours")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    files = [ROOT / name for name in done.stdout.decode().split("\0") if name]
    return [file for file in files if file.is_file()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for file in tracked()
        if file.name != Path(__file__).name
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("the host of a registry", "index = https://" + "pypi" + ".org/simple"),
        ("an index", "--index" + "-url x"),
        ("a download", "https://example.com/a" + ".tar.gz"),
        ("a download", "curl -s https://" + "example.com | sh"),
        ("a path of one machine", "open('/home" + "/ada/x')"),
    ],
)
def test_the_search_finds_what_it_looks_for(what: str, line: str) -> None:
    assert FORBIDDEN[what].search(line)


every_lock = pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.file.parent.name)


def lines_of(lock: Lock) -> list[str]:
    """The requirements of a file, one a line, without its comments."""
    text = lock.file.read_text().replace("\\\n", " ")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def pins_of(lock: Lock) -> dict[str, str]:
    return dict(PINNED.findall(lock.file.read_text()))


def test_every_file_of_requirements_is_locked() -> None:
    files = {lock.file for lock in LOCKS}
    assert files == {*(ROOT / "requirements").iterdir(), LAYER / "requirements.txt"}


@every_lock
def test_every_requirement_has_its_version_and_hashes_and_nothing_else(lock: Lock) -> None:
    assert lines_of(lock)
    for line in lines_of(lock):
        assert LOCKED.fullmatch(line), line


@every_lock
def test_what_is_asked_for_is_locked_once(lock: Lock) -> None:
    names = [line.partition("==")[0] for line in lines_of(lock)]
    assert len(names) == len(set(names))
    asked = {re.split(r"[\[=<>~!;]", wanted)[0] for wanted in lock.wanted}
    assert asked <= set(names), "`make lock` locks it"


def test_the_layer_brings_nothing_that_the_runtime_has() -> None:
    """boto3 is in the Lambda runtime and weighs more than all the rest."""
    assert not set(pins_of(LOCKS[0])) & {"boto3", "botocore", "s3transfer", "urllib3"}


@every_lock
def test_what_two_files_require_is_the_same_version(lock: Lock) -> None:
    mine = pins_of(lock)
    for other in LOCKS:
        if other.file in lock.agrees_with:
            assert pins_of(other).items() <= mine.items()


def test_nothing_that_a_run_leaves_behind_is_tracked() -> None:
    left = {".local", ".venv", ".aws-sam", "__pycache__", ".pytest_cache", ".hypothesis"}
    assert [f for f in tracked() if left & set(f.relative_to(ROOT).parts)] == []


def test_nothing_big_is_tracked() -> None:
    assert [f for f in tracked() if f.stat().st_size > 500_000] == []
