"""Queue objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from local.stack.functions import CONTEXT
from plaza.infra.queues import queue
from plaza.infra.queues.messages import MessageCodec
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.retries import RetryPolicy, at_step
from plaza.infra.runtime import codec
from plaza.infra.runtime.errors import Unavailable
from tests.support.logs import read_log
from tests.unit.infra.test_queues import (
    UNREACHABLE,
    FakeSqs,
    attributes_of,
    batch_of,
    failures,
    read,
)
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
    [line] = read_log(capsys)
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
    assert {m["QueueUrl"] for m in sqs.sent} == {"https://sqs/work_dlq"}


class Saver:
    """A consumer that saves, then acknowledges, unless Redis is down."""

    def __init__(self, work: Queue[str]) -> None:
        self.saved: list[list[str]] = []
        self.acknowledged: list[list[str]] = []
        self.is_down = True
        work.consumer(self.save)
        work.resumes_at("acknowledge")(self.acknowledge)

    def save(self, batch: Sequence[str]) -> None:
        self.saved.append([*batch])
        self.acknowledge(batch)

    def acknowledge(self, batch: Sequence[str]) -> None:
        with at_step("acknowledge"):
            if self.is_down:
                raise Unavailable("Redis is down")
            if "poison" in batch:
                raise ValueError("a poison message")
        self.acknowledged.append([*batch])


def resent(sqs: FakeSqs, receives: int = 1) -> dict[str, Any]:
    """Return the messages that were sent again, as Lambda receives them."""
    batch = batch_of(*(message["MessageBody"] for message in sqs.sent), receives=receives)
    for item, message in zip(batch["Records"], sqs.sent, strict=True):
        item["messageAttributes"] = {
            name: {"dataType": "String", "stringValue": value}
            for name, value in attributes_of(message).items()
        }
    sqs.sent.clear()
    return batch


def test_a_batch_resumes_at_the_step_that_failed(work: Queue[str], sqs: FakeSqs) -> None:
    saver = Saver(work)
    assert failures(process(work, batch_of("a", "b", receives=3))) == []
    assert {(m["QueueUrl"], m["DelaySeconds"]) for m in sqs.sent} == {("https://sqs/work", 5)}
    assert [attributes_of(m)["step"] for m in sqs.sent] == ["acknowledge"] * 2
    again = resent(sqs)
    assert failures(process(work, again)) == ["id-0", "id-1"], "hidden, not sent again"
    assert (sqs.hidden, sqs.sent) == ({"handle-0": 5, "handle-1": 5}, [])
    saver.is_down = False
    again["Records"] += batch_of("c")["Records"]
    assert failures(process(work, again)) == []
    assert sorted(saver.saved) == [["a", "b"], ["c"]]
    assert sorted(saver.acknowledged) == [["a", "b"], ["c"]]


def test_a_message_waits_for_a_step_as_long_as_for_the_first_one(
    work: Queue[str], sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a message that waited for twelve hours to be saved, and Redis down since."""
    now_s, hour_ms = 1_000_000, 3_600_000
    monkeypatch.setattr("plaza.infra.runtime.clock.now_us", lambda: now_s * 10**6)
    Saver(work)
    batch = batch_of("a", receives=2)
    waiting_since_ms = now_s * 1_000 - 13 * hour_ms
    batch["Records"][0]["messageAttributes"] = {
        "waiting_since_ms": {"dataType": "String", "stringValue": str(waiting_since_ms)}
    }
    process(work, batch)
    assert "waiting_since_ms" not in attributes_of(sqs.sent[0])
    process(work, resent(sqs, receives=5))
    assert attributes_of(sqs.sent[0])["waiting_since_ms"] == str(now_s * 1_000)
    assert attributes_of(sqs.sent[0])["step"] == "acknowledge"
    last, now_s = resent(sqs), now_s + 12 * 3_600
    process(work, last)
    assert sqs.sent[0]["QueueUrl"] == "https://sqs/work_dlq"


def test_a_poison_message_of_a_step_is_isolated_there(work: Queue[str], sqs: FakeSqs) -> None:
    saver = Saver(work)
    process(work, batch_of("a", "poison", "b"))
    saver.is_down = False
    assert failures(process(work, resent(sqs))) == []
    assert sorted(saver.acknowledged) == [["a"], ["b"]]
    assert saver.saved == [["a", "poison", "b"]]
    assert [(m["QueueUrl"], m["MessageBody"]) for m in sqs.sent] == [
        ("https://sqs/work_dlq", "poison")
    ]


def test_a_step_of_another_version_begins_at_the_first_one(work: Queue[str], sqs: FakeSqs) -> None:
    saver = Saver(work)
    process(work, batch_of("a"))
    batch = resent(sqs)
    batch["Records"][0]["messageAttributes"]["step"]["stringValue"] = "announce"
    saver.is_down = False
    process(work, batch)
    assert (saver.saved, saver.acknowledged) == ([["a"], ["a"]], [["a"]])


def test_a_batch_that_cannot_be_sent_again_is_handled_from_its_first_step(
    work: Queue[str], sqs: FakeSqs
) -> None:
    Saver(work)
    sqs.fails_with = UNREACHABLE
    assert failures(process(work, batch_of("a"))) == ["id-0"]


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
