"""Depths of queues, dead letters and redrives, with the real client on an SQS in this process."""

from __future__ import annotations

import json
import socket
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from local.stack.deployment import list_queues
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS
from plaza.infra.aws.aws_json import AwsJsonClient
from plaza.infra.queues import sqs as sqs_client
from plaza.infra.queues.queue import QueueDown
from plaza.infra.queues.retries import FIRST_SENT
from plaza.infra.runtime import settings
from plaza.infra.runtime.process import clear_caches, reset_process
from plaza.operate.operations import DlqHasConsumer, queue_admin
from tests.support.batches import consume
from tests.support.functions import authorization, event, handler
from tests.support.logs import read_log
from tests.support.plaza import World

EVENT = REACTIONS.encode(ReactionEvent(ReactionKey("post", 11, "like", 7), True, 5))


class Sqs:
    """Queues ``reactions`` and ``orders`` with their DLQs; the DLQ of orders has one, too."""

    def __init__(self, client: Any) -> None:
        self.client = client
        names = ("reactions", "reactions_dlq", "orders", "orders_dlq", "orders_dlq_dlq")
        self.urls = {name: client.create_queue(QueueName=name)["QueueUrl"] for name in names}

    def put(self, queue: str, body: str, **attributes: str) -> str:
        typed = {k: {"DataType": "String", "StringValue": v} for k, v in attributes.items()}
        sent = self.client.send_message(
            QueueUrl=self.urls[queue], MessageBody=body, MessageAttributes=typed
        )
        return str(sent["MessageId"])

    def take(self, queue: str) -> list[dict[str, Any]]:
        received: list[dict[str, Any]] = []
        while result := self.client.receive_message(
            QueueUrl=self.urls[queue],
            MaxNumberOfMessages=10,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        ).get("Messages"):
            received += result
        return received


@pytest.fixture
def sqs(moto_sqs: Any, monkeypatch: pytest.MonkeyPatch) -> Sqs:
    result = Sqs(moto_sqs)
    for name, value in list_queues(result.urls).items():
        monkeypatch.setenv(name, value)
    settings.settings.cache_clear()
    receive = sqs_client.receive
    monkeypatch.setattr(
        sqs_client, "receive", lambda queue, visibility_s: receive(queue, visibility_s, wait_s=0)
    )
    return result


# ---------------------------------------------------------------- queues and dead letters


def test_queues_report_their_depths_and_dead_letters(sqs: Sqs) -> None:
    for _ in range(3):
        sqs.put("reactions", EVENT)
    sqs.put("reactions_dlq", EVENT)
    sqs.client.send_message(QueueUrl=sqs.urls["orders"], MessageBody="{}", DelaySeconds=60)
    sqs.client.receive_message(QueueUrl=sqs.urls["reactions"], MaxNumberOfMessages=1)
    results = {state.name: state for state in queue_admin.read_queues()}
    assert list(results) == ["orders", "orders_dlq", "reactions"]
    assert results["reactions"][1:] == (2, 1, 0, None, 1)
    assert results["orders"][1:] == (0, 0, 1, None, 0)


def test_operators_who_read_queues_at_once_cost_a_call_for_each_queue(sqs: Sqs) -> None:
    """Given GET /ops/queues and GET /ops/lag within a second: two calls a queue each before."""
    measured: list[str] = []
    events = sqs.client.meta.events
    events.register(
        "provide-client-params.sqs.GetQueueAttributes",
        lambda params, **_: measured.append(params["QueueUrl"]),
    )
    first, second = queue_admin.read_queues(), queue_admin.read_queues()
    assert first == second
    assert sorted(measured) == sorted(sqs.urls.values())
    clear_caches()
    sqs.put("reactions", EVENT)
    assert [queue.backlog for queue in queue_admin.read_queues()] == [0, 0, 1]


def test_an_sqs_that_does_not_answer_is_reported_within_the_limit_of_a_request(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the queues of ``plaza``
    names = [f"{name}{suffix}" for name in "abcdefgh" for suffix in ("", "_dlq")]
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", url)
        for name, value in list_queues({name: f"{url}/{name}" for name in names}).items():
            monkeypatch.setenv(name, value)
        reset_process()
        assert queue_admin.read_oldest_ages(["a"]) == {}  # loads the client
        began_s = time.monotonic()
        assert queue_admin.read_oldest_ages(["a"]) == {}
        with pytest.raises(QueueDown):
            queue_admin.read_queues()
        assert time.monotonic() - began_s < 3  # a request has 10
    reset_process()


def test_the_oldest_age_is_the_newest_value_of_cloudwatch(sqs: Sqs) -> None:
    import boto3

    for age_s, ago_s in ((70.0, 120), (95.0, 10)):
        boto3.client("cloudwatch").put_metric_data(
            Namespace="AWS/SQS",
            MetricData=[
                {
                    "MetricName": "ApproximateAgeOfOldestMessage",
                    "Dimensions": [{"Name": "QueueName", "Value": "reactions"}],
                    "Timestamp": datetime.fromtimestamp(time.time() - ago_s, UTC),
                    "Value": age_s,
                }
            ],
        )
    assert queue_admin.read_oldest_ages(["orders", "reactions"]) == {"reactions": 95.0}


def test_listed_dead_letters_stay_in_the_dlq(sqs: Sqs, capsys: pytest.CaptureFixture[str]) -> None:
    ids = {sqs.put("reactions_dlq", EVENT, cause="no event", request_id=f"r{n}") for n in range(12)}
    for _ in range(3):  # each call releases the messages for the next one
        letters = queue_admin.list_dead_letters("reactions", 100, operator_id="1")
        assert {letter.id for letter in letters} == ids
    assert letters[0].body == json.loads(EVENT)
    assert letters[0].cause == "no event"
    assert {letter.request_id for letter in letters} == {f"r{n}" for n in range(12)}
    assert letters[0].receives == 3
    assert len(queue_admin.list_dead_letters("reactions", 5, operator_id="1")) == 5
    assert len(sqs.take("reactions_dlq")) == 12
    assert [line["operator_id"] for line in read_log(capsys, "dead_letters_listed")] == ["1"] * 4


def test_a_dlq_with_a_consumer_is_neither_listed_nor_redriven(sqs: Sqs) -> None:
    sqs.put("orders_dlq", "{}")
    with pytest.raises(DlqHasConsumer):
        queue_admin.list_dead_letters("orders", 10, operator_id="1")
    with pytest.raises(DlqHasConsumer):
        queue_admin.redrive("orders", operator_id="1")
    [untouched] = sqs.take("orders_dlq")
    assert untouched["Attributes"]["ApproximateReceiveCount"] == "1"
    sqs.put("orders_dlq_dlq", "{}")
    assert queue_admin.redrive("orders_dlq", operator_id="1").moved == 1
    assert len(sqs.take("orders_dlq")) == 1


# ---------------------------------------------------------------- redrives


def test_a_redrive_moves_all_messages_with_request_id_and_without_cause(
    sqs: Sqs, capsys: pytest.CaptureFixture[str]
) -> None:
    for n in range(23):
        sqs.put("reactions_dlq", f"{n}", cause="no event", message_id="m", request_id=f"r{n}")
    result = queue_admin.redrive("reactions", operator_id="9")
    assert (result.moved, result.remaining, result.backlog_too_long) == (23, 0, False)
    back = sqs.take("reactions")
    assert sorted(int(m["Body"]) for m in back) == list(range(23))
    for message in back:
        assert set(message["MessageAttributes"]) == {"request_id", FIRST_SENT}
        assert message["MessageAttributes"]["request_id"]["StringValue"] == f"r{message['Body']}"
    [line] = read_log(capsys, "messages_redriven")
    assert (line["operator_id"], line["queue"], line["redriven"]) == ("9", "reactions", 23)
    again = queue_admin.redrive("reactions", operator_id="9")
    assert (again.moved, again.remaining) == (0, 0)


def test_a_provisional_event_keeps_its_version_to_a_dlq_and_back(sqs: Sqs) -> None:
    """Its version is the time at which the first queue received it, not the time of a move."""
    sqs_client.send(
        "reactions",
        REACTIONS.encode(ReactionEvent(ReactionKey("post", 11, "like", 7), True, None)),
    )
    [message] = sqs.client.receive_message(
        QueueUrl=sqs.urls["reactions"], AttributeNames=["All"], VisibilityTimeout=0
    )["Messages"]
    sent_ms = int(message["Attributes"]["SentTimestamp"])
    for source, target in (("reactions", "reactions_dlq"), ("reactions_dlq", "reactions")) * 2:
        time.sleep(0.002)  # SQS counts in milliseconds
        [received] = sqs_client.receive(source, 30)
        assert received.sent_ms >= sent_ms
        assert sqs_client.move(source, target, [received]) == [received]
    [back] = sqs.take("reactions")
    assert int(back["Attributes"]["SentTimestamp"]) > sent_ms
    assert effective_version_us(back) == sent_ms * 1000 + 999


def effective_version_us(message: dict[str, Any]) -> int:
    """Return the version that the consumer of reactions gives to the event in ``message``."""
    reaction_events: list[ReactionEvent] = []
    record = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"] | {"ApproximateReceiveCount": "1"},
        "messageAttributes": {
            name: {"stringValue": value["StringValue"]}
            for name, value in message.get("MessageAttributes", {}).items()
        },
    }
    consume({"Records": [record]}, "reactions", REACTIONS.decode, reaction_events.extend)
    return reaction_events[0].effective_version_us


def test_a_redrive_moves_up_to_its_limit(sqs: Sqs) -> None:
    for n in range(30):
        sqs.put("reactions_dlq", f"{n}")
    result = queue_admin.redrive("reactions", operator_id="9", limit=12)
    assert (result.moved, result.remaining) == (12, 18)
    assert len(sqs.take("reactions")) == 12
    assert len(sqs.take("reactions_dlq")) == 18, "none is hidden"


def test_a_redrive_by_id_moves_the_chosen_and_reports_the_missing(sqs: Sqs) -> None:
    ids = [sqs.put("reactions_dlq", f"{n}") for n in range(25)]
    result = queue_admin.redrive("reactions", operator_id="9", ids=[ids[3], ids[24], "never-was"])
    assert (result.moved, result.missing) == (2, ("never-was",))
    assert sorted(m["Body"] for m in sqs.take("reactions")) == ["24", "3"]
    assert len(sqs.take("reactions_dlq")) == 23, "none is hidden"


def test_a_purge_deletes_the_chosen_and_reports_the_missing(
    sqs: Sqs, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [sqs.put("reactions_dlq", f"{n}") for n in range(25)]
    result = queue_admin.purge("reactions", "9", [ids[3], ids[24], "never-was"])
    assert (result.purged, result.remaining, result.missing) == (2, 23, ("never-was",))
    left = {m["Body"] for m in sqs.take("reactions_dlq")}
    assert left == {str(n) for n in range(25)} - {"3", "24"}, "none is hidden"
    assert sqs.take("reactions") == []
    [line] = read_log(capsys, "messages_purged")
    assert (line["operator_id"], line["purged"]) == ("9", 2)
    assert sorted(line["ids"]) == sorted([ids[3], ids[24]])
    with pytest.raises(DlqHasConsumer):
        queue_admin.purge("orders", "9", ["a"])


def test_a_redrive_by_id_stops_after_the_messages_of_one_call(
    sqs: Sqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(30):
        sqs.put("reactions_dlq", f"{n}")
    monkeypatch.setattr(queue_admin, "MAX_PER_CALL", 10)
    result = queue_admin.redrive("reactions", operator_id="9", ids=["never-was"])
    assert (result.moved, result.missing, result.remaining) == (0, ("never-was",), 30)
    received = [m["Attributes"]["ApproximateReceiveCount"] for m in sqs.take("reactions_dlq")]
    assert sorted(received) == ["1"] * 20 + ["2"] * 10


def test_a_crash_between_sending_and_deleting_leaves_a_duplicate(
    sqs: Sqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs.put("reactions_dlq", "a")

    post = AwsJsonClient.post

    def die(sender: AwsJsonClient, action: str, parameters: Any) -> Any:
        if action == "DeleteMessageBatch":
            raise KeyboardInterrupt
        return post(sender, action, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(AwsJsonClient, "post", die)
        with pytest.raises(KeyboardInterrupt):
            queue_admin.redrive("reactions", operator_id="9")
    assert [m["Body"] for m in sqs.take("reactions")] == ["a"]
    assert sum(sqs_client.measure("reactions_dlq")) == 1


def test_a_message_that_sqs_refuses_stays_in_the_dlq(
    sqs: Sqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        sqs.put("reactions_dlq", f"{n}")
    post = AwsJsonClient.post

    def refuse_one(sender: AwsJsonClient, action: str, parameters: Any) -> Any:
        if action == "SendMessageBatch":
            kept = [e for e in parameters["Entries"] if e["MessageBody"] != "2"]
            parameters = {**parameters, "Entries": kept}
        return post(sender, action, parameters)

    monkeypatch.setattr(AwsJsonClient, "post", refuse_one)
    result = queue_admin.redrive("reactions", operator_id="9")
    assert (result.moved, result.remaining) == (3, 1)
    assert [m["Body"] for m in sqs.take("reactions_dlq")] == ["2"]


def test_a_redrive_that_sqs_interrupts_logs_what_was_moved(
    sqs: Sqs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for n in range(25):
        sqs.put("reactions_dlq", f"{n}")
    move, calls = sqs_client.move, []

    def fail_later(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) > 1:
            raise QueueDown("SQS is unavailable (set by a test)")
        return move(*args, **options)

    monkeypatch.setattr(sqs_client, "move", fail_later)
    with pytest.raises(QueueDown):
        queue_admin.redrive("reactions", operator_id="9")
    [line] = read_log(capsys, "messages_redriven")
    assert line["redriven"] == len(sqs.take("reactions")) == 10
    assert sum(sqs_client.measure("reactions_dlq")) == 15


def test_a_message_dead_lettered_during_a_redrive_is_not_moved_again(
    sqs: Sqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreadable message is dead-lettered again at once; the call must not loop."""
    sqs.put("reactions_dlq", "poison")
    move, sent = sqs_client.move, []

    def dead_letter_at_once(source: str, target: str, received: Any, **options: Any) -> Any:
        sent.extend(move(source, target, received, **options))
        time.sleep(0.01)  # SQS counts in milliseconds
        sqs.put("reactions_dlq", "poison", cause="no event")
        return received

    monkeypatch.setattr(sqs_client, "move", dead_letter_at_once)
    assert queue_admin.redrive("reactions", operator_id="9").moved == 1
    assert len(sent) == 1


def test_a_queue_with_a_long_backlog_is_not_redriven(
    sqs: Sqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs.put("reactions", "a")
    sqs.put("reactions_dlq", "b")
    monkeypatch.setattr(queue_admin, "_MAX_BACKLOG", 0)
    result = queue_admin.redrive("reactions", operator_id="9", ids=["x"])
    assert (result.moved, result.remaining, result.missing, result.backlog_too_long) == (
        0,
        1,
        ("x",),
        True,
    )
    assert len(sqs.take("reactions_dlq")) == 1


def test_a_redrive_is_throttled(sqs: Sqs, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(30):
        sqs.put("reactions_dlq", f"{n}")
    monkeypatch.setattr(queue_admin, "MAX_MESSAGES_PER_S", 40)
    began_s = time.monotonic()
    assert queue_admin.redrive("reactions", operator_id="9").moved == 30
    assert time.monotonic() - began_s >= 30 / 40


def test_large_messages_are_split_into_calls_that_sqs_accepts(sqs: Sqs) -> None:
    for n in range(6):
        sqs.put("reactions_dlq", str(n) * 120_000)
    assert queue_admin.redrive("reactions", operator_id="9").moved == 6


# ---------------------------------------------------------------- the routes


def call(name: str, **changes: Any) -> tuple[int, Any]:
    response = handler("api/operations")(event(f"operations.{name}") | changes, None)
    return response["statusCode"], json.loads(response["body"])


def test_admins_may_list_queues_and_users_may_not(sqs: Sqs) -> None:
    status, page = call("list_queues")
    assert (status, page["next"]) == (200, None)
    assert [item["name"] for item in page["items"]] == ["orders", "orders_dlq", "reactions"]
    assert call("list_queues_as_user")[0] == 403


@pytest.mark.parametrize("name", ["list_queues", "list_dead_letters", "redrive_dead_letters"])
@pytest.mark.parametrize(
    ("caller", "status"),
    [({}, 401), (authorization(7), 403), ({"authorization": "Bearer unknown"}, 401)],
)
def test_callers_other_than_admins_are_refused(
    sqs: Sqs, name: str, caller: dict[str, str], status: int
) -> None:
    sqs.put("reactions_dlq", EVENT)
    headers = event(f"operations.{name}")["headers"]
    del headers["authorization"]
    assert call(name, headers=headers | caller)[0] == status
    assert sqs.take("reactions") == []


def test_dead_letters_are_listed_and_redriven_over_http(sqs: Sqs) -> None:
    sqs.put("reactions_dlq", '{"phone": "+8613800138000"}', cause="no event")
    status, page = call("list_dead_letters")
    [item] = page["items"]
    assert (status, item["cause"], item["body"]) == (200, "no event", {"phone": "…"})
    assert item["sent_at"].endswith("Z")
    assert call("redrive_dead_letters") == (
        200,
        {"moved": 1, "remaining": 0, "missing": [], "delayed": False},
    )


@pytest.mark.parametrize(
    ("queue", "status"),
    [("orders", 409), ("nothing", 404), ("reactions_dlq", 404), ("%2e%2e", 404), ("A" * 99, 404)],
)
def test_unknown_queues_and_dlqs_with_a_consumer_are_refused(
    sqs: Sqs, queue: str, status: int
) -> None:
    for name, rest in (("list_dead_letters", "dead-letters"), ("redrive_dead_letters", "redrives")):
        path = f"/ops/queues/{queue}/{rest}"
        context = event(f"operations.{name}")["requestContext"]
        context["http"]["path"] = path
        changes = {"rawPath": path, "pathParameters": {"queue": queue}, "requestContext": context}
        assert call(name, **changes)[0] == status


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        '{"limit": 0}',
        '{"limit": "5"}',
        '{"limit": -1}',
        '{"ids": []}',
        '{"ids": ["a b"]}',
        '{"ids": ["' + "a" * 101 + '"]}',
        '{"ids": [1]}',
        '{"ids": "a"}',
        '{"queue": "orders"}',
    ],
)
def test_an_invalid_redrive_request_moves_nothing(sqs: Sqs, body: str) -> None:
    sqs.put("reactions_dlq", EVENT)
    assert call("redrive_dead_letters", body=body)[0] == 400
    assert len(sqs.take("reactions_dlq")) == 1
