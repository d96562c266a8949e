"""Event source mappings: batches of messages from SQS to functions, as by Lambda's pollers.

A function is invoked when its batch is full (messages or bytes) or the window is over. Messages
that it reports as failed stay in the queue until the visibility timeout; the others are deleted.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from local.stack.event_source import EventSource
from local.stack.worker_parent import MAX_PAYLOAD_BYTES
from local.stack.workers import Outcome

MAX_RECEIVED = 10  # messages of one ReceiveMessage, entries of one DeleteMessageBatch
LONG_POLL_S = 20
REFILL_INTERVAL_S = 0.1  # between two receives from a queue that had less than a full response
BACKOFF_S = 1.0
MAX_MESSAGE_BYTES = 256 * 1024
MAX_BATCH_BYTES = MAX_PAYLOAD_BYTES - MAX_RECEIVED * MAX_MESSAGE_BYTES  # room for one response
_ENVELOPE_BYTES = 1024  # of a record without its body

logger = logging.getLogger(__name__)
Invoke = Callable[[str, bytes], Awaitable[Outcome]]


@dataclass(slots=True)
class Deliveries:
    """How often each batch is delivered, at once: SQS promises at least once. And how late.

    ``lags_s``: URL of a queue -> seconds from the send of a message to its delivery, at least.
    """

    copies: int = 1
    lags_s: Mapping[str, float] = field(default_factory=dict)


class Sqs:
    """The SQS calls of a poller, over the JSON protocol."""

    def __init__(self, session: aiohttp.ClientSession, endpoint_url: str, region: str) -> None:
        self._session = session
        self._endpoint_url = endpoint_url
        self._scope = f"Credential=test/20200101/{region}/sqs/aws4_request"

    async def receive(self, queue_url: str, count: int, wait_s: int) -> list[dict[str, Any]]:
        """Receive up to ``count`` messages, waiting for the first. Raises ClientError."""
        answer = await self._call(
            "ReceiveMessage",
            {
                "QueueUrl": queue_url,
                "MaxNumberOfMessages": count,
                "WaitTimeSeconds": wait_s,
                "AttributeNames": ["All"],
                "MessageAttributeNames": ["All"],
            },
        )
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    async def delete(self, queue_url: str, receipt_handles: Sequence[str]) -> None:
        """Delete messages, ten in a call. Raises ClientError."""
        for start in range(0, len(receipt_handles), MAX_RECEIVED):
            some = receipt_handles[start : start + MAX_RECEIVED]
            entries = [{"Id": str(n), "ReceiptHandle": handle} for n, handle in enumerate(some)]
            await self._call("DeleteMessageBatch", {"QueueUrl": queue_url, "Entries": entries})

    async def _call(self, action: str, request: Mapping[str, Any]) -> dict[str, Any]:
        headers = {
            "X-Amz-Target": f"AmazonSQS.{action}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": f"AWS4-HMAC-SHA256 {self._scope}, SignedHeaders=host, Signature=0",
        }
        async with self._session.post(
            self._endpoint_url, data=json.dumps(request), headers=headers, raise_for_status=True
        ) as response:
            answer: dict[str, Any] = await response.json(content_type=None)
            return answer


class Poller:
    """Moves the messages of one mapping to its function until it is cancelled."""

    def __init__(
        self,
        mapping: EventSource,
        sqs: Sqs,
        invoke: Invoke,
        *,
        region: str,
        max_concurrency: int,
        deliveries: Deliveries | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mapping = mapping
        self._sqs = sqs
        self._invoke = invoke
        self._region = region
        self._free = asyncio.Semaphore(min(mapping.max_concurrency, max_concurrency))
        self._deliveries = deliveries or Deliveries()
        self._clock = clock

    async def run(self) -> None:
        """Collect and deliver batches for ever; retries when the queue does not answer."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._free.acquire()
                try:
                    batch = await self.collect()
                except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                    self._free.release()
                    logger.warning("%s: %r", self._mapping.queue_url, error)
                    await asyncio.sleep(BACKOFF_S)
                    continue
                if batch:
                    group.create_task(self._deliver_and_release(batch))
                else:
                    self._free.release()

    async def collect(self) -> list[dict[str, Any]]:
        """Return the next batch; empty when no message came for a while. Raises ClientError."""
        mapping = self._mapping
        count = min(MAX_RECEIVED, mapping.batch_size)
        batch = await self._sqs.receive(mapping.queue_url, count, LONG_POLL_S)
        received = len(batch)
        if not batch:
            return batch
        over_s = self._clock() + mapping.window_s
        weight = _estimate_bytes(batch)
        while len(batch) < mapping.batch_size and weight < MAX_BATCH_BYTES:
            left_s = over_s - self._clock()
            if received < count:
                if left_s <= 0:
                    break
                await asyncio.sleep(min(REFILL_INTERVAL_S, left_s))
            elif mapping.window_s == 0:
                break
            count = min(MAX_RECEIVED, mapping.batch_size - len(batch))
            more = await self._sqs.receive(mapping.queue_url, count, 0)
            received = len(more)
            batch += more
            weight += _estimate_bytes(more)
        return batch

    async def _deliver_and_release(self, batch: Sequence[Mapping[str, Any]]) -> None:
        try:
            await self.deliver(batch)
        except (aiohttp.ClientError, TimeoutError) as error:
            logger.warning("%s: %r", self._mapping.queue_url, error)
        finally:
            self._free.release()

    async def deliver(self, batch: Sequence[Mapping[str, Any]]) -> None:
        """Invoke the function with a batch, and delete the handled messages. Raises ClientError."""
        mapping = self._mapping
        if lag_s := self._deliveries.lags_s.get(mapping.queue_url, 0.0):
            sent_s = max(int(message["Attributes"]["SentTimestamp"]) for message in batch) / 1000
            await asyncio.sleep(sent_s + lag_s - time.time())
        records = [make_record(message, mapping.queue_arn, self._region) for message in batch]
        event = json.dumps({"Records": records}).encode()
        outcomes = await asyncio.gather(
            *(self._invoke(mapping.function, event) for _ in range(self._deliveries.copies))
        )
        failed: set[str] = set()
        for outcome in outcomes:
            if outcome.failed:
                cause = outcome.payload[:500].decode(errors="replace")
                logger.warning(
                    "%s failed with %d messages: %s", mapping.function, len(batch), cause
                )
                await asyncio.sleep(BACKOFF_S)
                return
            reported = read_failures(outcome.payload) if mapping.reports_failures else frozenset()
            if reported is None or not reported <= {message["MessageId"] for message in batch}:
                logger.warning("%s reported malformed failures", mapping.function)
                return
            failed |= reported
        receipts = [each["ReceiptHandle"] for each in batch if each["MessageId"] not in failed]
        await self._sqs.delete(mapping.queue_url, receipts)


def make_record(message: Mapping[str, Any], queue_arn: str, region: str) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {
            name: {
                "stringListValues": [],
                "binaryListValues": [],
                **{key[0].lower() + key[1:]: part for key, part in value.items()},
            }
            for name, value in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": region,
    }


def read_failures(payload: bytes) -> frozenset[str] | None:
    """Return ids of the messages that a function reports as failed; None for a malformed report.

    For Lambda all messages failed then, and none when the function returns nothing.
    """
    answer = json.loads(payload)
    if answer is None:
        return frozenset()
    with contextlib.suppress(AttributeError, KeyError, TypeError):
        failures = answer.get("batchItemFailures") or ()
        return frozenset(str(failure["itemIdentifier"]) for failure in failures)
    return None


def _estimate_bytes(batch: Sequence[Mapping[str, Any]]) -> int:
    return sum(len(json.dumps(message["Body"])) + _ENVELOPE_BYTES for message in batch)
