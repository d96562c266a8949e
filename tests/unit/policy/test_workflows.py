"""Workflows, hooks and templates of GitHub: pinned, with few rights, and of what exists."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.stack.servers import TEST_SETTINGS
from tests.clock import list_times
from tests.unit.policy.modules import ROOT, tracked

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
VERSION = (ROOT / ".python-version").read_text().strip()
WRITING = {
    ("dependencies", "lock"): {"contents", "pull-requests", "actions"},
    ("release", "release"): {"contents", "id-token"},
    ("release", "documentation"): {"pages", "id-token"},
}
"""The jobs that may write, and what."""

every_workflow = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)


def load(file: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load(file.read_text(), yaml.CBaseLoader)
    return loaded


def jobs_of(file: Path) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = load(file)["jobs"]
    return jobs


def steps_of(file: Path) -> list[dict[str, Any]]:
    return [step for job in jobs_of(file).values() for step in job["steps"]]


def commands_of(file: Path) -> str:
    return "\n".join(step["run"] for step in steps_of(file) if "run" in step)


@every_workflow
def test_actions_are_pinned_by_hash(file: Path) -> None:
    """A tag can be moved to other code."""
    used = re.findall(r"\buses: *(.*)", file.read_text())
    assert len(used) == sum("uses" in step for step in steps_of(file))
    assert [action for action in used if not PINNED.fullmatch(action)] == []


def test_an_action_has_one_version() -> None:
    used = {pin for file in WORKFLOWS for pin in re.findall(r"uses: *(.*)", file.read_text())}
    assert len({pin.partition("@")[0] for pin in used}) == len(used)


@every_workflow
def test_a_job_ends_and_has_only_the_rights_that_it_needs(file: Path) -> None:
    assert load(file)["permissions"] == {"contents": "read"}
    for name, job in jobs_of(file).items():
        assert int(job["timeout-minutes"]) <= 180
        rights = job.get("permissions", {})
        writing = {right for right, level in rights.items() if level == "write"}
        assert writing == WRITING.get((file.stem, name), set())


@every_workflow
def test_only_a_job_that_pushes_keeps_the_credentials_of_its_checkout(file: Path) -> None:
    for job in jobs_of(file).values():
        pushes = any("git push" in step.get("run", "") for step in job["steps"])
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                kept = step.get("with", {}).get("persist-credentials", "true")
                assert kept == str(pushes).lower()


@every_workflow
def test_a_command_has_no_text_that_others_write(file: Path) -> None:
    """Expressions of the event are inserted into the script before a shell reads it."""
    inserted = re.findall(r"\$\{\{ *([^} ]+)", commands_of(file))
    assert set(inserted) <= {"matrix.target"}


def targets_in(words: str) -> set[str]:
    """Return the targets among the arguments of make."""
    return {word for word in re.sub(r'[A-Z_]+="[^"]*"', "", words).split() if "=" not in word}


def test_workflows_call_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    called = {
        word
        for file in WORKFLOWS
        for line in re.findall(r"\bmake ([^\n&|;$]+)", commands_of(file))
        for word in targets_in(line)
    }
    matrix = jobs_of(GITHUB / "workflows" / "nightly.yml")["nightly"]["strategy"]["matrix"]
    for words in (*matrix["target"], *(item["target"] for item in matrix["include"])):
        called |= targets_in(words)
    assert {"setup", "vulnerabilities", "release", "reproducible"} <= called
    assert called - targets == set()


def test_python_is_that_of_the_version_file_or_the_oldest() -> None:
    results = [
        step["with"]
        for file in WORKFLOWS
        for step in steps_of(file)
        if step.get("uses", "").startswith("actions/setup-python@")
    ]
    oldest = {"python-version": "3.11"}
    assert [item for item in results if item != {"python-version-file": ".python-version"}] == [
        oldest
    ]
    job = jobs_of(GITHUB / "workflows" / "nightly.yml")["oldest-python"]
    assert job["env"] == {"PYTHON_VERSION": "3.11"}


def test_each_night_all_tests_run_at_other_times() -> None:
    job = jobs_of(GITHUB / "workflows" / "nightly.yml")["any-day"]
    assert job["strategy"]["matrix"]["time"] == list(list_times(datetime.now(UTC)))
    *_, setup, tests = [step["run"] for step in job["steps"] if "run" in step]
    assert setup == "make setup test-setup", "downloads need the right time"
    assert tests.splitlines()[-2:] == ['sudo date --set "$TIME"', "make test"]


def test_each_night_tests_run_with_the_servers_that_ci_does_not_have() -> None:
    jobs = jobs_of(GITHUB / "workflows" / "nightly.yml")
    debian = jobs["newest-debian"]
    assert debian["container"] == "debian:trixie"
    assert debian["steps"][-1]["run"] == "make test"
    isolations = [row.get("isolation") for row in jobs["nightly"]["strategy"]["matrix"]["include"]]
    assert "OFF" in isolations
    assert TEST_SETTINGS[0] == "loose-innodb-snapshot-isolation = ON"


def test_ci_checks_code_subjects_secrets_and_vulnerabilities() -> None:
    file = GITHUB / "workflows" / "ci.yml"
    commands = commands_of(file)
    assert ".ci/run" in commands
    assert "subjects.py" in commands
    assert "make vulnerabilities" in commands
    assert any(step.get("uses", "").startswith("gitleaks/") for step in steps_of(file))
    for job in ("commits", "secrets"):
        assert jobs_of(file)[job]["steps"][0]["with"]["fetch-depth"] == "0"


def test_ci_runs_what_a_push_runs() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    started = re.findall(r"^(?:run|start) (?:nice )?make (.*)$", script, re.MULTILINE)
    assert "test CHECKED=1" in started
    assert {"setup", "build", "docs", "check", "validate"} <= {*" ".join(started).split()}


def test_the_hooks_check_templates_and_subjects() -> None:
    config = load(ROOT / ".pre-commit-config.yaml")
    hooks = {hook["id"]: hook for repo in config["repos"] for hook in repo["hooks"]}
    assert {"format", "lint", "types", "templates", "subject", "check"} <= set(hooks)
    names = [str(file.relative_to(ROOT)) for file in tracked()]
    matched = [name for name in names if re.match(hooks["templates"]["files"], name)]
    assert {"template.yaml", "alarms.json", "deploy/data.yaml"} <= set(matched)


def test_dependabot_updates_what_make_lock_does_not() -> None:
    updates = load(GITHUB / "dependabot.yml")["updates"]
    assert {item["package-ecosystem"] for item in updates} == {"github-actions", "npm"}
    commands = commands_of(GITHUB / "workflows" / "dependencies.yml")
    assert "make lock ARGS=--upgrade" in commands


def test_every_path_of_the_owners_exists() -> None:
    lines = [line.split() for line in (GITHUB / "CODEOWNERS").read_text().splitlines()]
    entries = [line for line in lines if line and line[0] != "#"]
    names = [f"/{file.relative_to(ROOT)}" for file in tracked()]
    assert entries[0][0] == "*"
    for pattern, *owners in entries:
        assert owners
        assert pattern == "*" or any(fnmatch(name, f"{pattern}*") for name in names), pattern


def test_the_container_has_the_python_of_the_functions() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert container["image"].startswith(f"python:{VERSION}-")
    assert container["postCreateCommand"] == "make setup"


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_the_forms_of_issues_have_fields_with_labels(name: str) -> None:
    form = load(GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml")
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert {"name", "description"} <= set(form)
    assert len({field["id"] for field in fields}) == len(fields) > 2
    assert all(field["attributes"]["label"] for field in fields)
