"""HTTP servers of tests, on loopback ports."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread


class Quiet:
    """The part of a handler with which it logs nothing."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve until the end of the block; yield the URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def dripping() -> Iterator[str]:
    """Serve headers that never end, a byte each 20 ms, until the end of the block; yield the
    URL."""
    ended = Event()
    handlers: list[Thread] = []

    def drip(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
            while not ended.wait(0.02):
                connection.sendall(b"x")

    def accept() -> None:
        with suppress(OSError):
            while not ended.is_set():
                handler = Thread(target=drip, args=(listener.accept()[0],), daemon=True)
                handlers.append(handler)
                handler.start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        acceptor = Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            ended.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            for thread in (acceptor, *handlers):
                thread.join(5)
