"""What no tracked file may contain, and how requirements are locked."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.unit.policy.modules import LAYER, ROOT, tracked
from tools.lock import PINNED, Lock, read_locks

# Split into pieces, so that this file does not match.
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


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_contains(what: str) -> None:
    results = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for file in tracked()
        if file.name != Path(__file__).name
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]
    assert results == []


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
def test_the_search_finds_forbidden_text(what: str, line: str) -> None:
    assert FORBIDDEN[what].search(line)


every_lock = pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.file.parent.name)


def lines_of(lock: Lock) -> list[str]:
    """Return the requirements of a file, one a line, without comments."""
    text = lock.file.read_text().replace("\\\n", " ")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def pins_of(lock: Lock) -> dict[str, str]:
    return dict(PINNED.findall(lock.file.read_text()))


def test_every_file_of_requirements_is_locked() -> None:
    files = {lock.file for lock in LOCKS}
    of_functions = {*(ROOT / "functions").glob("*/*/requirements.txt")}
    folder = {*(ROOT / "requirements").iterdir()}
    assert files == {*folder, *of_functions, LAYER / "requirements.txt"}


@every_lock
def test_every_requirement_has_a_version_and_hashes_only(lock: Lock) -> None:
    assert lines_of(lock)
    for line in lines_of(lock):
        assert LOCKED.fullmatch(line), line


@every_lock
def test_each_declared_requirement_is_locked_once(lock: Lock) -> None:
    names = [line.partition("==")[0] for line in lines_of(lock)]
    assert len(names) == len(set(names))
    declared = {re.split(r"[\[=<>~!;]", line)[0] for line in lock.requirements}
    assert declared <= set(names), "`make lock` locks it"


def test_the_layer_has_no_library_of_the_lambda_runtime() -> None:
    """boto3 is in the runtime and is larger than all other libraries together."""
    assert not set(pins_of(LOCKS[0])) & {"boto3", "botocore", "s3transfer", "urllib3"}


@every_lock
def test_locks_that_must_agree_have_the_same_versions(lock: Lock) -> None:
    own = pins_of(lock)
    for other in LOCKS:
        if other.file in lock.agrees_with:
            assert pins_of(other).items() <= own.items()


def npm_locks() -> list[Path]:
    return [file for file in tracked() if file.name == "package-lock.json"]


def test_every_npm_package_is_locked_with_its_hash_and_without_an_address() -> None:
    assert npm_locks() == [ROOT / "package-lock.json"]
    packages = json.loads(npm_locks()[0].read_text())["packages"]
    installed = {name: package for name, package in packages.items() if "node_modules/" in name}
    assert len(installed) > 10
    for name, package in installed.items():
        if package.get("link"):
            assert (ROOT / package["resolved"] / "package.json").exists(), name
        else:
            assert package["integrity"].startswith("sha512-"), name
            assert "resolved" not in package, f"{name}: .npmrc leaves addresses out"


def test_npm_packages_are_declared_with_one_version() -> None:
    for file in tracked():
        if file.name != "package.json":
            continue
        declared = json.loads(file.read_text())
        for kind in ("dependencies", "devDependencies"):
            for name, version in declared.get(kind, {}).items():
                assert re.fullmatch(r"\d+\.\d+\.\d+", version), f"{file}: {name}"


def test_no_output_of_a_run_is_tracked() -> None:
    outputs = {".local", ".venv", ".aws-sam", "__pycache__", ".hypothesis", "node_modules"}
    assert [f for f in tracked() if outputs & set(f.relative_to(ROOT).parts)] == []


def test_no_large_file_is_tracked() -> None:
    assert [f for f in tracked() if f.stat().st_size > 1_000_000] == []


def test_users_of_end_to_end_tests_belong_to_one_file() -> None:
    """All share a stack: what a user wrote in one file is in the lists of another."""
    files: dict[str, set[str]] = {}
    for file in (ROOT / "tests" / "e2e").glob("test_*.py"):
        for range_of_ids in re.findall(r"\b([56]_\d{2})\d_\d{3}\b", file.read_text()):
            files.setdefault(range_of_ids, set()).add(file.name)
    assert {ids: names for ids, names in files.items() if len(names) > 1} == {}
