"""Versions, the changelog and the subjects of commits."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.policy.modules import ROOT
from tools import release, subjects

SUBJECTS = Path(subjects.__file__)


def test_all_files_name_the_version_of_the_newest_release() -> None:
    versions = release.read_versions()
    assert len(versions) > 5
    assert release.find_disagreements(versions) == []


def test_a_file_with_another_version_is_found() -> None:
    versions = release.read_versions() | {"openapi.json": "9.0.0"}
    assert [item.split(", ")[1] for item in release.find_disagreements(versions)] == [
        "openapi.json has 9.0.0"
    ]


def test_the_tag_of_a_release_is_its_version() -> None:
    versions = release.read_versions()
    version = release.read_version()
    assert release.find_disagreements(versions, f"v{version}") == []
    assert release.find_disagreements(versions, version) != []


def test_the_changelog_begins_with_what_is_not_released() -> None:
    titles = re.findall(r"^## .*", release.CHANGELOG.read_text(), re.MULTILINE)
    assert titles[0] == "## [Unreleased]"
    dates = [title.rpartition(" - ")[2] for title in titles[1:]]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for date in dates)
    assert dates == sorted(dates, reverse=True)


def test_the_notes_of_a_release_end_before_the_one_before() -> None:
    changelog = "# Changelog\n\n## [Unreleased]\n\n- c\n\n## [2.0.0] - 2026-02-01\n\n- b\n\n"
    changelog += "## [1.0.0] - 2026-01-01\n\n- a\n"
    assert release.read_releases(changelog) == {"2.0.0": "- b", "1.0.0": "- a"}


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("Count a like once", None),
        ("Wipe the cache of sessions", None),
        ("x" * 72, None),
        ("x" * 73, "73 characters"),
        ("WIP", "work in progress"),
        ("WIP2", "work in progress"),
        ("wip: share the stack", "work in progress"),
        ("fixup! Count a like once", "work in progress"),
    ],
)
def test_subjects_of_work_in_progress_and_long_ones_are_refused(
    subject: str, fault: str | None
) -> None:
    result = subjects.find_fault(subject)
    assert result is None if fault is None else fault in str(result)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Commits: an old one with a subject that is refused, then "First", "WIP" and "Last"."""
    git(tmp_path, "init", "--quiet")
    for subject in ("WIP of old", "First", "WIP", "Last"):
        git(tmp_path, "-c", "user.name=x", "-c", "user.email=x@plaza.example", "commit",
            "--quiet", "--allow-empty", "--message", subject)  # fmt: skip
    return tmp_path


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        ("HEAD~2", "HEAD", ["WIP"]),
        ("HEAD~3", "HEAD~2", []),
        ("HEAD~1", "HEAD", []),
        ("0" * 40, "HEAD", []),
        ("", "HEAD~1", ["WIP"]),
    ],
)
def test_the_commits_of_a_push_are_checked(
    repository: Path, before: str, after: str, refused: list[str]
) -> None:
    """Given older commits, and a push of a new branch, whose commit before is zeros."""
    completed = check(repository, before, after)
    assert completed.returncode == int(bool(refused)), completed.stderr
    assert [line.split("'")[1] for line in completed.stderr.splitlines()] == refused


def test_a_push_of_an_unknown_commit_fails(repository: Path) -> None:
    assert check(repository, "HEAD~1", "f" * 40).returncode != 0


def test_a_message_is_checked_before_the_commit(tmp_path: Path) -> None:
    message = tmp_path / "message"
    message.write_text("Count a like once\n\nWIP is no subject here.\n")
    assert check(tmp_path, "--message", str(message)).returncode == 0
    message.write_text("WIP\n")
    assert check(tmp_path, "--message", str(message)).returncode == 1


def check(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SUBJECTS), *arguments]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)


def git(repository: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repository, check=True)


def test_the_check_of_subjects_needs_no_package() -> None:
    completed = subprocess.run(
        [sys.executable, "-I", "-S", SUBJECTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "BEFORE AFTER" in completed.stderr
