"""The template, the functions, the samples and the tests' queues agree with each declared queue."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from local.stack.queue_registry import load_queues
from tests.support.plaza import FakeQueues
from tests.unit.policy import template
from tests.unit.policy.modules import (
    FUNCTIONS,
    imports_of,
    module_file,
    product_files,
    queue_named,
    tree_of,
)
from tests.unit.policy.template import QUEUE, ROOT, EventSource, queue_name, resources

QUEUES = load_queues()
SOURCES = {queue_name(source.queue): source for source in template.event_sources()}

every_queue = pytest.mark.parametrize("name", sorted(QUEUES))


@every_queue
def test_the_function_of_a_queue_has_its_processor_with_its_consumer(name: str) -> None:
    app = app_of(SOURCES[name])
    match tree_of(app).body[-1]:
        case ast.Assign(
            targets=[ast.Name(id="handler")],
            value=ast.Call(
                func=ast.Attribute(
                    value=ast.Call(
                        func=ast.Attribute(value=ast.Name(id=constant), attr="processor"),
                        args=[ast.Name(id=handle)],
                    ),
                    attr="lambda_handler",
                )
            ),
        ):
            queue = queue_named(app, constant)
            assert queue is QUEUES[name]
            assert queue.handle.__name__ == handle
        case _:
            raise AssertionError(
                f"{app} has no `handler = QUEUE.processor(consumer).lambda_handler()`"
            )
    assert module_file(queue.handle.__module__) in loaded_by(app)


def test_every_queue_function_consumes_a_declared_queue() -> None:
    assert {app_of(source) for source in SOURCES.values()} == set(
        (FUNCTIONS / "queue").glob("*/app.py")
    )


@every_queue
def test_a_queue_has_samples_that_it_decodes(name: str) -> None:
    folder = template.folder_of(SOURCES[name].function).name
    files = [f for f in (ROOT / "events").glob(f"{folder}.*.json") if ".poison." not in f.name]
    records = [record for file in files for record in json.loads(file.read_text())["Records"]]
    assert [QUEUES[name].decode(record["body"]) for record in records]
    assert (ROOT / "events" / "messages" / f"{name}.jsonl").read_text()


def test_the_fake_queues_deliver_each_message_to_its_consumer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeQueues()
    given: dict[str, list[Any]] = {}
    for name, queue in QUEUES.items():
        monkeypatch.setattr(queue, "_handle", lambda batch, name=name: given.update({name: batch}))
        for body in bodies_of(name):
            fake.send(name, body)
    fake.drain()
    assert set(given) == set(QUEUES)
    for name, queue in QUEUES.items():
        assert [queue.encode(message) for message in given[name]] == bodies_of(name)


@pytest.mark.parametrize("file", product_files(), ids=lambda f: f"{f.parent.name}/{f.name}")
def test_a_producer_does_not_load_the_consumer_runtime(file: Path) -> None:
    for node in tree_of(file).body:
        if isinstance(node, ast.ImportFrom):
            names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            assert "plaza.infra.queues.processor" not in names


@every_queue
def test_a_message_waits_at_least_four_hours_and_less_than_half_its_retention(name: str) -> None:
    queue = QUEUES[name]
    retention_s = resources(QUEUE)[SOURCES[name].queue]["MessageRetentionPeriod"]
    assert 4 * 3_600 <= queue.retry.max_wait_s < retention_s / 2
    assert max(queue.retry.back_off_s) <= 900, "SQS limits delays to 900 s"


def bodies_of(name: str) -> list[str]:
    return (ROOT / "events" / "messages" / f"{name}.jsonl").read_text().splitlines()


def app_of(source: EventSource) -> Path:
    return template.folder_of(source.function) / "app.py"


def loaded_by(app: Path) -> set[Path]:
    """Return the files of Plaza that an import of ``app`` loads."""
    todo, visited = [app], set[Path]()
    while todo:
        file = todo.pop()
        if file in visited:
            continue
        visited.add(file)
        for imported in imports_of(file):
            if imported.module.partition(".")[0] != "plaza":
                continue
            parts = [*imported.module.split("."), imported.name]
            names = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
            todo += [path for name in names if (path := module_file(name)).exists()]
    return visited
