"""Each function has sample events, in the form in which AWS sends them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from plaza.auth import parse_bearer
from plaza.infra.queues.messages import InvalidMessage
from tests.support.queue_registry import load_queues
from tests.unit.policy import template
from tests.unit.policy.template import FUNCTION, ROOT, resources
from tools import samples
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
    operations: dict[str, Any] = json.loads(samples.CONTRACT.read_text())["paths"][path]
    return operations


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_sample_is_formatted(file: Path) -> None:
    assert file.read_text() == json.dumps(load(file), indent=2) + "\n"


@pytest.mark.parametrize("file", of_kind("api"), ids=lambda f: f.stem)
def test_a_request_has_the_form_of_the_gateway(file: Path) -> None:
    event, function = load(file), FOLDERS[file.name.partition(".")[0]]
    http = event["requestContext"]["http"]
    assert event["version"] == "2.0"
    assert event["routeKey"] == event["requestContext"]["routeKey"]
    assert event["rawPath"] == http["path"]
    assert all(name == name.lower() for name in event["headers"])
    method, _, path = event["routeKey"].partition(" ")
    if event["routeKey"] == "$default":
        assert function == "SystemApi"
        assert (http["method"], http["path"]) not in template.routes()
        return
    assert method == http["method"]
    assert template.routes()[method, path] == function
    assert event["isBase64Encoded"] is False
    if "authorization" in event["headers"]:
        assert parse_bearer(event["headers"]["authorization"]), "not in the form of a token"
    for name, value in event.get("pathParameters", {}).items():
        path = path.replace(f"{{{name}}}", value)
    assert path == http["path"]
    query = event.get("queryStringParameters", {})
    assert event["rawQueryString"] == "&".join(f"{name}={value}" for name, value in query.items())


@pytest.mark.parametrize("file", of_kind("queue"), ids=lambda f: f.stem)
def test_a_batch_has_the_form_of_sqs(file: Path) -> None:
    function = file.name.partition(".")[0]
    [source] = [s for s in template.event_sources() if s.function == FOLDERS[function]]
    records = load(file)["Records"]
    assert 0 < len(records) <= source.properties["BatchSize"]
    assert len({record["messageId"] for record in records}) == len(records)
    unreadable = 0
    for record in records:
        digest = hashlib.md5(record["body"].encode(), usedforsecurity=False).hexdigest()
        assert record["md5OfBody"] == digest
        assert record["receiptHandle"]
        assert int(record["attributes"]["ApproximateReceiveCount"]) >= 1
        queue = record["eventSourceARN"].rpartition("-")[2]
        assert queue == source.queue.removesuffix("Queue").lower()
        try:
            load_queues()[template.queue_name(source.queue)].decode(record["body"])
        except InvalidMessage:
            unreadable += 1
    assert unreadable == (".poison." in file.name)
