"""The JSON client of AWS on a socket: replies, closed connections, timeouts, TLS, secrets."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from plaza.infra.aws import aws_json, secrets, tls
from plaza.infra.aws.aws_json import SQS, AwsError, AwsJsonClient, Credentials
from plaza.infra.aws.secrets import SecretsDown
from tests.support.certificates import make_certificates

OK = b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"MessageId":"1"}'
QUEUE_URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/plaza-reactions"
CREDENTIALS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG", "token")
Serve = Callable[[Sequence[Sequence[bytes]]], AwsJsonClient]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """``serve([[a, b], [c]])`` replies a and b on a first connection, closes it, and replies c on a
    second one."""
    monkeypatch.setattr(aws_json, "READ_TIMEOUT_S", 0.5)
    threads: list[threading.Thread] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def run_server(connections: Sequence[Sequence[bytes]]) -> None:
        for replies in connections:
            connection, _ = listener.accept()
            with closing(connection):
                connection.settimeout(5)
                for reply in replies:
                    read_request(connection)
                    connection.sendall(reply)
                if not replies:
                    read_request(connection)
                if replies and replies[-1] == b"":
                    released.wait(5)

    def start(connections: Sequence[Sequence[bytes]]) -> AwsJsonClient:
        threads.append(threading.Thread(target=run_server, args=(connections,), daemon=True))
        threads[0].start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        return AwsJsonClient(SQS, url, "eu-central-1", CREDENTIALS)

    released = threading.Event()
    yield start
    released.set()
    for thread in threads:
        thread.join(5)
    listener.close()


def refused(body: bytes, header: bytes = b"") -> bytes:
    return b"HTTP/1.1 400 Bad\r\n%sContent-Length: %d\r\n\r\n%s" % (header, len(body), body)


def read_request(connection: socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)


def post(sender: AwsJsonClient) -> dict[str, Any]:
    return sender.post("SendMessage", {"QueueUrl": QUEUE_URL, "MessageBody": "x"})


def test_a_connection_is_reused(serve: Serve) -> None:
    sender = serve([[OK, OK]])
    assert post(sender) == post(sender) == {"MessageId": "1"}


def test_a_closed_connection_is_replaced_before_it_is_used(
    serve: Serve,
) -> None:
    sender = serve([[OK], [OK]])
    post(sender)
    connection = sender._connection
    assert connection is not None
    connection.recv(1, socket.MSG_PEEK)  # waits until the close has arrived
    assert post(sender) == {"MessageId": "1"}


CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b'5\r\n{"Mes\r\nc;x=y\r\nsageId":"1"}\r\n0\r\n\r\n'
)


@pytest.mark.parametrize("received_bytes", [1, 65_536])
@pytest.mark.parametrize("reply", [OK, CHUNKED], ids=["length", "chunks"])
def test_a_reply_may_come_in_pieces_and_chunks(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, reply: bytes, received_bytes: int
) -> None:
    monkeypatch.setattr(aws_json, "_RECEIVED_BYTES", received_bytes)
    sender = serve([[reply, OK]])
    assert post(sender) == post(sender) == {"MessageId": "1"}


def test_headers_are_found_in_any_case_and_order(serve: Serve) -> None:
    reply = (
        b"HTTP/1.1 200 OK\r\nx-note: content-length: 3, connection:close\r\n"
        b"x-content-length: 4\r\nCONNECTION:keep-alive\r\n"
        b'CONTENT-length:17 \r\n\r\n{"MessageId":"1"}'
    )
    sender = serve([[reply, reply]])
    assert post(sender) == post(sender) == {"MessageId": "1"}


@pytest.mark.parametrize(
    ("reply", "code", "is_passing"),
    [
        (b"HTTP/1.1 503 Slow\r\nContent-Length: 0\r\n\r\n", "Unknown", True),
        (
            refused(b'{"__type":"com.amazonaws.sqs#RequestThrottled"}'),
            "RequestThrottled",
            True,
        ),
        (
            refused(b"{}", b"x-amzn-query-error: AWS.Gone;Sender\r\n"),
            "AWS.Gone",
            False,
        ),
        (b"nonsense\r\n\r\n", "ValueError", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "JSONDecodeError", False),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", "JSONDecodeError", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}", "ValueError", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", "ConnectionResetError", True),
        (b"", "ReadTimeout", False),
    ],
    ids=[
        "failed",
        "throttled",
        "refused",
        "nonsense",
        "no JSON",
        "no length",
        "no number",
        "cut",
        "silent",
    ],
)
def test_a_failed_request_raises_an_error_with_its_code(
    serve: Serve, reply: bytes, code: str, is_passing: bool
) -> None:
    with pytest.raises(AwsError) as caught:
        post(serve([[reply]]))
    assert (caught.value.code, caught.value.is_passing) == (code, is_passing)


def test_a_connection_that_closes_without_a_reply_is_passing(serve: Serve) -> None:
    sender = serve([[], [OK]])
    with pytest.raises(AwsError) as caught:
        post(sender)
    assert caught.value.is_passing
    assert post(sender) == {"MessageId": "1"}


def test_a_connection_closed_after_its_reply_is_replaced(serve: Serve) -> None:
    closing_reply = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    sender = serve([[closing_reply], [OK]])
    assert post(sender) == post(sender) == {"MessageId": "1"}


def test_a_refused_connection_is_not_passing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(AwsError, match="ConnectionFailed") as caught:
        post(AwsJsonClient(SQS, f"http://127.0.0.1:{port}", "eu-central-1", CREDENTIALS))
    assert not caught.value.is_passing


# ---------------------------------------------------------------- TLS


def test_all_connections_share_one_tls_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To load the system's certificates takes more CPU than a hundred requests."""
    certificates = make_certificates(tmp_path / "tls")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificates.cert, certificates.key)
    create, created = ssl.create_default_context, []

    def count(**_: Any) -> ssl.SSLContext:
        created.append(1)
        return create(cafile=certificates.ca)

    def answer(listener: socket.socket) -> None:
        for _ in range(3):
            accepted, _ = listener.accept()
            with server.wrap_socket(accepted, server_side=True) as connection:
                read_request(connection)
                connection.sendall(OK)

    monkeypatch.setattr(ssl, "create_default_context", count)
    tls.verifying_context.cache_clear()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,), daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        sender = AwsJsonClient(SQS, url, "eu-central-1", CREDENTIALS)
        for _ in range(3):
            assert post(sender) == {"MessageId": "1"}
            sender.close()
        thread.join(5)
    tls.verifying_context.cache_clear()
    assert created == [1]


# ---------------------------------------------------------------- secrets

SECRET = b'HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n{"SecretString":"text"}'
FAILED = b"HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("replies", [[[SECRET]], [[FAILED, SECRET]], [[], [SECRET]]])
def test_a_secret_is_read_again_after_a_passing_failure(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, replies: Sequence[Sequence[bytes]]
) -> None:
    client = serve(replies)
    monkeypatch.setattr(aws_json, "make_client", lambda service: client)
    assert secrets._fetch("plaza/redis") == "text"


@pytest.mark.parametrize(
    "reply", [[FAILED, FAILED], [refused(b'{"__type":"AccessDeniedException"}')]]
)
def test_a_secret_that_can_not_be_read_is_down(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, reply: Sequence[bytes]
) -> None:
    client = serve([reply])
    monkeypatch.setattr(aws_json, "make_client", lambda service: client)
    with pytest.raises(SecretsDown):
        secrets._fetch("plaza/redis")
