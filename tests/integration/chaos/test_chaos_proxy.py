"""The proxy of the failure matrix does to a connection what it says."""

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
        while said := self.request.recv(100):
            self.request.sendall(self.server.name + said)


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


def ask(connection: socket.socket, said: bytes = b"hi") -> bytes:
    connection.sendall(said)
    return connection.recv(100)


def test_what_comes_in_goes_out(port: int) -> None:
    with connect(port) as connection:
        assert ask(connection) == b"one:hi"
        assert ask(connection, b"ho") == b"one:ho"


def test_slow_is_slow_and_right(proxy: Proxy, port: int) -> None:
    with connect(port) as connection:
        proxy.set("echo", "slow", delay_s=0.3)
        began_s = time.monotonic()
        assert ask(connection) == b"one:hi"
        assert time.monotonic() - began_s >= 0.3
        proxy.set("echo", "pass")
        assert ask(connection) == b"one:hi"


def test_a_hanging_road_takes_connections_and_lets_what_it_held_through_later(
    proxy: Proxy, port: int
) -> None:
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


def test_a_refusing_road_resets_old_and_new_connections(proxy: Proxy, port: int) -> None:
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


def test_on_a_closed_road_nobody_listens_and_it_opens_at_the_same_port(
    proxy: Proxy, port: int
) -> None:
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
    ("mode", "status", "said"), [("throttle", 400, "Throttling"), ("fail", 500, "InternalFailure")]
)
def test_http_is_refused_as_sqs_does(
    proxy: Proxy, port: int, mode: str, status: int, said: str
) -> None:
    proxy.set("echo", mode)
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    for _ in range(2):
        client.request("POST", "/", json.dumps({"a": 1}))
        answer = client.getresponse()
        assert answer.status == status
        assert said in json.loads(answer.read())["__type"]
    client.close()


def test_a_road_can_lead_to_another_server_for_new_connections(proxy: Proxy, port: int) -> None:
    with connect(port) as old:
        assert ask(old) == b"one:hi"
        proxy.set("echo", "pass", target=serve(b"two:"))
        assert ask(old) == b"one:hi"
        with connect(port) as new:
            assert ask(new) == b"two:hi"


def test_a_server_that_ended_is_a_connection_that_is_reset(proxy: Proxy) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = proxy.add_route("dead", free.getsockname()[1])
    try:
        with connect(port) as connection:
            said = connection.recv(100)
    except ConnectionError:
        said = b""
    assert said == b"", "not a TimeoutError: it is told at once"


def test_an_answer_is_lost_once_and_its_request_is_executed(proxy: Proxy, port: int) -> None:
    with connect(port) as connection:
        assert ask(connection) == b"one:hi"
        proxy.set("echo", "lose")
        with pytest.raises(ConnectionResetError):
            ask(connection)
    with connect(port) as connection:
        assert ask(connection) == b"one:hi"
