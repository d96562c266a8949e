"""A client of AWS services with a JSON protocol over one persistent connection, without botocore.

It sends to SQS and reads from Secrets Manager over HTTP/1.1, signed with Signature Version 4.
Requests equal botocore's byte for byte, except headers that are not signed, for about a
tenth of the CPU; and a function that needs no other call of AWS saves the import of botocore, which
takes longer than all of its own imports.

It uses the credentials in the environment of a Lambda function. With credentials from elsewhere,
which may have to be refreshed, there is no client and the callers use botocore.

Source: docs.aws.amazon.com, "Create a signed AWS API request", "Amazon SQS API: AWS JSON protocol".
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import select
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from plaza.infra.aws import tls
from plaza.infra.runtime import clock

CONNECT_TIMEOUT_S = 1.0
READ_TIMEOUT_S = 2.0
_RECEIVED_BYTES = 65_536
_MAX_HEAD_BYTES = 65_536
_encode = json.JSONEncoder().encode


class AwsError(Exception):
    """A service of AWS refused a request or is unreachable.
    ``code`` names the cause. ``is_passing``: a retry in a moment may succeed."""

    def __init__(self, code: str, *, is_passing: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.is_passing = is_passing

    @classmethod
    def of_reply(cls, status: int, code: str) -> AwsError:
        """Return the error of a reply: passing if AWS throttled or failed (HTTP 5xx)."""
        return cls(code, is_passing=status >= 500 or "Throttl" in code)


class Service(NamedTuple):
    """What requests to a service have: its name in signatures, their type, the beginning of their
    target, further headers that are signed; and the variable with its endpoint, if it is not AWS.
    """

    name: str
    content_type: str
    target: str
    headers: Mapping[str, str]
    endpoint_variable: str


SQS = Service(
    "sqs",
    "application/x-amz-json-1.0",
    "AmazonSQS",
    {"x-amzn-query-mode": "true"},
    "AWS_ENDPOINT_URL_SQS",
)
SECRETS_MANAGER = Service(
    "secretsmanager",
    "application/x-amz-json-1.1",
    "secretsmanager",
    {},
    "AWS_ENDPOINT_URL_SECRETS_MANAGER",
)


class Credentials(NamedTuple):
    """Credentials of AWS; ``token`` is '' for an IAM user."""

    access_key: str
    secret_key: str
    token: str


class _Begun(NamedTuple):
    """What requests within a second have in common: the beginning of what is hashed, of what is
    signed, and of the head up to the signature."""

    second: int
    day: str
    request: str
    text: str
    head: str


class AwsJsonClient:
    """A connection to a service in one region. Not safe for several threads."""

    def __init__(self, service: Service, url: str, region: str, credentials: Credentials) -> None:
        parts = urlsplit(url)
        self._service = service
        self._is_tls = parts.scheme == "https"
        self._address = (str(parts.hostname), parts.port or (443 if self._is_tls else 80))
        self._host = parts.netloc
        self._region = region
        self._credentials = credentials
        self._signing: tuple[str, hmac.HMAC | None] = ("", None)  # day, HMAC with its key
        self._begun: dict[str, _Begun] = {}  # by action
        self._connection: socket.socket | None = None
        self._poll = select.poll()  # of the connection

    def post(self, action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Call one action; return its reply. One round trip, more on a new connection.

        Raises AwsError, passing if the connection was closed or AWS throttles or fails (HTTP 5xx),
        not passing after a timeout of 2 s.
        """
        body = _encode(parameters).encode()
        try:
            connection = self._connect()
            connection.sendall(self._render(action, body, clock.now_s()))
            status, head, received = _receive(connection)
            reply: dict[str, Any] = json.loads(received.decode()) if status == 200 else {}
        except TimeoutError:
            self.close()
            raise AwsError("ReadTimeout") from None
        except (OSError, ValueError) as error:
            self.close()
            raise AwsError(type(error).__name__, is_passing=isinstance(error, OSError)) from error
        if _find_header(head, b"connection").lower() == b"close":
            self.close()
        if status == 200:
            return reply
        raise AwsError.of_reply(status, _find_code(head, received))

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> socket.socket:
        """Return the connection, a new one if AWS closed the last one."""
        if self._connection is not None:
            if not self._poll.poll(0):
                return self._connection
            self.close()
        try:
            opened = socket.create_connection(self._address, CONNECT_TIMEOUT_S)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._is_tls:
                context = tls.verifying_context(None)
                opened = context.wrap_socket(opened, server_hostname=self._address[0])
        except OSError as error:
            raise AwsError(f"ConnectionFailed.{type(error).__name__}") from error
        opened.settimeout(READ_TIMEOUT_S)
        self._connection, self._poll = opened, select.poll()
        self._poll.register(opened, select.POLLIN)
        return opened

    def _render(self, action: str, body: bytes, now_s: float) -> bytes:
        """Return a request that is signed for the time ``now_s``."""
        begun = self._begun.get(action)
        if begun is None or begun.second != int(now_s):
            begun = self._begun[action] = self._begin(action, int(now_s))
        digest = hashlib.sha256(body).hexdigest()
        request_digest = hashlib.sha256((begun.request + digest).encode()).hexdigest()
        mac = self._mac_of(begun.day)
        mac.update((begun.text + request_digest).encode())
        length = f"{mac.hexdigest()}\r\ncontent-length: {len(body)}\r\n\r\n"
        return (begun.head + length).encode() + body

    def _begin(self, action: str, second: int) -> _Begun:
        """Return what all requests of an action within a second begin with."""
        time = datetime.fromtimestamp(second, UTC).strftime("%Y%m%dT%H%M%SZ")
        signed = {
            "content-type": self._service.content_type,
            "host": self._host,
            "x-amz-date": time,
            "x-amz-security-token": self._credentials.token,
            "x-amz-target": f"{self._service.target}.{action}",
            **self._service.headers,
        }
        if not self._credentials.token:
            del signed["x-amz-security-token"]
        lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
        names = ";".join(signed)
        scope = f"{time[:8]}/{self._region}/{self._service.name}/aws4_request"
        head = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
        return _Begun(
            second,
            time[:8],
            f"POST\n/\n\n{lines}\n{names}\n",
            f"AWS4-HMAC-SHA256\n{time}\n{scope}\n",
            f"POST / HTTP/1.1\r\n{head}"
            f"authorization: AWS4-HMAC-SHA256 Credential={self._credentials.access_key}/{scope},"
            f" SignedHeaders={names}, Signature=",
        )

    def _mac_of(self, day: str) -> hmac.HMAC:
        """Return an HMAC of nothing yet with the signing key of a day, which is computed once a
        day. To copy it takes a quarter of the time of ``hmac.digest``."""
        of_day, mac = self._signing
        if mac is None or of_day != day:
            key = f"AWS4{self._credentials.secret_key}".encode()
            for part in (day, self._region, self._service.name, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            mac = hmac.new(key, digestmod="sha256")
            self._signing = (day, mac)
        return mac.copy()


def make_client(service: Service, queue_url: str | None = None) -> AwsJsonClient | None:
    """Return a client with the credentials and region in the environment of a Lambda function.
    None if the environment lacks them, or if its credentials expire. ``queue_url`` has the address
    of SQS, which may belong to another region."""
    env = os.environ
    region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION")
    access_key, secret_key = env.get("AWS_ACCESS_KEY_ID"), env.get("AWS_SECRET_ACCESS_KEY")
    if not (region and access_key and secret_key) or env.get("AWS_CREDENTIAL_EXPIRATION"):
        return None
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    url = (
        env.get(service.endpoint_variable)
        or env.get("AWS_ENDPOINT_URL")
        or queue_url
        or f"https://{service.name}.{region}.{domain}"
    )
    credentials = Credentials(access_key, secret_key, env.get("AWS_SESSION_TOKEN", ""))
    return AwsJsonClient(service, url, region, credentials)


def _receive(connection: socket.socket) -> tuple[int, bytes, bytes]:
    """Receive one reply: status, head, body. Raises OSError; ValueError if it is not HTTP."""
    received = b""
    while (end := received.find(b"\r\n\r\n")) < 0:
        if len(received) > _MAX_HEAD_BYTES:
            raise ValueError("the head of the reply is too long")
        received += _receive_some(connection)
    head, rest = received[:end], received[end + 4 :]
    status = int(head.partition(b" ")[2][:3])
    if _find_header(head, b"transfer-encoding").lower() == b"chunked":
        return status, head, _receive_chunks(connection, rest)
    length = int(_find_header(head, b"content-length") or 0)
    while len(rest) < length:
        rest += _receive_some(connection)
    return status, head, rest[:length]


def _find_header(head: bytes, name: bytes) -> bytes:
    """Return the value of the header ``name``, in lower case, of a reply; empty without it.
    Three of ten headers are read, so a search costs less than to parse all of them."""
    start = head.lower().find(b"\r\n%s:" % name)
    if start < 0:
        return b""
    return head[start + len(name) + 3 :].partition(b"\r\n")[0].strip()


def _receive_chunks(connection: socket.socket, rest: bytes) -> bytes:
    """Receive a chunked body that begins with ``rest``."""
    body = b""
    while True:
        while (end := rest.find(b"\r\n")) < 0:
            rest += _receive_some(connection)
        size = int(rest[:end].partition(b";")[0], 16)
        rest = rest[end + 2 :]
        while len(rest) < size + 2:
            rest += _receive_some(connection)
        if size == 0:
            return body
        body, rest = body + rest[:size], rest[size + 2 :]


def _receive_some(connection: socket.socket) -> bytes:
    some = connection.recv(_RECEIVED_BYTES)
    if not some:
        raise ConnectionResetError("the connection was closed")
    return some


def _find_code(head: bytes, reply: bytes) -> str:
    """Return the code of an error reply, by the rules of botocore."""
    if query_error := _find_header(head, b"x-amzn-query-error"):
        return query_error.decode("latin-1").partition(";")[0]
    try:
        code = json.loads(reply).get("__type", "")
    except (ValueError, AttributeError):
        code = ""
    return str(code).rpartition("#")[2] or "Unknown"
