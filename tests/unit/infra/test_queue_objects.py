"""Queue objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from local.stack.functions import CONTEXT
from plaza.infra.queues import queue
from plaza.infra.queues.messages import MessageCodec
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.retries import RetryPolicy
from plaza.infra.runtime import codec
from tests.unit.infra.test_queues import FakeSqs, batch_of, failures, read
from tests.unit.infra.test_queues import sqs as sqs


@pytest.fixture
def work(sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch) -> Queue[str]:
    monkeypatch.setattr(codec, "_declared", {})
    monkeypatch.setattr(queue, "_declared", {})
    return Queue(MessageCodec("work", str.upper, read), retry=RetryPolicy(max_attempts=1))


def test_messages_are_sent_encoded_to_the_queue_of_that_name(
    work: Queue[str], sqs: FakeSqs
) -> None:
    work.send("a", delay_s=3)
    assert work.send_all(letter for letter in "bc") == 2
    assert [(m["QueueUrl"], m["MessageBody"], m["DelaySeconds"]) for m in sqs.sent] == [
        ("https://sqs/work", "A", 3),
        ("https://sqs/work", "B", 0),
        ("https://sqs/work", "C", 0),
    ]


def test_backlog_and_unfinished_messages_are_counted(
    work: Queue[str], sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("", "NotVisible", "Delayed")
    depths = {f"ApproximateNumberOfMessages{name}": str(n) for n, name in enumerate(names, 1)}
    monkeypatch.setattr(sqs, "get_queue_attributes", lambda **_: {"Attributes": depths})
    assert work.count_backlog() == 1
    assert work.count_unfinished() == 6


def process(queue: Queue[str], event: dict[str, Any]) -> PartialItemFailureResponse:
    handler = queue.processor(queue.handle).lambda_handler()
    return handler(event, cast("LambdaContext", CONTEXT))


def test_the_lines_of_a_consumer_have_the_context_of_its_function(
    work: Queue[str], capsys: pytest.CaptureFixture[str]
) -> None:
    work.consumer(lambda batch: None)
    process(work, batch_of("a"))
    [line] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert line["event"] == "batch_consumed"
    assert line["function_request_id"] == CONTEXT.aws_request_id


def test_the_processor_decodes_a_batch_and_applies_the_retry_policy(
    work: Queue[str], sqs: FakeSqs
) -> None:
    taken: list[str] = []

    @work.consumer
    def take(batch: Sequence[str]) -> None:
        taken.extend(batch)
        if "poison" in batch:
            raise ValueError("a poison message")

    assert work.handle is take
    assert failures(process(work, batch_of("a", "unreadable"))) == []
    assert taken == ["a"]
    assert failures(process(work, batch_of("poison"))) == []
    assert [m["MessageBody"] for m in sqs.sent] == ["unreadable", "poison"]
    assert {m["QueueUrl"] for m in sqs.sent} == {"https://sqs/work-dlq"}


def test_a_queue_without_a_loaded_consumer_raises(work: Queue[str]) -> None:
    with pytest.raises(LookupError, match="consumer of queue work is not loaded"):
        _ = work.handle


def test_a_queue_has_one_declaration_and_one_consumer(work: Queue[str]) -> None:
    with pytest.raises(ValueError, match="declared twice"):
        Queue(MessageCodec("work", str, str))
    work.consumer(lambda _: None)
    with pytest.raises(ValueError, match="two consumers"):
        work.consumer(lambda _: None)
    assert list(queue.declared()) == ["work"]
