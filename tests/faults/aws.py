"""SQS, S3 and Secrets Manager for one test process, over HTTP, in memory.

Only the calls of Plaza; CloudWatch has no metrics. Time does not pass: a test decides when a delay
or a visibility timeout has ended.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.support.push_service import KeyPair

_S3 = "http://s3.amazonaws.com/doc/2006-03-01/"
_CREDENTIAL = re.compile(r"Credential=([^/]+)/")
_ids = itertools.count(1)

PUSH_KEY_ID = "push-key"
"""The secret of the key that signs requests to push services."""
_make_push_key = cache(lambda: KeyPair().pem)


@dataclass
class QueuedMessage:
    """A message of a queue. ``sender``: the access key of the request that sent it."""

    body: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    delay_s: int = 0
    is_received: bool = False
    receives: int = 0
    id: str = field(default_factory=lambda: f"message-{next(_ids)}")
    sent_ms: int = field(default_factory=lambda: int(time.time() * 1000))
    sender: str = ""

    @property
    def is_visible(self) -> bool:
        """Return whether it can be received."""
        return not (self.is_received or self.delay_s)


class Aws:
    """The services. ``queues`` by name, ``objects`` by path, ``secrets`` by id."""

    def __init__(self) -> None:
        self.queues: dict[str, list[QueuedMessage]] = {}
        self.objects: dict[str, bytes] = {}
        self.refusing: set[str] = set()
        """Queues whose requests are answered 503."""
        self._lock = threading.Lock()
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Serve on a loopback port in the block; ``url`` is its address."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def url_of(self, queue: str) -> str:
        """Return the URL of a queue."""
        return f"{self.url}/000000000000/{queue}"

    def count(self) -> dict[str, int]:
        """Return the number of messages of each queue that has any."""
        with self._lock:
            return {name: len(messages) for name, messages in self.queues.items() if messages}

    def remove_messages(self, queue: str, limit: int) -> list[QueuedMessage]:
        """Remove messages from a queue, the oldest first, as if every delay had ended."""
        with self._lock:
            messages = self.queues.get(queue, [])
            taken, self.queues[queue] = messages[:limit], messages[limit:]
            return taken

    def put(self, queue: str, messages: list[QueuedMessage]) -> None:
        """Add visible messages to a queue."""
        for message in messages:
            message.is_received, message.delay_s = False, 0
        with self._lock:
            self.queues.setdefault(queue, []).extend(messages)

    def end_visibility(self) -> None:
        """Show received and undeleted messages, as after the visibility timeout."""
        with self._lock:
            for message in (item for messages in self.queues.values() for item in messages):
                message.is_received = False

    def clear(self) -> None:
        """Delete all messages and objects."""
        with self._lock:
            self.queues.clear()
            self.objects.clear()
            self.refusing.clear()

    def _call(
        self, target: str, request: dict[str, Any], sender: str
    ) -> tuple[int, dict[str, Any]]:
        service, _, action = target.partition(".")
        if service == "secretsmanager":
            secret_id = request["SecretId"]
            is_key = secret_id == PUSH_KEY_ID
            value = _make_push_key() if is_key else f"the secret {secret_id}"
            return 200, {"Name": secret_id, "SecretString": value}
        if service.startswith("GraniteService"):  # CloudWatch
            return 200, {"MetricDataResults": []}
        if service != "AmazonSQS":
            return 400, {"__type": "UnknownOperationException", "message": target}
        queue = urlsplit(request["QueueUrl"]).path.rpartition("/")[2]
        if queue in self.refusing:
            return 503, {"__type": "ServiceUnavailable", "message": "refused"}
        with self._lock:
            return 200, self._sqs(action, self.queues.setdefault(queue, []), request, sender)

    def _sqs(
        self, action: str, messages: list[QueuedMessage], request: dict[str, Any], sender: str
    ) -> dict[str, Any]:
        match action:
            case "SendMessage":
                return _send(messages, request, sender)
            case "SendMessageBatch":
                sent = [
                    {"Id": entry["Id"], **_send(messages, entry, sender)}
                    for entry in request["Entries"]
                ]
                return {"Successful": sent, "Failed": []}
            case "ReceiveMessage":
                limit = request.get("MaxNumberOfMessages", 1)
                received = [message for message in messages if message.is_visible][:limit]
                return {"Messages": [_receive(message) for message in received]}
            case "DeleteMessageBatch":
                gone = {entry["ReceiptHandle"] for entry in request["Entries"]}
                messages[:] = [message for message in messages if message.id not in gone]
                return {"Successful": [{"Id": entry["Id"]} for entry in request["Entries"]]}
            case "ChangeMessageVisibilityBatch":
                shown = {
                    entry["ReceiptHandle"]
                    for entry in request["Entries"]
                    if not entry["VisibilityTimeout"]
                }
                for message in messages:
                    message.is_received &= message.id not in shown
                return {"Successful": [{"Id": entry["Id"]} for entry in request["Entries"]]}
            case "GetQueueAttributes":
                in_flight = sum(message.is_received for message in messages)
                visible = sum(message.is_visible for message in messages)
                return {
                    "Attributes": {
                        "ApproximateNumberOfMessages": str(visible),
                        "ApproximateNumberOfMessagesNotVisible": str(in_flight),
                        "ApproximateNumberOfMessagesDelayed": str(
                            len(messages) - visible - in_flight
                        ),
                    }
                }
        raise LookupError(f"SQS of the tests has no {action}")

    def _list(self, path: str, query: dict[str, list[str]]) -> bytes:
        bucket, prefix = path.strip("/"), query.get("prefix", [""])[0]
        with self._lock:
            keys = sorted(
                item.partition("/")[2]
                for item in self.objects
                if item.startswith(f"{bucket}/{prefix}")
            )
        contents = "".join(f"<Contents><Key>{escape(key)}</Key></Contents>" for key in keys)
        return (
            f'<ListBucketResult xmlns="{_S3}"><IsTruncated>false</IsTruncated>{contents}'
            "</ListBucketResult>"
        ).encode()

    def _handler(aws) -> type[BaseHTTPRequestHandler]:  # noqa: N805  # ``self`` is the request's
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self._read()
                if body is None:
                    return
                target = self.headers.get("x-amz-target", "")
                signed = _CREDENTIAL.search(self.headers.get("authorization", ""))
                try:
                    status, answer = aws._call(
                        target, json.loads(body or b"{}"), signed[1] if signed else ""
                    )
                except Exception as error:
                    status, answer = 400, {"__type": "ValidationError", "message": str(error)}
                self._answer(
                    status,
                    json.dumps(answer).encode(),
                    {"content-type": "application/x-amz-json-1.0"},
                )

            def do_PUT(self) -> None:
                body = self._read()
                if body is None:
                    return
                with aws._lock:
                    aws.objects[unquote(urlsplit(self.path).path).strip("/")] = body
                self._answer(200, b"", {"etag": f'"{hashlib.md5(body).hexdigest()}"'})

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                path, query = unquote(parts.path).strip("/"), parse_qs(parts.query)
                if "list-type" in query:
                    self._answer(200, aws._list(path, query), {"content-type": "application/xml"})
                    return
                with aws._lock:
                    body = aws.objects.get(path)
                if body is None:
                    missing = b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>"
                    self._answer(404, missing, {"content-type": "application/xml"})
                else:
                    self._answer(200, body, {"content-type": "application/octet-stream"})

            def _read(self) -> bytes | None:
                """Return the body; None when the client disconnected before its end."""
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(length)
                self.close_connection |= len(body) < length
                return body if len(body) == length else None

            def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """Log nothing."""

        return Handler


def _send(messages: list[QueuedMessage], request: dict[str, Any], sender: str) -> dict[str, Any]:
    message = QueuedMessage(
        request["MessageBody"],
        request.get("MessageAttributes", {}),
        request.get("DelaySeconds", 0),
        sender=sender,
    )
    messages.append(message)
    return {
        "MessageId": message.id,
        "MD5OfMessageBody": hashlib.md5(message.body.encode()).hexdigest(),
    }


def _receive(message: QueuedMessage) -> dict[str, Any]:
    message.is_received = True
    message.receives += 1
    return {
        "MessageId": message.id,
        "ReceiptHandle": message.id,
        "Body": message.body,
        "Attributes": {
            "SentTimestamp": str(message.sent_ms),
            "ApproximateReceiveCount": str(message.receives),
        },
        "MessageAttributes": dict(message.attributes),
    }
