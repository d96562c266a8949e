"""Each function has sample events, in the form in which AWS sends them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.paths import CONTRACT
from local.stack.queue_registry import load_queues
from plaza.infra.queues.messages import InvalidMessage
from tests.unit.policy import template
from tests.unit.policy.template import FUNCTION, ROOT, resources
from tools import envelopes, samples
from tools.samples import SAMPLES, LocalCallers
from tools.shared_events import RemoteCallers

EVENTS = ROOT / "events"
FILES = sorted(EVENTS.glob("*.json"))
FOLDERS = {template.folder_of(name).name: name for name in resources(FUNCTION)}


def load(file: Path) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(file.read_text())
    return event


def of_kind(kind: str) -> list[Path]:
    folders = {f for f, name in FOLDERS.items() if template.folder_of(name).parent.name == kind}
    return [file for file in FILES if file.name.partition(".")[0] in folders]


def test_functions_and_samples_match() -> None:
    assert {file.name.partition(".")[0] for file in FILES} == set(FOLDERS)
    assert all(len(file.name.split(".")) == 3 for file in FILES), "<function>.<case>.json"
    assert set(EVENTS.iterdir()) == {
        *FILES,
        EVENTS / "messages",
        EVENTS / "projections",
        EVENTS / "README.md",
        envelopes.DECLARED,
    }


def test_the_table_of_copies_is_about_samples() -> None:
    assert samples.list_samples() == [file.stem for file in FILES]
    assert {*SAMPLES, *LocalCallers.unavailable, *RemoteCallers.unavailable} <= {
        file.stem for file in FILES
    }
    for folder, function in FOLDERS.items():
        assert samples.function_of(f"{folder}.case") == function


@pytest.mark.parametrize("file", of_kind("api"), ids=lambda f: f.stem)
def test_the_contract_has_the_status_of_a_copy(file: Path) -> None:
    method, _, path = load(file)["routeKey"].partition(" ")
    if method != "$default":
        assert str(samples.status_of(file.stem)) in operations_of(path)[method.lower()]["responses"]


def operations_of(path: str) -> dict[str, Any]:
    operations: dict[str, Any] = json.loads(CONTRACT.read_text())["paths"][path]
    return operations


def test_the_samples_are_up_to_date() -> None:
    files = envelopes.make_files()
    assert {file: file.read_text() for file in FILES} == files, "`make generate` writes them"


@pytest.mark.parametrize("file", of_kind("api"), ids=lambda f: f.stem)
def test_a_request_is_named_after_its_operation(file: Path) -> None:
    event, operation = load(file), envelopes.find_operation(file.stem)
    if operation is None:
        assert event["routeKey"] == "$default"
        http = event["requestContext"]["http"]
        assert (http["method"], http["path"]) not in template.routes()
    else:
        assert event["routeKey"] == f"{operation.method} {operation.path}"
        assert FOLDERS[file.name.partition(".")[0]] == operation.function


@pytest.mark.parametrize("file", of_kind("queue"), ids=lambda f: f.stem)
def test_the_queue_of_a_batch_reads_all_but_poison(file: Path) -> None:
    function = file.name.partition(".")[0]
    [source] = [s for s in template.event_sources() if s.function == FOLDERS[function]]
    records = load(file)["Records"]
    assert 0 < len(records) <= source.properties["BatchSize"]
    unreadable = 0
    for record in records:
        try:
            load_queues()[template.queue_name(source.queue)].decode(record["body"])
        except InvalidMessage:
            unreadable += 1
    assert unreadable == (".poison." in file.name)
