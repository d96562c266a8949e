"""What must not be in a file that ships or that builds what ships."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

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
REQUIREMENTS = sorted([*(ROOT / "requirements").glob("*.txt"), LAYER / "requirements.txt"])
PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z,]+\])?==[0-9][A-Za-z0-9.]*(; .+)?")


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


@pytest.mark.parametrize("file", REQUIREMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_requirement_is_pinned_and_names_no_index(file: Path) -> None:
    lines = [line.partition(" #")[0].strip() for line in file.read_text().splitlines()]
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert wanted
    for line in wanted:
        if line.startswith("-r "):
            assert (file.parent / line.removeprefix("-r ")).exists()
        else:
            assert PINNED.fullmatch(line), line


@pytest.mark.parametrize("file", REQUIREMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_is_required_twice(file: Path) -> None:
    names = [
        line.partition("==")[0].lower().replace("_", "-")
        for line in file.read_text().splitlines()
        if "==" in line
    ]
    assert len(names) == len(set(names))


def test_the_layer_brings_nothing_that_the_runtime_has() -> None:
    """boto3 is in the Lambda runtime and weighs more than all the rest."""
    names = {
        line.partition("==")[0].partition("[")[0]
        for line in (LAYER / "requirements.txt").read_text().splitlines()
    }
    assert not names & {"boto3", "botocore", "s3transfer", "urllib3"}


def test_what_two_files_require_is_the_same_version() -> None:
    def pins(name: str) -> dict[str, str]:
        lines = (ROOT / "requirements" / name).read_text().splitlines()
        return dict(line.split("==", 1) for line in lines if "==" in line)

    dev, lambda_runtime = pins("dev.txt"), pins("lambda.txt")
    shared = dev.keys() & lambda_runtime.keys()
    assert "botocore" in shared
    assert {name: dev[name] for name in shared} == {name: lambda_runtime[name] for name in shared}


def test_nothing_that_a_run_leaves_behind_is_tracked() -> None:
    left = {".local", ".venv", ".aws-sam", "__pycache__", ".pytest_cache", ".hypothesis"}
    assert [f for f in tracked() if left & set(f.relative_to(ROOT).parts)] == []


def test_nothing_big_is_tracked() -> None:
    assert [f for f in tracked() if f.stat().st_size > 500_000] == []
