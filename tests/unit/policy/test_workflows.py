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
from tests.__main__ import list_sessions
from tests.clock import list_times
from tests.unit.policy.modules import ROOT, tracked

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
MAKEFILE = (ROOT / "Makefile").read_text()
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
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    called = list_targets_of_workflows()
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


def ci_commands() -> list[str]:
    return re.findall(r"^run (.*?)(?: #.*)?$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


def recipe_of(target: str) -> str:
    """Return the commands of a target of the Makefile."""
    [recipe] = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return str(recipe)


def test_ci_runs_the_test_command_of_the_readme_and_each_check_once() -> None:
    section = (ROOT / "README.md").read_text().partition("## Two commands")[2]
    printed = re.findall(r"^make \w+", section.split("```")[1], re.MULTILINE)
    assert printed == ["make run", "make test"]
    test, checks = ci_commands()
    assert test == printed[1]
    targets = [word for word in checks.split() if not word.startswith("-")][1:]
    assert targets == ["lint", "types", "docs", "validate", "layer-size"]
    assert "layer-size: build" in MAKEFILE


def test_make_test_runs_all_tests_once_but_the_deep_ones() -> None:
    """A folder that no session collects would never be tested."""
    assert "test: setup test-setup" in MAKEFILE
    assert "-m $(if $(ARGS),pytest $(ARGS),tests " in recipe_of("test")
    for is_deep in (False, True):
        stack, stores = list_sessions(2, is_deep=is_deep).values()
        assert stack[-1] == "tests/e2e"
        assert stores[-4:] == ["--ignore", "tests/cluster", "--ignore", "tests/e2e"]
        for command in (stack, stores):
            assert command[command.index("-m", command.index("pytest")) + 1] == (
                "deep or sampled" if is_deep else "not deep"
            )


STARTED_BY_HAND = {
    "audit": "reads a running stack; tests/e2e runs `python -m local audit`",
    "bench": "figures need a quiet machine",
    "clean": "deletes the environments of the run itself",
    "deploy": "needs an account; tests run `sam deploy` up to the first call",
    "down": "tests/e2e ends its stacks by the same code",
    "events": "tests/e2e/test_events.py runs `python -m tools events`",
    "format": "`make lint` checks the result",
    "fresh": "tests/e2e/test_kept_data.py empties a stack by the same code",
    "help": "prints",
    "lighthouse": "figures need a quiet machine, and it installs 180 MB",
    "operate": "tests/e2e runs `python -m local operate`",
    "run": "stays up; tests/e2e/test_kept_data.py runs `python -m local up`",
    "smoke": "needs a deployed environment; tests/e2e/test_smoke.py runs it on a stack",
    "status": "prints a running stack",
    "test-clock": "the job any-day moves the clock of its runner instead",
    "test-unit": "a part of `make test`",
    **dict.fromkeys(
        ("generate", "web"),
        "writes files that policy tests compare with their sources",
    ),
}
"""Targets that no workflow runs, with the reason."""


def list_targets_of_workflows() -> set[str]:
    """Return the targets that ci.yml, nightly.yml, release.yml and dependencies.yml run, with their
    prerequisites."""
    called = {
        word
        for line in [
            *ci_commands(),
            *(line for file in WORKFLOWS for line in commands_of(file).splitlines()),
        ]
        for words in re.findall(r"\bmake ([^\n&|;$]+)", line)
        for word in targets_in(words)
    }
    for job in jobs_of(GITHUB / "workflows" / "nightly.yml").values():
        matrix = job.get("strategy", {}).get("matrix", {})
        included = (item["target"] for item in matrix.get("include", ()) if "target" in item)
        for words in (*matrix.get("target", ()), *included):
            called |= targets_in(words)
    for line in re.findall(r"^([a-z-]+: [^#\n]+)", MAKEFILE, re.MULTILINE):
        target, *needed = line.replace(":", "").split()
        if target in called:
            called.update(re.findall(r"(?<=\s)[a-z-]+(?=\s|$)", " ".join(["", *needed])))
    return called


def test_a_workflow_runs_each_target_or_a_reason_is_given() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    run = list_targets_of_workflows()
    assert {"test", "test-deep", "layer-size", "build", "check"} <= run
    assert targets - run == STARTED_BY_HAND.keys()


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
    file = GITHUB / "workflows" / "dependencies.yml"
    assert "make lock ARGS=--upgrade" in commands_of(file)
    assert re.search(r'cron: "\d+ \d+ \* \* 1"', file.read_text()), "each Monday"


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
