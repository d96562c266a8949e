"""The consumer runtime and the client of SQS, with an SQS in this process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.stack.deployment import list_queues
from plaza.infra.aws.aws_json import AwsJsonClient
from plaza.infra.queues import dead_letters
from plaza.infra.queues import sqs as sqs_client
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.queues.queue import QueueDown
from plaza.infra.queues.retries import RetryPolicy
from plaza.infra.runtime import settings
from plaza.infra.runtime.errors import Unavailable
from tests.support.batches import consume
from tests.support.failures import failing


class Sqs:
    """A queue with its DLQ, and the calls that Lambda makes for a consumer."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.dlq = client.create_queue(QueueName="work_dlq")["QueueUrl"]
        arn = client.get_queue_attributes(QueueUrl=self.dlq, AttributeNames=["QueueArn"])
        policy = {
            "deadLetterTargetArn": arn["Attributes"]["QueueArn"],
            "maxReceiveCount": RetryPolicy().max_receives,
        }
        self.work = client.create_queue(
            QueueName="work",
            Attributes={"RedrivePolicy": json.dumps(policy), "VisibilityTimeout": "181"},
        )["QueueUrl"]

    def receive(self, url: str | None = None) -> list[dict[str, Any]]:
        """Receive visible messages as records of Lambda."""
        reply = self.client.receive_message(
            QueueUrl=url or self.work,
            MaxNumberOfMessages=10,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
            WaitTimeSeconds=0,
        )
        return [
            {
                "messageId": m["MessageId"],
                "receiptHandle": m["ReceiptHandle"],
                "body": m["Body"],
                "attributes": m["Attributes"],
                "messageAttributes": {
                    name: {"dataType": part["DataType"], "stringValue": part["StringValue"]}
                    for name, part in m.get("MessageAttributes", {}).items()
                },
            }
            for m in reply.get("Messages", [])
        ]

    def delete(self, records: list[dict[str, Any]]) -> None:
        for record in records:
            self.client.delete_message(QueueUrl=self.work, ReceiptHandle=record["receiptHandle"])

    def let_time_pass(self, records: list[dict[str, Any]]) -> None:
        """Make messages visible, as after their visibility timeout."""
        for record in records:
            self.client.change_message_visibility(
                QueueUrl=self.work, ReceiptHandle=record["receiptHandle"], VisibilityTimeout=0
            )


@pytest.fixture
def sqs(moto_sqs: Any, monkeypatch: pytest.MonkeyPatch) -> Sqs:
    result = Sqs(moto_sqs)
    for name, value in list_queues({"work": result.work, "work_dlq": result.dlq}).items():
        monkeypatch.setenv(name, value)
    settings.settings.cache_clear()
    return result


def read(body: str) -> str:
    if body == "unreadable":
        raise InvalidMessage("unreadable body")
    return body


fail_by_outage = failing(Unavailable("the store is down"))


def attributes_of(record: dict[str, Any]) -> dict[str, str]:
    return {name: part["stringValue"] for name, part in record["messageAttributes"].items()}


def test_sent_messages_are_received_and_counted(sqs: Sqs) -> None:
    sqs_client.send("work", "a")
    assert sqs_client.send_all("work", [f"b{n}" for n in range(12)]) == 12
    assert sqs_client.measure("work").backlog == 13
    bodies = [r["body"] for r in sqs.receive()] + [r["body"] for r in sqs.receive()]
    assert sorted(bodies) == sorted(["a", *(f"b{n}" for n in range(12))])


def test_a_failed_batch_is_hidden_and_then_sent_again(
    sqs: Sqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden_s: list[int] = []
    delayed_s: list[int] = []
    post = AwsJsonClient.post

    def send_now(sender: AwsJsonClient, action: str, parameters: Any) -> Any:
        for entry in parameters.get("Entries", []):
            if action == "ChangeMessageVisibilityBatch":
                hidden_s.append(entry["VisibilityTimeout"])
            else:
                delayed_s.append(entry.pop("DelaySeconds", 0))
        return post(sender, action, parameters)

    sqs_client.send_all("work", ["a", "b"])
    monkeypatch.setattr(AwsJsonClient, "post", send_now)
    first = sqs.receive()
    records = first
    for receives in range(1, 6):
        assert {r["attributes"]["ApproximateReceiveCount"] for r in records} == {str(receives)}
        response = consume({"Records": records}, "work", read, fail_by_outage)
        assert len(response["batchItemFailures"]) == (2 if receives < 5 else 0)
        if receives < 5:
            assert sqs.receive() == [], "hidden"
            sqs.let_time_pass(records)
            records = sqs.receive()
    sqs.delete(records)
    assert (hidden_s, delayed_s) == ([5, 5, 30, 30, 120, 120, 600, 600], [600, 600])
    records = sqs.receive()
    assert sorted(r["body"] for r in records) == ["a", "b"]
    for record in records:
        [before] = [r for r in first if r["body"] == record["body"]]
        assert attributes_of(record) == {
            "first_sent_ms": before["attributes"]["SentTimestamp"],
            "waiting_since_ms": before["attributes"]["ApproximateFirstReceiveTimestamp"],
            "message_id": before["messageId"],
        }
        assert record["attributes"]["ApproximateReceiveCount"] == "1"
    assert sqs.receive(sqs.dlq) == []


def test_a_message_that_crashes_its_consumers_goes_to_the_dlq(sqs: Sqs) -> None:
    """Given consumers that crash, their message is received ten times at most."""
    sqs_client.send("work", "a")
    receives = 0
    while records := sqs.receive():
        receives += 1
        sqs.let_time_pass(records)
    assert receives == RetryPolicy().max_receives
    assert [r["body"] for r in sqs.receive(sqs.dlq)] == ["a"]


def test_a_redriven_message_has_no_attempts_and_keeps_its_first_sent_time(sqs: Sqs) -> None:
    sqs_client.send("work", "a")
    records = sqs.receive()
    sent_ms = records[0]["attributes"]["SentTimestamp"]
    once = RetryPolicy(max_attempts=1)
    assert consume(
        {"Records": records}, "work", read, failing(ValueError("a poison message")), once
    ) == {"batchItemFailures": []}
    sqs.delete(records)
    [dead] = sqs_client.receive("work_dlq", 30)
    assert dead.attributes["attempts"] == "1"
    dead_letters.redrive("work", [dead])
    [back] = sqs.receive()
    assert attributes_of(back) == {"first_sent_ms": sent_ms}


def test_an_invalid_message_is_in_the_dlq_with_its_cause(sqs: Sqs) -> None:
    sqs_client.send_all("work", ["a", "unreadable"])
    records = sqs.receive()
    saved: list[str] = []
    assert consume({"Records": records}, "work", read, saved.extend) == {"batchItemFailures": []}
    sqs.delete(records)
    assert saved == ["a"]
    [dead] = sqs.receive(sqs.dlq)
    assert dead["body"] == "unreadable"
    [original] = [r for r in records if r["body"] == "unreadable"]
    assert attributes_of(dead) == {
        "cause": "unreadable body",
        "message_id": original["messageId"],
        "first_sent_ms": original["attributes"]["SentTimestamp"],
    }


def test_a_too_large_message_is_queue_down(sqs: Sqs) -> None:
    with pytest.raises(QueueDown):
        sqs_client.send("work", "x" * (2 * 1024 * 1024))


def test_a_missing_queue_is_queue_down(sqs: Sqs) -> None:
    sqs.client.delete_queue(QueueUrl=sqs.work)
    with pytest.raises(QueueDown):
        sqs_client.send("work", "a")
    with pytest.raises(QueueDown):
        sqs_client.measure("work")
