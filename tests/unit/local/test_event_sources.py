"""Batches follow the event source mapping, and failed messages stay in the queue."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from local.stack.event_source import EventSource
from local.stack.event_sources import Deliveries, Poller, Sqs, make_record, read_failures
from local.stack.worker_parent import MAX_PAYLOAD_BYTES
from local.stack.workers import Outcome

DONE = Outcome(b'{"batchItemFailures": []}')
LIMIT_S = 20


def message(number: int, body: str = "x") -> dict[str, Any]:
    return {
        "MessageId": f"id{number}",
        "ReceiptHandle": f"handle{number}",
        "Body": body,
        "MD5OfBody": "md5",
    }


class FakeQueue(Sqs):
    """A queue whose messages arrive at given times, on a clock that sleeping advances."""

    def __init__(self, arrivals: Sequence[tuple[float, int]] = ()) -> None:
        self.now_s = 0.0
        self.arrivals = list(arrivals)
        self.waiting: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.received = 0
        self.body = "x"

    async def receive(self, queue_url: str, count: int, wait_s: int) -> list[dict[str, Any]]:
        if wait_s and not self.waiting and self.arrivals:
            self.now_s = max(self.now_s, self.arrivals[0][0])
        while self.arrivals and self.arrivals[0][0] <= self.now_s:
            _, many = self.arrivals.pop(0)
            self.waiting += [message(self.received + n, self.body) for n in range(many)]
            self.received += many
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken

    async def delete(self, queue_url: str, receipt_handles: Sequence[str]) -> None:
        self.deleted += receipt_handles


def poller(
    queue: FakeQueue, answer: Callable[[list[Any]], Outcome] = lambda records: DONE, **given: Any
) -> Poller:
    async def invoke(name: str, event: bytes) -> Outcome:
        return answer(json.loads(event)["Records"])

    parts: dict[str, Any] = {
        "batch_size": 10,
        "window_s": 0.0,
        "max_concurrency": 2,
        "reports_failures": True,
    }
    deliveries = given.pop("deliveries", None)
    source = EventSource("save", "arn:q", "http://q", **{**parts, **given})
    return Poller(
        source,
        queue,
        invoke,
        region="x",
        max_concurrency=4,
        deliveries=deliveries,
        clock=lambda: queue.now_s,
    )


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeQueue], None]:
    """Make sleeping advance a queue's clock instead of waiting."""

    def use(queue: FakeQueue) -> None:
        async def sleep(delay_s: float) -> None:
            queue.now_s += delay_s

        monkeypatch.setattr("local.stack.event_sources.asyncio.sleep", sleep)

    return use


def collect(queue: FakeQueue, **given: Any) -> int:
    return len(asyncio.run(poller(queue, **given).collect()))


def test_batch_waits_for_its_window_to_fill(quick: Callable[[FakeQueue], None]) -> None:
    queue = FakeQueue([(0.0, 3), (0.4, 5), (0.9, 7), (1.5, 9)])
    quick(queue)
    assert collect(queue, batch_size=1000, window_s=1.0) == 15
    assert queue.now_s == pytest.approx(1.0)


def test_full_batch_does_not_wait(quick: Callable[[FakeQueue], None]) -> None:
    queue = FakeQueue([(0.0, 250)])
    quick(queue)
    assert collect(queue, batch_size=100, window_s=1.0) == 100
    assert queue.now_s == 0


def test_batch_without_a_window_is_one_response(
    quick: Callable[[FakeQueue], None],
) -> None:
    queue = FakeQueue([(0.0, 3), (0.05, 5)])
    quick(queue)
    assert collect(queue) == 3
    assert queue.now_s == 0


def test_batch_ends_before_it_is_too_large_for_a_function(
    quick: Callable[[FakeQueue], None],
) -> None:
    queue = FakeQueue([(0.0, 1000)])
    queue.body = "x" * 200_000
    quick(queue)
    count = collect(queue, batch_size=1000, window_s=1.0)
    assert 0 < count * 200_000 < MAX_PAYLOAD_BYTES


def test_empty_queue_yields_no_batch() -> None:
    assert collect(FakeQueue()) == 0


def deliver(queue: FakeQueue, outcome: Outcome, count: int = 3, **given: Any) -> list[str]:
    made = poller(queue, lambda records: outcome, **given)
    asyncio.run(made.deliver([message(n) for n in range(count)]))
    return queue.deleted


def failures(*ids: str) -> Outcome:
    return Outcome(
        json.dumps({"batchItemFailures": [{"itemIdentifier": item} for item in ids]}).encode()
    )


def test_successes_are_deleted_and_failures_stay() -> None:
    assert deliver(FakeQueue(), failures("id1")) == ["handle0", "handle2"]


@pytest.mark.parametrize("payload", [b"null", b"{}", b'{"batchItemFailures": null}'])
def test_function_without_a_report_handled_all_messages(payload: bytes) -> None:
    assert len(deliver(FakeQueue(), Outcome(payload))) == 3


@pytest.mark.parametrize(
    "outcome",
    [
        failures("unknown"),
        failures(""),
        Outcome(b'{"batchItemFailures": [{"id": 1}]}'),
        Outcome(b'"text"'),
    ],
)
def test_malformed_report_fails_the_batch(outcome: Outcome) -> None:
    assert deliver(FakeQueue(), outcome) == []


def test_failed_function_leaves_its_messages_in_the_queue(
    quick: Callable[[FakeQueue], None],
) -> None:
    queue = FakeQueue()
    quick(queue)
    assert deliver(queue, Outcome(b'{"errorType": "X"}', failed=True)) == []


def test_mapping_without_reports_deletes_the_batch() -> None:
    assert len(deliver(FakeQueue(), failures("id1"), reports_failures=False)) == 3


@pytest.mark.parametrize(
    ("outcomes", "deleted"),
    [
        ([DONE, DONE], ["handle0", "handle1", "handle2"]),
        ([failures("id0"), failures("id2")], ["handle1"]),
        ([DONE, Outcome(b"{}", failed=True)], []),
        ([Outcome(b'"text"'), DONE], []),
    ],
)
def test_of_a_batch_that_is_delivered_twice_only_what_both_handled_is_deleted(
    quick: Callable[[FakeQueue], None], outcomes: list[Outcome], deleted: list[str]
) -> None:
    queue, left = FakeQueue(), outcomes[:]
    quick(queue)
    made = poller(queue, lambda records: left.pop(0), deliveries=Deliveries(copies=2))
    asyncio.run(made.deliver([message(n) for n in range(3)]))
    assert (queue.deleted, left) == (deleted, [])


@pytest.mark.parametrize(("url", "waited_s"), [("http://q", 2.5), ("http://other", 0.0)])
def test_message_of_a_late_queue_is_delivered_so_long_after_it_was_sent(
    quick: Callable[[FakeQueue], None], monkeypatch: pytest.MonkeyPatch, url: str, waited_s: float
) -> None:
    queue, deliveries = FakeQueue(), Deliveries(lags_s={url: 3.0})
    quick(queue)
    monkeypatch.setattr("local.stack.event_sources.time.time", lambda: 1_700_000_000.5)
    sent = [{"Attributes": {"SentTimestamp": f"{1_699_999_999 + n}000"}} for n in range(2)]
    made = poller(queue, deliveries=deliveries)
    asyncio.run(made.deliver([message(n) | attributes for n, attributes in enumerate(sent)]))
    assert queue.now_s == waited_s
    assert queue.deleted == ["handle0", "handle1"]


def test_batches_are_in_flight_up_to_the_concurrency_of_the_mapping() -> None:
    async def scene() -> None:
        queue, most, flying = FakeQueue([(0.0, 60)]), 0, 0
        release = asyncio.Event()

        async def invoke(name: str, event: bytes) -> Outcome:
            nonlocal most, flying
            flying += 1
            most = max(most, flying)
            await release.wait()
            flying -= 1
            return DONE

        source = EventSource("save", "arn:q", "http://q", 10, 0.0, 3, reports_failures=True)
        made = Poller(source, queue, invoke, region="x", max_concurrency=8)
        task = asyncio.create_task(made.run())
        for _ in range(200):
            await asyncio.sleep(0)
        assert (flying, len(queue.waiting)) == (3, 30)
        release.set()
        async with asyncio.timeout(LIMIT_S):
            while len(queue.deleted) < 60:
                await asyncio.sleep(0)
        assert most == 3
        task.cancel()

    asyncio.run(scene())


def test_record_has_the_shape_of_lambdas_events() -> None:
    result = message(1) | {
        "Attributes": {"ApproximateReceiveCount": "2", "SentTimestamp": "1700000000000"},
        "MessageAttributes": {"cause": {"StringValue": "poison", "DataType": "String"}},
    }
    assert make_record(result, "arn:q", "us-east-1") == {
        "messageId": "id1",
        "receiptHandle": "handle1",
        "body": "x",
        "attributes": {"ApproximateReceiveCount": "2", "SentTimestamp": "1700000000000"},
        "messageAttributes": {
            "cause": {
                "stringValue": "poison",
                "stringListValues": [],
                "binaryListValues": [],
                "dataType": "String",
            }
        },
        "md5OfBody": "md5",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:q",
        "awsRegion": "us-east-1",
    }


def test_mapping_is_read_from_what_lambda_lists() -> None:
    results = {
        "FunctionArn": "arn:aws:lambda:us-east-1:1:function:plaza-Save-1",
        "EventSourceArn": "arn:aws:sqs:us-east-1:1:reactions",
        "BatchSize": 1000,
        "MaximumBatchingWindowInSeconds": 1,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": 8},
    }
    assert EventSource.from_description(results, "http://q") == EventSource(
        "plaza-Save-1",
        "arn:aws:sqs:us-east-1:1:reactions",
        "http://q",
        1000,
        1.0,
        8,
        reports_failures=True,
    )
    assert read_failures(b"null") == frozenset()
