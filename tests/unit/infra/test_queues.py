"""The consumer runtime and the client of SQS, with a fake SQS."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from aws_lambda_powertools.utilities.batch.exceptions import UnexpectedBatchTypeError
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from pybreaker import CircuitBreaker

from local.stack.deployment import list_queues
from plaza.infra.queues import sqs as sqs_client
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.queues.queue import QueueDown
from plaza.infra.queues.retries import Action, Delivery, RetryPolicy, decide
from plaza.infra.runtime import settings
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.errors import Busy, Unavailable, UnknownProtocol
from tests.support.batches import consume
from tests.support.failures import failing
from tests.support.logs import read_log

URLS = {"work": "https://sqs/work", "work_dlq": "https://sqs/work_dlq"}
UNREACHABLE = EndpointConnectionError(endpoint_url="https://sqs")
REFUSED = ClientError({"Error": {"Code": "InvalidMessageContents"}}, "SendMessage")


class FakeSqs:
    """Accepts what SQS accepts, and records it."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.hidden: dict[str, int] = {}
        self.calls = 0
        self.fails_with: Exception | None = None

    def _count_call(self) -> None:
        self.calls += 1
        if self.fails_with is not None:
            raise self.fails_with

    def send_message(self, **message: Any) -> dict[str, Any]:
        self._count_call()
        self.sent.append(message)
        return {"MessageId": "m"}

    def send_message_batch(self, **batch: Any) -> dict[str, Any]:
        self._count_call()
        entries = batch["Entries"]
        assert 1 <= len(entries) <= 10
        assert len({entry["Id"] for entry in entries}) == len(entries)
        refused = [e for e in entries if e["MessageBody"].startswith("refuse me")]
        accepted = [entry for entry in entries if entry not in refused]
        self.sent += [{"QueueUrl": batch["QueueUrl"], **entry} for entry in accepted]
        return {
            "Successful": [{"Id": entry["Id"]} for entry in accepted],
            "Failed": [
                {
                    "Id": e["Id"],
                    "Code": "InternalError",
                    "SenderFault": "always" in e["MessageBody"],
                }
                for e in refused
            ],
        }

    def change_message_visibility_batch(self, **batch: Any) -> dict[str, Any]:
        self._count_call()
        assert batch["QueueUrl"] == URLS["work"]
        assert 1 <= len(batch["Entries"]) <= 10
        for entry in batch["Entries"]:
            self.hidden[entry["ReceiptHandle"]] = entry["VisibilityTimeout"]
        return {"Successful": [{"Id": entry["Id"]} for entry in batch["Entries"]]}

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        self._count_call()
        return {"Attributes": {"ApproximateNumberOfMessages": "12"}}


class Store:
    """A consumer that saves batches, unless it is down or a batch has a poison message."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.calls = 0
        self.is_down = False

    @property
    def saved(self) -> list[str]:
        return [body for batch in self.batches for body in batch]

    def save(self, batch: list[str]) -> None:
        self.calls += 1
        if self.is_down:
            raise Unavailable("the store is down")
        if any("poison" in body for body in batch):
            raise ValueError("a poison message")
        self.batches.append(batch)


def read(body: str) -> str:
    if "unreadable" in body:
        raise InvalidMessage("unreadable body")
    return body


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSqs]:
    env = {
        "PLAZA_ENVIRONMENT": "local",
        "PLAZA_REDIS_URL": "redis://nowhere",
        "PLAZA_MYSQL_URL": "mysql://plaza@nowhere/plaza",
        **list_queues(URLS),
    }
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    settings.settings.cache_clear()
    fake = FakeSqs()
    monkeypatch.setattr(sqs_client, "client", lambda: fake)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)  # so that botocore's client sends
    sqs_client._sender.reset()
    sqs_client.SQS.breaker.close()
    yield fake
    sqs_client.SQS.breaker.close()
    settings.settings.cache_clear()


@pytest.fixture
def store() -> Store:
    return Store()


def batch_of(*bodies: str, receives: int | list[int] = 1) -> dict[str, Any]:
    counts = receives if isinstance(receives, list) else [receives] * len(bodies)
    return {
        "Records": [
            {
                "messageId": f"id-{i}",
                "receiptHandle": f"handle-{i}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": str(count)},
            }
            for i, (body, count) in enumerate(zip(bodies, counts, strict=True))
        ]
    }


def failures(response: Any) -> list[str]:
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


# ---------------------------------------------------------------- success


def test_a_valid_batch_is_handled_in_one_call(sqs: FakeSqs, store: Store) -> None:
    assert failures(consume(batch_of("a", "b", "c"), "work", read, store.save)) == []
    assert store.batches == [["a", "b", "c"]]
    assert sqs.calls == 0


@pytest.mark.parametrize("error", [None, Busy("locked"), ValueError("a defect")])
def test_no_cycles_are_collected_during_a_batch(sqs: FakeSqs, error: Exception | None) -> None:
    during = []

    def handle(values: list[str]) -> None:
        during.append(gc.isenabled())
        if error is not None:
            raise error

    consume(batch_of("a"), "work", read, handle)
    assert (during, gc.isenabled()) == ([False], True)


def test_an_empty_batch_calls_no_consumer(sqs: FakeSqs, store: Store) -> None:
    with pytest.raises(UnexpectedBatchTypeError):  # Lambda sends none
        consume({"Records": []}, "work", read, store.save)
    assert store.calls == 0


# ---------------------------------------------------------------- invalid messages


def test_an_invalid_message_is_dead_lettered_alone_and_at_once(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    response = consume(batch_of("a", "unreadable", "b"), "work", read, store.save)
    assert failures(response) == [], "Lambda deletes it from its queue"
    assert store.batches == [["a", "b"]]
    [message] = sqs.sent
    assert (message["QueueUrl"], message["MessageBody"]) == (URLS["work_dlq"], "unreadable")
    assert attributes_of(message) == {"cause": "unreadable body", "message_id": "id-1"}
    [line] = read_log(capsys, "message_dead_lettered")
    assert (line["dead_lettered"], line["detail"]) == (1, "unreadable body")


def test_a_batch_of_invalid_messages_calls_no_consumer(sqs: FakeSqs, store: Store) -> None:
    assert failures(consume(batch_of("unreadable", "unreadable"), "work", read, store.save)) == []
    assert len(sqs.sent) == 2
    assert store.calls == 0


def test_an_invalid_message_that_the_dlq_refuses_is_delivered_again(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    sqs.fails_with = UNREACHABLE
    response = consume(batch_of("a", "unreadable"), "work", read, store.save)
    assert failures(response) == ["id-1"]
    assert store.saved == ["a"]
    assert read_log(capsys, "dead_letter_failed")


def test_a_cause_has_1_to_256_characters(sqs: FakeSqs, store: Store) -> None:
    def refuse(body: str) -> str:
        raise InvalidMessage("x" * 1_000 if body == "long" else "")

    consume(batch_of("long", "silent"), "work", refuse, store.save)
    causes = [m["MessageAttributes"]["cause"]["StringValue"] for m in sqs.sent]
    assert causes == ["x" * 256, "unreadable"]


# ---------------------------------------------------------------- an outage of the store


@pytest.mark.parametrize(("receives", "hidden_s"), [(1, 5), (2, 30), (3, 120), (4, 600)])
def test_a_batch_is_hidden_for_longer_after_each_receive(
    sqs: FakeSqs, store: Store, receives: int, hidden_s: int
) -> None:
    store.is_down = True
    response = consume(batch_of("a", "b", receives=receives), "work", read, store.save)
    assert failures(response) == ["id-0", "id-1"]
    assert sqs.hidden == {"handle-0": hidden_s, "handle-1": hidden_s}
    assert sqs.sent == []
    assert store.calls == 1, "a batch that met an outage is not halved"


def test_each_message_is_hidden_by_its_own_receives(sqs: FakeSqs, store: Store) -> None:
    store.is_down = True
    consume(batch_of("a", "b", "c", receives=[1, 4, 2]), "work", read, store.save)
    assert sqs.hidden == {"handle-0": 5, "handle-1": 600, "handle-2": 30}


def attributes_of(message: dict[str, Any]) -> dict[str, str]:
    return {name: part["StringValue"] for name, part in message["MessageAttributes"].items()}


def again(message: dict[str, Any], receives: int, now_s: float) -> dict[str, Any]:
    """Return the batch of Lambda with a message that was sent again."""
    batch = batch_of(message["MessageBody"], receives=receives)
    [result] = batch["Records"]
    result["attributes"]["SentTimestamp"] = str(int(now_s * 1000))
    result["messageAttributes"] = {
        name: {"dataType": "String", "stringValue": value}
        for name, value in attributes_of(message).items()
    }
    return batch


def test_a_message_waits_twelve_hours_for_an_outage_without_spending_an_attempt(
    sqs: FakeSqs, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given an outage of a day, a message is dead-lettered after twelve hours, and its receives
    never reach the number at which SQS moves it."""
    store.is_down = True
    began_s = now_s = 1_000_000.0
    monkeypatch.setattr("plaza.infra.runtime.clock.now_us", lambda: round(now_s * 1e6))
    policy = RetryPolicy(max_wait_s=12 * 3_600)
    batch = batch_of("a")
    for name in ("SentTimestamp", "ApproximateFirstReceiveTimestamp"):
        batch["Records"][0]["attributes"][name] = str(int(now_s * 1000))
    receives = max_receives = 1
    while True:
        sqs.hidden.clear()
        sqs.sent.clear()
        response = consume(batch, "work", read, store.save, policy)
        max_receives = max(max_receives, receives)
        if sqs.hidden:
            assert failures(response) == ["id-0"]
            now_s += sqs.hidden["handle-0"]
            receives += 1
            batch["Records"][0]["attributes"]["ApproximateReceiveCount"] = str(receives)
            continue
        assert failures(response) == []
        [message] = sqs.sent
        if message["QueueUrl"] == URLS["work_dlq"]:
            break
        now_s += message["DelaySeconds"]
        receives = 1
        batch = again(message, receives, now_s)
    assert 12 * 3_600 <= now_s - began_s <= 12 * 3_600 + 600
    assert max_receives < policy.max_receives
    assert attributes_of(message)["first_sent_ms"] == str(int(began_s * 1000))
    assert attributes_of(message)["cause"] == "the store is down"
    assert "attempts" not in attributes_of(message)
    *_, line = read_log(capsys, "batch_failed")
    assert line["retries_exhausted"] == 1
    assert line["longest_wait_s"] >= 12 * 3_600


def test_a_message_that_was_never_sent_again_is_not_dead_lettered_by_its_age() -> None:
    """Given a message that its first consumer received before it was killed, thirteen hours ago."""
    delivery = Delivery(receives=2, sent_ms=0, waiting_since_ms=0, attempts=0, is_resent=False)
    now_ms = 13 * 3_600_000
    decision = decide(delivery, Unavailable("the store is down"), RetryPolicy(), now_ms)
    assert decision.action is Action.HIDE
    resent = delivery._replace(is_resent=True)
    decision = decide(resent, Unavailable("the store is down"), RetryPolicy(), now_ms)
    assert decision.action is Action.DEAD_LETTER


def test_time_in_a_backlog_does_not_count_as_waiting(
    sqs: FakeSqs, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a message that was first received after two days, it waits for an outage."""
    now_ms = 1_000_000_000_000
    monkeypatch.setattr("plaza.infra.runtime.clock.now_us", lambda: now_ms * 1000)
    store.is_down = True
    batch = batch_of("a", receives=5)
    batch["Records"][0]["attributes"]["SentTimestamp"] = str(now_ms - 2 * 86_400_000)
    batch["Records"][0]["attributes"]["ApproximateFirstReceiveTimestamp"] = str(now_ms - 755_000)
    consume(batch, "work", read, store.save)
    [message] = sqs.sent
    assert message["QueueUrl"] == URLS["work"]
    assert attributes_of(message)["waiting_since_ms"] == str(now_ms - 755_000)


def test_a_message_that_fails_by_its_own_error_has_five_attempts(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """Receives that were spent on waiting are not attempts."""
    batch, delays_s = batch_of("poison", receives=4), []
    while True:
        sqs.sent.clear()
        assert failures(consume(batch, "work", read, store.save)) == []
        [message] = sqs.sent
        if message["QueueUrl"] == URLS["work_dlq"]:
            break
        delays_s.append(message["DelaySeconds"])
        batch = again(message, receives=4, now_s=1_000_000.0)
    assert delays_s == [5, 30, 120, 600]
    assert attributes_of(message)["cause"] == "a poison message"
    assert attributes_of(message)["message_id"] == "id-0"
    *_, line = read_log(capsys, "batch_failed")
    assert (line["attempts"], line["retries_exhausted"]) == (5, 1)


def test_a_message_for_locked_rows_is_retried_within_seconds(sqs: FakeSqs) -> None:
    locked = failing(Busy("the rows are locked"))

    for receives in range(1, 5):
        assert failures(consume(batch_of("a", receives=receives), "work", read, locked)) == ["id-0"]
        assert 1 <= sqs.hidden["handle-0"] <= 5
    assert failures(consume(batch_of("a", receives=5), "work", read, locked)) == []
    [message] = sqs.sent
    assert message["QueueUrl"] == URLS["work"]
    assert 1 <= message["DelaySeconds"] <= 5
    assert "attempts" not in attributes_of(message)


def test_a_message_that_cannot_be_sent_again_stays_in_its_queue(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    bodies = ["refuse me poison", "poison"]
    assert failures(consume(batch_of(*bodies), "work", read, store.save)) == ["id-0"]
    assert sqs.hidden == {"handle-0": 600}
    assert [message["MessageBody"] for message in sqs.sent] == ["poison"]
    sqs.fails_with = UNREACHABLE
    assert failures(consume(batch_of("poison"), "work", read, store.save)) == ["id-0"]
    assert read_log(capsys, "move_failed")


def test_a_message_sent_again_is_not_counted_as_consumed(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    consume(batch_of("good", "poison"), "work", read, store.save)
    [line] = read_log(capsys, "batch_consumed")
    assert line["batch_size"] == 1


@pytest.mark.parametrize("forged", ["", "-1", "1e9", "x", "²"])
def test_an_attribute_that_is_not_a_number_is_ignored(
    sqs: FakeSqs, store: Store, forged: str
) -> None:
    batch = batch_of("poison")
    names = ("first_sent_ms", "waiting_since_ms", "attempts")
    attributes = {name: {"dataType": "String", "stringValue": forged} for name in names}
    batch["Records"][0]["messageAttributes"] = attributes
    assert failures(consume(batch, "work", read, store.save)) == []
    [message] = sqs.sent
    assert attributes_of(message)["attempts"] == "1"


def test_a_failed_batch_is_logged_with_its_cause(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.is_down = True
    consume(batch_of("a", "b", "c", receives=[1, 2, 3]), "work", read, store.save)
    [line] = read_log(capsys, "batch_failed")
    assert (line["messages_failed"], line["retries_exhausted"], line["receives"]) == (3, 0, 3)
    assert (line["queue"], line["error"]) == ("work", "Unavailable")


def test_a_large_batch_is_hidden_ten_messages_a_call(sqs: FakeSqs, store: Store) -> None:
    store.is_down = True
    consume(batch_of(*"abcdefghijklmnopqrstuvwxyz"), "work", read, store.save)
    assert len(sqs.hidden) == 26
    assert sqs.calls == 3


def test_a_failed_batch_is_reported_although_hiding_fails(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.is_down = True
    sqs.fails_with = UNREACHABLE
    response = consume(batch_of(*"abcdefghijklmnopqrstuvwxyz"), "work", read, store.save)
    assert len(failures(response)) == 26
    assert sqs.calls == 1, "after one failure no other call is made"
    assert read_log(capsys, "back_off_failed")


def test_an_invalid_message_in_a_failed_batch_is_dead_lettered(sqs: FakeSqs, store: Store) -> None:
    store.is_down = True
    response = consume(batch_of("a", "unreadable"), "work", read, store.save)
    assert failures(response) == ["id-0"]
    assert [message["MessageBody"] for message in sqs.sent] == ["unreadable"]


# ---------------------------------------------------------------- poison messages


@pytest.mark.parametrize("index", range(7))
def test_a_poison_message_is_isolated_and_the_others_are_handled_once(
    sqs: FakeSqs, store: Store, index: int
) -> None:
    bodies = [f"good {i}" for i in range(7)]
    bodies[index] = "poison"
    response = consume(batch_of(*bodies), "work", read, store.save)
    assert failures(response) == [], "it is sent again"
    assert sorted(store.saved) == sorted(body for body in bodies if body != "poison")
    assert [message["MessageBody"] for message in sqs.sent] == ["poison"]


def test_halving_a_batch_keeps_the_order_of_messages(sqs: FakeSqs, store: Store) -> None:
    bodies = ["1", "2", "poison", "3", "4", "5", "6"]
    consume(batch_of(*bodies), "work", read, store.save)
    assert store.saved == ["1", "2", "3", "4", "5", "6"]


def test_two_poison_messages_in_a_thousand_cost_few_calls(sqs: FakeSqs, store: Store) -> None:
    bodies = [f"good {i}" for i in range(1_000)]
    bodies[17] = bodies[800] = "poison"
    response = consume(batch_of(*bodies), "work", read, store.save)
    assert failures(response) == []
    assert len(sqs.sent) == 2
    assert len(store.saved) == len(set(store.saved)) == 998
    assert store.calls <= 45


def test_a_batch_of_poison_messages_costs_a_bounded_number_of_calls(
    sqs: FakeSqs, store: Store
) -> None:
    response = consume(batch_of(*["poison"] * 1_000), "work", read, store.save)
    assert failures(response) == []
    assert len(sqs.sent) == 1_000
    assert store.calls <= 81


def test_all_messages_of_a_batch_that_is_invalid_are_sent_on(sqs: FakeSqs) -> None:
    """Given so many invalid messages that some are never alone."""

    bodies = [f"message {i}" for i in range(1_000)]
    response = consume(
        batch_of(*bodies), "work", read, failing(InvalidMessage("an invalid message"))
    )
    assert failures(response) == []
    assert sorted(message["MessageBody"] for message in sqs.sent) == sorted(bodies)


def test_a_message_that_its_consumer_finds_invalid_is_dead_lettered_at_once(sqs: FakeSqs) -> None:
    def refuse(batch: list[str]) -> None:
        if "invalid" in batch:
            raise InvalidMessage("an invalid message")

    response = consume(batch_of("good", "invalid", "good"), "work", read, refuse)
    assert failures(response) == []
    [message] = sqs.sent
    assert (message["QueueUrl"], message["MessageBody"]) == (URLS["work_dlq"], "invalid")


def test_a_message_that_spent_an_attempt_begins_its_wait_again(sqs: FakeSqs, store: Store) -> None:
    assert failures(consume(batch_of("poison"), "work", read, store.save)) == []
    [message] = sqs.sent
    assert attributes_of(message)["attempts"] == "1"
    assert "waiting_since_ms" not in attributes_of(message)


def test_a_message_that_is_sent_again_keeps_its_attributes(sqs: FakeSqs, store: Store) -> None:
    batch = batch_of("poison")
    request = {"stringValue": "request-1", "dataType": "String"}
    batch["Records"][0]["messageAttributes"] = {"request_id": request}
    assert failures(consume(batch, "work", read, store.save)) == []
    [message] = sqs.sent
    assert attributes_of(message)["request_id"] == "request-1"


def test_an_outage_while_a_batch_is_halved_keeps_handled_messages(
    sqs: FakeSqs, store: Store
) -> None:
    def save(batch: list[str]) -> None:
        store.save(batch)
        store.is_down = True  # after the first success

    response = consume(batch_of("a", "b", "poison", "c"), "work", read, save)
    assert store.saved == ["a", "b"]
    assert sorted(failures(response)) == ["id-2", "id-3"]


# ---------------------------------------------------------------- sending


def test_a_message_is_sent_to_the_queue_of_that_name(sqs: FakeSqs) -> None:
    sqs_client.send("work", "a", delay_s=3)
    assert sqs.sent == [{"QueueUrl": URLS["work"], "MessageBody": "a", "DelaySeconds": 3}]


def test_messages_are_sent_ten_a_call_and_accepted_ones_are_counted(sqs: FakeSqs) -> None:
    bodies = [str(i) for i in range(23)]
    assert sqs_client.send_all("work", bodies) == 23
    assert sqs.calls == 3
    assert [message["MessageBody"] for message in sqs.sent] == bodies
    assert sqs_client.send_all("work", ["a", "refuse me", "b"]) == 2
    assert sqs_client.send_all("work", []) == 0


def test_a_call_stays_below_the_byte_limit_of_sqs(sqs: FakeSqs) -> None:
    bodies = [f"{i}{'ü' * 40_000}" for i in range(10)]
    sizes: list[int] = []
    send_batch = sqs.send_message_batch

    def measured(**batch: Any) -> dict[str, Any]:
        sizes.append(sum(len(entry["MessageBody"].encode()) for entry in batch["Entries"]))
        return send_batch(**batch)

    sqs.send_message_batch = measured  # type: ignore[method-assign]
    assert sqs_client.send_all("work", bodies) == 10
    assert [message["MessageBody"] for message in sqs.sent] == bodies
    assert max(sizes) <= sqs_client.MAX_CALL_BYTES
    assert len(sizes) == 4


def test_a_message_with_a_passing_refusal_is_sent_once_more(
    sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    send_batch, calls = sqs.send_message_batch, []

    def busy_once(**batch: Any) -> dict[str, Any]:
        calls.append([entry["MessageBody"] for entry in batch["Entries"]])
        if len(calls) > 1:
            return send_batch(**batch)
        return {"Successful": [], "Failed": [{"Id": "0", "Code": "InternalError"}]}

    monkeypatch.setattr(sqs, "send_message_batch", busy_once)
    assert sqs_client.send_all("work", ["a"]) == 1
    assert calls == [["a"], ["a"]]
    assert not read_log(capsys, "messages_refused")


def test_refused_messages_are_recorded(sqs: FakeSqs, capsys: pytest.CaptureFixture[str]) -> None:
    assert sqs_client.send_all("work", ["a", "refuse me", "refuse me always"]) == 1
    [line] = read_log(capsys, "messages_refused")
    assert (line["messages_refused"], line["queue"], line["codes"]) == (
        2,
        "work",
        ["InternalError"],
    )
    assert sqs.calls == 2, "a refusal by the sender's fault is not repeated"


def test_no_call_begins_after_the_deadline(sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr("plaza.infra.runtime.clock.monotonic_s", lambda: now_s + sqs.calls)
    assert sqs_client.send_all("work", [str(i) for i in range(100)], Deadline(103)) == 30
    assert sqs.calls == 3


def test_the_backlog_is_read_from_sqs(sqs: FakeSqs) -> None:
    assert sqs_client.measure("work").backlog == 12


calls: list[Callable[[], object]] = [
    lambda: sqs_client.send("work", "a"),
    lambda: sqs_client.send_all("work", ["a"]),
    lambda: sqs_client.measure("work").backlog,
]


@pytest.mark.parametrize("call", calls, ids=["send", "send_all", "backlog"])
@pytest.mark.parametrize(
    ("error", "cause"),
    [(UNREACHABLE, "EndpointConnectionError"), (REFUSED, "InvalidMessageContents")],
    ids=["unreachable", "refused"],
)
def test_every_failure_of_sqs_is_queue_down(
    sqs: FakeSqs, call: Callable[[], object], error: Exception, cause: str
) -> None:
    sqs.fails_with = error
    with pytest.raises(QueueDown, match=cause):
        call()


def test_the_breaker_opens_after_five_failures_of_sqs(
    sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = CircuitBreaker(fail_max=sqs_client.SQS.breaker.fail_max, reset_timeout=3600)
    monkeypatch.setattr(sqs_client.SQS, "breaker", breaker)
    sqs.fails_with = UNREACHABLE
    for _ in range(20):
        with pytest.raises(QueueDown):
            sqs_client.send("work", "a")
    assert sqs.calls == 5


class Passing(FakeSqs):
    """Fails for the first ``times`` calls."""

    def __init__(self, error: Exception, times: int) -> None:
        super().__init__()
        self.error, self.times = error, times

    def _count_call(self) -> None:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error


def refusal(status: int, code: str) -> ClientError:
    return ClientError(
        {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "SendMessage",
    )


LOST = ConnectionClosedError(endpoint_url="https://sqs")
SILENT = ReadTimeoutError(endpoint_url="https://sqs")


@pytest.mark.parametrize(
    "error", [LOST, refusal(500, "InternalFailure"), refusal(400, "ThrottlingException")]
)
def test_a_passing_failure_is_repeated_once(
    monkeypatch: pytest.MonkeyPatch, sqs: FakeSqs, error: Exception
) -> None:
    passing = Passing(error, 1)
    monkeypatch.setattr(sqs_client, "client", lambda: passing)
    sqs_client.send("work", "a")
    assert [message["MessageBody"] for message in passing.sent] == ["a"]
    lasting = Passing(error, 9)
    monkeypatch.setattr(sqs_client, "client", lambda: lasting)
    with pytest.raises(QueueDown):
        sqs_client.send("work", "a")
    assert lasting.calls == 2


@pytest.mark.parametrize("error", [SILENT, UNREACHABLE, refusal(400, "InvalidMessageContents")])
def test_a_timeout_or_lasting_refusal_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, sqs: FakeSqs, error: Exception
) -> None:
    lasting = Passing(error, 9)
    monkeypatch.setattr(sqs_client, "client", lambda: lasting)
    with pytest.raises(QueueDown):
        sqs_client.send("work", "a")
    assert lasting.calls == 1


# ---------------------------------------------------------------- protocols and times


@dataclass(frozen=True)
class Stamped:
    """An event with the time at which it was sent."""

    body: str
    sent_ms: int | None = None
    request_id: str | None = None


def sent_at(sent_ms: int, **attributes: str) -> dict[str, Any]:
    """Return a batch of one message that was sent at ``sent_ms``."""
    batch = batch_of("a")
    [message] = batch["Records"]
    message["attributes"]["SentTimestamp"] = str(sent_ms)
    message["messageAttributes"] = {
        name: {"dataType": "String", "stringValue": value} for name, value in attributes.items()
    }
    return batch


def stamp_of(batch: dict[str, Any]) -> int | None:
    """Return the ``sent_ms`` that a consumer gets for the message of ``batch``."""
    stamps: list[Stamped] = []
    assert failures(consume(batch, "work", Stamped, stamps.extend)) == []
    return stamps[0].sent_ms


def test_a_message_of_an_unknown_protocol_is_delivered_again(
    sqs: FakeSqs, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later version of Plaza may read it; the other messages are handled."""

    def read_known(body: str) -> str:
        if body == "of protocol 3":
            raise UnknownProtocol("reaction event of protocol 3")
        return body

    saved: list[str] = []
    response = consume(
        batch_of("a", "of protocol 3", "b", receives=2), "work", read_known, saved.extend
    )
    assert failures(response) == ["id-1"]
    assert saved == ["a", "b"]
    assert sqs.sent == [], "nothing is dead-lettered"
    assert sqs.hidden == {"handle-1": RetryPolicy().back_off_s[1]}
    [line] = read_log(capsys, "batch_failed")
    assert (line["messages_failed"], line["error"]) == (1, "UnknownProtocol")


def test_an_event_gets_the_time_it_was_sent(sqs: FakeSqs) -> None:
    assert stamp_of(sent_at(1_795_169_730_123)) == 1_795_169_730_123


def test_a_moved_event_keeps_the_time_it_was_first_sent(sqs: FakeSqs) -> None:
    assert stamp_of(sent_at(9_999, first_sent_ms="5")) == 5


@pytest.mark.parametrize("forged", ["", "five", "-5", "1e3", " 5"])
def test_a_malformed_first_sent_time_is_ignored(sqs: FakeSqs, forged: str) -> None:
    assert stamp_of(sent_at(9_999, first_sent_ms=forged)) == 9_999


@pytest.mark.parametrize("attributes", [{}, {"first_sent_ms": "1234"}])
def test_a_dead_letter_keeps_the_time_it_was_first_sent(
    sqs: FakeSqs, attributes: dict[str, str]
) -> None:
    consume(
        sent_at(1234 if not attributes else 9_999, **attributes),
        "work",
        failing(InvalidMessage("unreadable body")),
        lambda _: None,
    )
    [dead] = sqs.sent
    assert dead["QueueUrl"] == URLS["work_dlq"]
    assert dead["MessageAttributes"]["first_sent_ms"]["StringValue"] == "1234"
