"""Each sample event, as ``make events`` writes it for the stack, gets its documented answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from cli.paths import ROOT
from deploy.parts import DeployError
from local.audit.audit import audit_when_quiet
from local.audit.backlog import shorten_visibility_timeout
from local.stack import aws, deployment
from local.stack.ports import free_port
from local.stack.stack import Stack
from local.stack.status import count_messages
from tests.e2e.client import wait_until
from tests.support.depth import choose
from tests.support.routes import check_documented
from tools import samples, shared_events
from tools.samples import LocalCallers

pytestmark = pytest.mark.quiet
# test_log_archive invokes it: later, rows of past days would stay in the partition of today.
ELSEWHERE = "maintain_log.schedule"
NAMES = [
    name
    for name in samples.list_samples()
    if name not in LocalCallers.unavailable and name != ELSEWHERE
]
# One of each function, or all.
SAMPLED = choose([next(of) for _, of in groupby(NAMES, samples.function_of)], NAMES)
ADMIN, ADA = 5_900_001, 5_900_002


def write_events(stack: Stack, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools", "events", "--dir", str(stack.directory), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def events(stack: Stack) -> Iterator[Path]:
    """The folder of the copies. After the tests their dead letters are deleted."""
    written = write_events(stack)
    assert written.returncode == 0, written.stderr
    # This DLQ has a consumer, which hides the message from a command meanwhile.
    with shorten_visibility_timeout(stack, "orders_dlq", visibility_timeout_s=2):
        yield stack.directory / "events"
        write_events(stack, "--clean")


def invoke(stack: Stack, file: Path) -> tuple[int, Any]:
    """Return (status, result) of the service that MiniStack's Lambda calls."""
    function = stack.deployed.functions[samples.function_of(file.stem)]
    return deployment.call_service(
        stack.lambda_url, "POST", f"/functions/{function}", file.read_text()
    )


@pytest.mark.sampled
@pytest.mark.parametrize("name", SAMPLED)
def test_a_copy_gets_the_documented_answer(stack: Stack, events: Path, name: str) -> None:
    file = events / f"{name}.json"
    if name.startswith("operations.replace_"):  # switches, which others have changed since
        write_events(stack)
    status, result = invoke(stack, file)
    assert status == 200, result
    event = json.loads(file.read_text())
    if "Records" in event:
        assert result == {"batchItemFailures": []}
    if "routeKey" in event:
        assert result["statusCode"] == samples.status_of(name), result["body"]
        check_documented(event["routeKey"], result)


@pytest.mark.deep
def test_invoked_samples_leave_clean_stores_and_dead_letters_that_are_known_by_their_mark(
    stack: Stack, events: Path
) -> None:
    """Given other dead letters, which are left."""

    def audit() -> dict[str, Any]:
        return audit_when_quiet(stack).to_json()

    def delete_all() -> bool:
        count, *words = write_events(stack, "--clean").stdout.split()
        assert words == ["dead", "letters", "deleted"]
        return count == "0" and not count_messages(stack)["orders_dlq"][1]

    wait_until("the dead letters of other tests are deleted", delete_all)
    before = audit()["dead"]
    poison = [name for name in NAMES if name.endswith(".poison")]
    for name in poison:
        assert invoke(stack, events / f"{name}.json")[0] == 200
    report = audit()
    assert (report["dead"], report["differences"]) == (before + len(poison), [])
    wait_until("the dead letters are deleted", delete_all)
    report = audit()
    assert (report["dead"], report["clean"]) == (before, not before)


def test_only_the_owner_can_read_the_tokens(events: Path) -> None:
    assert events.stat().st_mode & 0o077 == 0
    assert "plain_" not in "".join(file.read_text() for file in events.iterdir())


def test_an_environment_gets_copies_with_the_tokens_of_an_admin_and_a_user(
    stack: Stack, sign_in: Callable[..., str], tmp_path: Path
) -> None:
    tokens = sign_in(ADMIN, role="admin"), sign_in(ADA)
    callers = shared_events.RemoteCallers(stack.base_url, *tokens)
    written = samples.write(tmp_path, callers)
    assert {*written, *callers.unavailable} == set(samples.list_samples())
    for name in ("content.create_comment", "flash_sales.get_order", "shops.replace_shop"):
        _, result = invoke(stack, tmp_path / f"{name}.json")
        assert result["statusCode"] == samples.status_of(name), result["body"]


def test_dead_letters_of_samples_are_deleted_in_an_environment(
    stack: Stack, events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_events(stack, "--clean")
    for variable, value in {
        **aws.credentials(),
        "AWS_ENDPOINT_URL": stack.aws_endpoint_url,
    }.items():
        monkeypatch.setenv(variable, value)
    for name in ("drop_cached.poison", "save_reactions.poison"):
        assert invoke(stack, events / f"{name}.json")[0] == 200
    assert shared_events.clean(deployment.STACK_NAME, stack.region) == 2
    assert shared_events.clean(deployment.STACK_NAME, stack.region) == 0


def test_sam_puts_a_copy_as_a_shareable_test_event(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Up to the first call: no server listens at the endpoint of AWS."""
    endpoint = f"http://127.0.0.1:{free_port()}"
    for variable, value in {
        **aws.credentials(),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(variable, value)
    file = samples.EVENTS / "reactions.like_post.json"
    with pytest.raises(DeployError, match=r"reactions\.like_post was not put"):
        shared_events.put("reactions.like_post", file, "staging", "eu-central-1")
    assert f'Could not connect to the endpoint URL: "{endpoint}' in capfd.readouterr().err
