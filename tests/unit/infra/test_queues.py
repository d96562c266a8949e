"""What a consumer does with a batch: a bad record fails alone, storage fails the batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from pybreaker import CircuitBreaker

from plaza.infra import queues, settings
from plaza.infra.errors import Unavailable, UnknownProtocol
from plaza.infra.queues import BadRecord, QueueDown, consume

URLS = {"work": "https://sqs/work", "work_dlq": "https://sqs/work-dlq"}
AWAY = EndpointConnectionError(endpoint_url="https://sqs")
REFUSED = ClientError({"Error": {"Code": "InvalidMessageContents"}}, "SendMessage")


class FakeSqs:
    """Takes what SQS takes, and remembers it."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.hidden: dict[str, int] = {}
        self.calls = 0
        self.fails_with: Exception | None = None

    def _answer(self) -> None:
        self.calls += 1
        if self.fails_with is not None:
            raise self.fails_with

    def send_message(self, **message: Any) -> dict[str, Any]:
        self._answer()
        self.sent.append(message)
        return {"MessageId": "m"}

    def send_message_batch(self, **batch: Any) -> dict[str, Any]:
        self._answer()
        entries = batch["Entries"]
        assert 1 <= len(entries) <= 10
        assert len({entry["Id"] for entry in entries}) == len(entries)
        taken = [entry for entry in entries if entry["MessageBody"] != "refuse me"]
        self.sent += [{"QueueUrl": batch["QueueUrl"], **entry} for entry in taken]
        return {"Successful": [{"Id": entry["Id"]} for entry in taken]}

    def change_message_visibility_batch(self, **batch: Any) -> dict[str, Any]:
        self._answer()
        assert batch["QueueUrl"] == URLS["work"]
        assert 1 <= len(batch["Entries"]) <= 10
        for entry in batch["Entries"]:
            self.hidden[entry["ReceiptHandle"]] = entry["VisibilityTimeout"]
        return {"Successful": [{"Id": entry["Id"]} for entry in batch["Entries"]]}

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        self._answer()
        return {"Attributes": {"ApproximateNumberOfMessages": "12"}}


class Store:
    """A consumer's work: keeps what it is given, unless a poison is among it or it is away."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.tries = 0
        self.away = False

    @property
    def saved(self) -> list[str]:
        return [said for batch in self.batches for said in batch]

    def save(self, batch: list[str]) -> None:
        self.tries += 1
        if self.away:
            raise Unavailable("the store is away")
        if any("poison" in said for said in batch):
            raise ValueError("a poison")
        self.batches.append(batch)


def read(body: str) -> str:
    if "unreadable" in body:
        raise BadRecord("it can't be read")
    return body


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSqs]:
    env = {
        "PLAZA_ENVIRONMENT": "local",
        "PLAZA_REDIS_URL": "redis://nowhere",
        "PLAZA_MYSQL_URL": "mysql://nobody@nowhere/plaza",
        "PLAZA_QUEUE_WORK_URL": URLS["work"],
        "PLAZA_QUEUE_WORK_DLQ_URL": URLS["work_dlq"],
    }
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    settings.settings.cache_clear()
    fake = FakeSqs()
    monkeypatch.setattr(queues, "_client", fake)
    queues.breaker.close()
    yield fake
    queues.breaker.close()
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


def lines(capsys: pytest.CaptureFixture[str], event: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in found if line["event"] == event]


# ---------------------------------------------------------------- all is well


def test_a_good_batch_is_done_at_once_and_nothing_is_reported(sqs: FakeSqs, store: Store) -> None:
    assert failures(consume(batch_of("a", "b", "c"), "work", read, store.save)) == []
    assert store.batches == [["a", "b", "c"]]
    assert sqs.calls == 0


def test_a_batch_without_messages_asks_for_no_work(sqs: FakeSqs, store: Store) -> None:
    assert failures(consume({"Records": []}, "work", read, store.save)) == []
    assert store.tries == 0


# ---------------------------------------------------------------- a record that can't be read


def test_a_bad_record_goes_to_the_dlq_alone_and_at_once(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    response = consume(batch_of("a", "unreadable", "b"), "work", read, store.save)
    assert failures(response) == [], "it is deleted from its queue: trying again would not help"
    assert store.batches == [["a", "b"]]
    [message] = sqs.sent
    assert (message["QueueUrl"], message["MessageBody"]) == (URLS["work_dlq"], "unreadable")
    said = {name: part["StringValue"] for name, part in message["MessageAttributes"].items()}
    assert said == {"cause": "it can't be read", "message_id": "id-1"}
    [line] = lines(capsys, "record_buried")
    assert (line["buried"], line["detail"]) == (1, "it can't be read")


def test_a_batch_of_bad_records_only_asks_for_no_work(sqs: FakeSqs, store: Store) -> None:
    assert failures(consume(batch_of("unreadable", "unreadable"), "work", read, store.save)) == []
    assert len(sqs.sent) == 2
    assert store.tries == 0


def test_a_bad_record_that_the_dlq_did_not_take_is_delivered_again(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    sqs.fails_with = AWAY
    response = consume(batch_of("a", "unreadable"), "work", read, store.save)
    assert failures(response) == ["id-1"]
    assert store.saved == ["a"]
    assert lines(capsys, "bury_failed")


def test_a_cause_is_never_too_long_or_empty_for_sqs(sqs: FakeSqs, store: Store) -> None:
    def refuse(body: str) -> str:
        raise BadRecord("x" * 1_000 if body == "long" else "")

    consume(batch_of("long", "silent"), "work", refuse, store.save)
    causes = [m["MessageAttributes"]["cause"]["StringValue"] for m in sqs.sent]
    assert causes == ["x" * 256, "unreadable"]


# ---------------------------------------------------------------- storage is away


@pytest.mark.parametrize(
    ("receives", "hidden_s"), [(1, 5), (2, 30), (3, 120), (4, 600), (5, 0), (6, 0), (99, 0)]
)
def test_the_whole_batch_waits_longer_after_each_try(
    sqs: FakeSqs, store: Store, receives: int, hidden_s: int
) -> None:
    store.away = True
    response = consume(batch_of("a", "b", receives=receives), "work", read, store.save)
    assert failures(response) == ["id-0", "id-1"]
    assert sqs.hidden == {"handle-0": hidden_s, "handle-1": hidden_s}
    assert store.tries == 1, "a batch that met an outage is not halved"


def test_each_message_waits_by_its_own_number_of_receives(sqs: FakeSqs, store: Store) -> None:
    store.away = True
    consume(batch_of("a", "b", "c", receives=[1, 4, 5]), "work", read, store.save)
    assert sqs.hidden == {"handle-0": 5, "handle-1": 600, "handle-2": 0}


def test_a_failed_batch_is_logged_with_its_cause_and_how_many_are_given_up(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.away = True
    consume(batch_of("a", "b", "c", receives=[1, 5, 6]), "work", read, store.save)
    [line] = lines(capsys, "batch_failed")
    assert (line["failed"], line["given_up"], line["receives"]) == (3, 2, 6)
    assert (line["queue"], line["error"]) == ("work", "Unavailable")


def test_a_big_batch_is_hidden_ten_at_a_time(sqs: FakeSqs, store: Store) -> None:
    store.away = True
    consume(batch_of(*"abcdefghijklmnopqrstuvwxyz"), "work", read, store.save)
    assert len(sqs.hidden) == 26
    assert sqs.calls == 3


def test_a_batch_is_reported_even_when_its_messages_can_not_be_hidden(
    sqs: FakeSqs, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.away = True
    sqs.fails_with = AWAY
    response = consume(batch_of(*"abcdefghijklmnopqrstuvwxyz"), "work", read, store.save)
    assert len(failures(response)) == 26
    assert sqs.calls == 1, "it does not ask 26 times what is away"
    assert lines(capsys, "back_off_failed")


def test_a_bad_record_in_a_batch_that_fails_is_buried_and_not_reported(
    sqs: FakeSqs, store: Store
) -> None:
    store.away = True
    response = consume(batch_of("a", "unreadable"), "work", read, store.save)
    assert failures(response) == ["id-0"]
    assert [message["MessageBody"] for message in sqs.sent] == ["unreadable"]


# ---------------------------------------------------------------- a poison among good ones


@pytest.mark.parametrize("place", range(7))
def test_a_poison_stands_alone_in_the_end_and_its_neighbours_are_saved_once(
    sqs: FakeSqs, store: Store, place: int
) -> None:
    bodies = [f"good {i}" for i in range(7)]
    bodies[place] = "poison"
    response = consume(batch_of(*bodies), "work", read, store.save)
    assert failures(response) == [f"id-{place}"]
    assert sorted(store.saved) == sorted(body for body in bodies if body != "poison")
    assert sqs.hidden == {f"handle-{place}": 5}


def test_the_order_of_messages_is_kept_while_a_batch_is_halved(sqs: FakeSqs, store: Store) -> None:
    bodies = ["1", "2", "poison", "3", "4", "5", "6"]
    consume(batch_of(*bodies), "work", read, store.save)
    assert store.saved == ["1", "2", "3", "4", "5", "6"]


def test_two_poisons_among_a_thousand_cost_few_tries(sqs: FakeSqs, store: Store) -> None:
    bodies = [f"good {i}" for i in range(1_000)]
    bodies[17] = bodies[800] = "poison"
    response = consume(batch_of(*bodies), "work", read, store.save)
    assert sorted(failures(response)) == ["id-17", "id-800"]
    assert len(store.saved) == len(set(store.saved)) == 998
    assert store.tries <= 45


def test_a_batch_of_poison_ends_and_all_of_it_is_reported(sqs: FakeSqs, store: Store) -> None:
    response = consume(batch_of(*["poison"] * 1_000), "work", read, store.save)
    assert len(set(failures(response))) == 1_000
    assert store.tries <= 81


def test_storage_that_goes_away_while_a_batch_is_halved_does_not_undo_what_is_done(
    sqs: FakeSqs, store: Store
) -> None:
    def save(batch: list[str]) -> None:
        store.save(batch)
        store.away = True  # after the first success

    response = consume(batch_of("a", "b", "poison", "c"), "work", read, save)
    assert store.saved == ["a", "b"]
    assert sorted(failures(response)) == ["id-2", "id-3"]


# ---------------------------------------------------------------- sending


def test_a_message_is_sent_to_the_queue_of_that_name(sqs: FakeSqs) -> None:
    queues.send("work", "a", delay_s=3)
    assert sqs.sent == [{"QueueUrl": URLS["work"], "MessageBody": "a", "DelaySeconds": 3}]


def test_many_messages_are_sent_ten_a_call_and_counted_as_sqs_took_them(sqs: FakeSqs) -> None:
    bodies = [str(i) for i in range(23)]
    assert queues.send_all("work", bodies) == 23
    assert sqs.calls == 3
    assert [message["MessageBody"] for message in sqs.sent] == bodies
    assert queues.send_all("work", ["a", "refuse me", "b"]) == 2
    assert queues.send_all("work", []) == 0


def test_the_backlog_is_what_sqs_says(sqs: FakeSqs) -> None:
    assert queues.backlog("work") == 12


calls: list[Callable[[], object]] = [
    lambda: queues.send("work", "a"),
    lambda: queues.send_all("work", ["a"]),
    lambda: queues.backlog("work"),
]


@pytest.mark.parametrize("call", calls, ids=["send", "send_all", "backlog"])
@pytest.mark.parametrize("error", [AWAY, REFUSED], ids=["away", "refused"])
def test_whatever_sqs_says_no_with_is_one_error_of_ours(
    sqs: FakeSqs, call: Callable[[], object], error: Exception
) -> None:
    sqs.fails_with = error
    with pytest.raises(QueueDown, match=type(error).__name__):
        call()


def test_an_sqs_that_is_away_is_not_asked_again_and_again(
    sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        queues, "breaker", CircuitBreaker(fail_max=queues.breaker.fail_max, reset_timeout=3600)
    )
    sqs.fails_with = AWAY
    for _ in range(20):
        with pytest.raises(QueueDown):
            queues.send("work", "a")
    assert sqs.calls == 5


class Passing(FakeSqs):
    """Fails for the first so many calls."""

    def __init__(self, error: Exception, times: int) -> None:
        super().__init__()
        self.error, self.times = error, times

    def _answer(self) -> None:
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
def test_what_may_pass_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch, sqs: FakeSqs, error: Exception
) -> None:
    passing = Passing(error, 1)
    monkeypatch.setattr(queues, "_client", passing)
    queues.send("work", "a")
    assert [message["MessageBody"] for message in passing.sent] == ["a"]
    lasting = Passing(error, 9)
    monkeypatch.setattr(queues, "_client", lasting)
    with pytest.raises(QueueDown):
        queues.send("work", "a")
    assert lasting.calls == 2


@pytest.mark.parametrize("error", [SILENT, AWAY, refusal(400, "InvalidMessageContents")])
def test_who_is_silent_or_means_it_is_not_asked_twice(
    monkeypatch: pytest.MonkeyPatch, sqs: FakeSqs, error: Exception
) -> None:
    lasting = Passing(error, 9)
    monkeypatch.setattr(queues, "_client", lasting)
    with pytest.raises(QueueDown):
        queues.send("work", "a")
    assert lasting.calls == 1


# ---------------------------------------------------------------- protocols, and when it was sent


@dataclass(frozen=True)
class Stamped:
    """An event that wants to know when a queue took it."""

    said: str
    sent_ms: int | None = None
    request_id: str | None = None


def sent_at(sent_ms: int, **attributes: str) -> dict[str, Any]:
    """A batch of one message that SQS took at ``sent_ms``."""
    batch = batch_of("a")
    [message] = batch["Records"]
    message["attributes"]["SentTimestamp"] = str(sent_ms)
    message["messageAttributes"] = {
        name: {"dataType": "String", "stringValue": value} for name, value in attributes.items()
    }
    return batch


def stamp_of(batch: dict[str, Any]) -> int | None:
    """What a consumer learns of when the message of ``batch`` was sent."""
    found: list[Stamped] = []
    assert failures(consume(batch, "work", Stamped, found.extend)) == []
    return found[0].sent_ms


def test_a_message_of_an_unknown_protocol_comes_again_and_is_not_dead_lettered(
    sqs: FakeSqs, capsys: pytest.CaptureFixture[str]
) -> None:
    """A later version of Plaza may read it, and its neighbours are saved meanwhile."""

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
    assert sqs.sent == [], "nothing went to the DLQ"
    assert sqs.hidden == {"handle-1": queues.BACK_OFF_S[1]}
    [line] = lines(capsys, "batch_failed")
    assert (line["failed"], line["error"]) == (1, "UnknownProtocol")


def test_an_event_knows_when_the_queue_took_it(sqs: FakeSqs) -> None:
    assert stamp_of(sent_at(1_795_169_730_123)) == 1_795_169_730_123


def test_an_event_that_was_moved_knows_when_its_first_queue_took_it(sqs: FakeSqs) -> None:
    assert stamp_of(sent_at(9_999, first_sent_ms="5")) == 5


@pytest.mark.parametrize("forged", ["", "five", "-5", "1e3", " 5"])
def test_a_first_time_that_is_no_number_does_not_count(sqs: FakeSqs, forged: str) -> None:
    assert stamp_of(sent_at(9_999, first_sent_ms=forged)) == 9_999


@pytest.mark.parametrize("attributes", [{}, {"first_sent_ms": "1234"}])
def test_a_message_that_is_buried_keeps_when_it_was_first_sent(
    sqs: FakeSqs, attributes: dict[str, str]
) -> None:
    def refuse(body: str) -> str:
        raise BadRecord("it can't be read")

    consume(sent_at(1234 if not attributes else 9_999, **attributes), "work", refuse, list)
    [buried] = sqs.sent
    assert buried["QueueUrl"] == URLS["work_dlq"]
    assert buried["MessageAttributes"]["first_sent_ms"]["StringValue"] == "1234"
