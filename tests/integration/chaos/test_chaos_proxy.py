"""The proxy of the failure matrix, mode by mode."""

from __future__ import annotations

import http.client
import json
import socket
import socketserver
import threading
import time
from collections.abc import Iterator

import pytest

from tests.chaos.proxy import Proxy


class _Echo(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        while data := self.request.recv(100):
            self.request.sendall(self.server.name + data)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, name: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Echo)
        self.name = name


def serve(name: bytes) -> int:
    server = _Server(name)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as proxy:
        yield proxy


@pytest.fixture
def port(proxy: Proxy) -> int:
    return proxy.add_route("echo", serve(b"one:"))


def connect(port: int, timeout_s: float = 5) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout_s)


def ask(connection: socket.socket, data: bytes = b"hi") -> bytes:
    connection.sendall(data)
    return connection.recv(100)


def test_pass_forwards_data(port: int) -> None:
    with connect(port) as connection:
        assert ask(connection) == b"one:hi"
        assert ask(connection, b"ho") == b"one:ho"


def test_slow_delays_and_keeps_data(proxy: Proxy, port: int) -> None:
    with connect(port) as connection:
        proxy.set("echo", "slow", delay_s=0.3)
        began_s = time.monotonic()
        assert ask(connection) == b"one:hi"
        assert time.monotonic() - began_s >= 0.3
        proxy.set("echo", "pass")
        assert ask(connection) == b"one:hi"


def test_hang_accepts_connections_and_forwards_buffered_data_later(proxy: Proxy, port: int) -> None:
    with connect(port, 0.2) as old:
        assert ask(old) == b"one:hi"
        proxy.set("echo", "hang")
        with connect(port, 0.2) as new:
            for connection in (old, new):
                with pytest.raises(TimeoutError):
                    ask(connection, b"held")
            proxy.set("echo", "pass")
            for connection in (old, new):
                connection.settimeout(5)
                assert connection.recv(100) == b"one:held"


def test_refuse_resets_open_and_new_connections(proxy: Proxy, port: int) -> None:
    with connect(port) as old:
        assert ask(old) == b"one:hi"
        proxy.set("echo", "refuse")
        with pytest.raises(ConnectionError):
            ask(old) or ask(old)
    with pytest.raises(ConnectionError), connect(port) as new:
        ask(new)
    proxy.set("echo", "pass")
    with connect(port) as again:
        assert ask(again) == b"one:hi"


def test_close_closes_the_port_and_reopens_the_same_one(proxy: Proxy, port: int) -> None:
    with connect(port) as old:
        assert ask(old) == b"one:hi"
        proxy.set("echo", "close")
        with pytest.raises(ConnectionError):
            ask(old) or ask(old)
    with pytest.raises(ConnectionRefusedError):
        connect(port)
    proxy.set("echo", "pass")
    with connect(port) as again:
        assert ask(again) == b"one:hi"


@pytest.mark.parametrize(
    ("mode", "status", "data"), [("throttle", 400, "Throttling"), ("fail", 500, "InternalFailure")]
)
def test_http_is_refused_as_by_sqs(
    proxy: Proxy, port: int, mode: str, status: int, data: str
) -> None:
    proxy.set("echo", mode)
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    for _ in range(2):
        client.request("POST", "/", json.dumps({"a": 1}))
        answer = client.getresponse()
        assert answer.status == status
        assert data in json.loads(answer.read())["__type"]
    client.close()


def test_route_can_move_to_another_server_for_new_connections(proxy: Proxy, port: int) -> None:
    with connect(port) as old:
        assert ask(old) == b"one:hi"
        proxy.set("echo", "pass", target=serve(b"two:"))
        assert ask(old) == b"one:hi"
        with connect(port) as new:
            assert ask(new) == b"two:hi"


def test_connection_to_an_ended_server_is_reset(proxy: Proxy) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = proxy.add_route("dead", free.getsockname()[1])
    try:
        with connect(port) as connection:
            data = connection.recv(100)
    except ConnectionError:
        data = b""
    assert data == b"", "reset at once, not a TimeoutError"


def test_lose_drops_one_answer_of_an_executed_request(proxy: Proxy, port: int) -> None:
    with connect(port) as connection:
        assert ask(connection) == b"one:hi"
        proxy.set("echo", "lose")
        with pytest.raises(ConnectionResetError):
            ask(connection)
    with connect(port) as connection:
        assert ask(connection) == b"one:hi"
