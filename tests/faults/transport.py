"""Outgoing calls at the sockets: each is counted, and one of them is faulted.

A call is what a client sends before it reads the reply: a command or a pipeline of Redis, a command
of MySQL, an HTTP request to AWS. Any client is covered: while a ``Transport`` is installed, every
new socket is under its control.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from cli.paths import LAYER
from plaza.infra.redis.scripts import load_script

EXECUTION_TIMEOUT_S = 5.0
_MAX_TEXT = 120
_COM_QUERY = 3
_RESP_BULK = re.compile(rb"\$\d+\r\n")
_NUMBER = re.compile(r"\d{4,}")
_PLAIN_SOCKET = socket.socket


class Mode(StrEnum):
    """Effect on the faulted call."""

    DROPPED = "dropped"
    """Never executed; the connection is lost."""
    REPLY_DROPPED = "reply-dropped"
    """Executed; the connection is lost before the reply comes."""
    REPLY_LATE = "reply-late"
    """Executed; the client times out before the reply comes."""
    DELAYED = "delayed"
    """The client times out; the call is executed after the use case has answered."""
    OVERTAKEN = "overtaken"
    """The client times out; the call is executed after the requests that follow, too."""
    KILLED = "killed"
    """Executed; the process is killed before it does anything else."""


class Killed(BaseException):
    """The process is dead: no error handler may catch this."""


class Call(NamedTuple):
    """An outgoing call: its service, and its beginning."""

    service: str
    text: str

    def __str__(self) -> str:
        return f"{self.service} {self.text}"


class Fault(NamedTuple):
    """The faulted call, counted from 0, and its mode."""

    number: int
    mode: Mode


class Transport:
    """Outgoing calls of this process to ``services`` (port -> name) while it is installed."""

    def __init__(self, services: Mapping[int, str]) -> None:
        self.services = services
        self.calls: list[Call] = []
        self.fault: Fault | None = None
        self.reached: Call | None = None
        self.is_dead = False
        self._is_recording = False
        self._late: list[Callable[[], None]] = []
        self._open: set[CallSocket] = set()
        self._dead: set[CallSocket] = set()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Control every socket that is created in the block."""
        CallSocket.transport = self
        socket.socket = CallSocket  # type: ignore[misc]
        try:
            yield
        finally:
            socket.socket = _PLAIN_SOCKET  # type: ignore[misc]
            CallSocket.transport = None

    @contextmanager
    def recording(self, fault: Fault | None = None) -> Iterator[None]:
        """Count the calls of the block from 0, and apply ``fault`` to one of them."""
        self.calls, self.fault, self.reached, self._is_recording = [], fault, None, True
        try:
            yield
        finally:
            self._is_recording = False

    def count(self, service: str, data: bytes) -> Mode | None:
        """Count a call that begins with ``data``. Returns the mode of its fault, or None."""
        if not self._is_recording:
            return None
        index = len(self.calls)
        self.calls.append(Call(service, describe(service, data)))
        if self.fault is None or self.fault.number != index:
            return None
        if self.fault.mode == Mode.OVERTAKEN and service == "mysql":
            return None  # its transaction would block later requests
        self.reached = self.calls[-1]
        return self.fault.mode

    def delay(self, execute: Callable[[], None]) -> None:
        """Store a call to execute later."""
        self._late.append(execute)

    def execute_late(self) -> None:
        """Execute the delayed calls."""
        late, self._late = self._late, []
        for execute in late:
            execute()

    def kill(self) -> None:
        """End the process as seen from outside: its connections close, nothing is sent."""
        self.is_dead = True
        self._dead = set(self._open)
        for open_socket in self._dead:
            open_socket.break_off(Killed())

    def restart(self) -> None:
        """Let a new process send; connections of the old one can be closed."""
        self.is_dead = False
        for dead_socket in self._dead:
            dead_socket.break_off(ConnectionResetError("its process was killed"))
        self._dead.clear()

    def add(self, new: CallSocket) -> None:
        """Register an open socket."""
        self._open.add(new)

    def remove(self, closed: CallSocket) -> None:
        """Unregister a closed socket."""
        self._open.discard(closed)


class CallSocket(_PLAIN_SOCKET):
    """A socket whose calls the installed transport sees, if it leads to one of its services."""

    transport: Transport | None = None

    _service: str | None = None
    _seen_by: Transport | None = None
    _is_sending = False
    _mode: Mode | None = None
    _kept = b""
    _error: BaseException | None = None

    def connect(self, address: Any) -> None:
        """Connect, and count the calls from here on."""
        transport = CallSocket.transport
        port = address[1] if isinstance(address, tuple) else 0
        if transport is not None and port in transport.services:
            if transport.is_dead:
                raise Killed
            self._service, self._seen_by = transport.services[port], transport
            transport.add(self)
        super().connect(address)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send, store or drop a part of a call."""
        if self._takes(data):
            super().sendall(data, flags)

    def send(self, data: Any, flags: int = 0) -> int:
        """Send, store or drop a part of a call."""
        return super().send(data, flags) if self._takes(data) else len(data)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Read a reply, unless the call is faulted."""
        self._before_reply()
        return super().recv(size, flags)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Read a reply, unless the call is faulted."""
        self._before_reply()
        return super().recv_into(buffer, nbytes, flags)

    def shutdown(self, how: int) -> None:
        """Shut down, unless the connection continues without its client."""
        if self._error is None:
            super().shutdown(how)

    def _real_close(self, *args: Any) -> None:
        if self._seen_by is not None:
            self._seen_by.remove(self)
        super()._real_close(*args)  # type: ignore[misc]

    def break_off(self, error: BaseException) -> None:
        """End the connection; later use of the socket raises ``error``."""
        self._error = error
        with suppress(OSError):
            super().shutdown(socket.SHUT_RDWR)

    def _takes(self, data: Any) -> bool:
        """Return whether data goes out now."""
        if self._seen_by is None:
            return True
        if self._error is not None:
            raise self._error
        if not self._is_sending:
            self._is_sending = True
            self._mode = self._seen_by.count(str(self._service), bytes(data[:4096]))
        if self._mode in (Mode.DELAYED, Mode.OVERTAKEN):
            self._kept += bytes(data)
        return self._mode not in (Mode.DROPPED, Mode.DELAYED, Mode.OVERTAKEN)

    def _before_reply(self) -> None:
        if self._seen_by is None:
            return
        if self._error is not None:
            raise self._error
        if not self._is_sending:
            return
        self._is_sending = False
        mode, self._mode = self._mode, None
        if mode is None:
            return
        match mode:
            case Mode.DROPPED:
                self.break_off(ConnectionResetError("the call was dropped"))
            case Mode.REPLY_DROPPED:
                execute(self)
                self.break_off(ConnectionResetError("the reply was dropped"))
            case Mode.REPLY_LATE:
                execute(self)
                self.break_off(TimeoutError("timed out"))
            case Mode.KILLED:
                execute(self)
                self._seen_by.kill()
            case Mode.DELAYED | Mode.OVERTAKEN:
                self._delay()
        raise self._failure()

    def _failure(self) -> BaseException:
        return self._error or Killed()

    def _delay(self) -> None:
        """Leave the connection to the transport, which sends the stored data."""
        assert self._seen_by is not None
        # The client closes its own descriptor; the server sees the connection as open.
        connection, data = _PLAIN_SOCKET(fileno=self.dup().detach()), self._kept

        def execute_late() -> None:
            with connection, suppress(OSError):
                connection.settimeout(EXECUTION_TIMEOUT_S)
                connection.sendall(data)
                execute(connection)

        self._error = TimeoutError("timed out")
        self._seen_by.delay(execute_late)


def execute(connection: socket.socket) -> None:
    """Wait until the server has executed its input and detected the closed connection."""
    with suppress(OSError):
        connection.settimeout(EXECUTION_TIMEOUT_S)
        _PLAIN_SOCKET.shutdown(connection, socket.SHUT_WR)
        while _PLAIN_SOCKET.recv(connection, 65_536):
            pass


def describe(service: str, data: bytes) -> str:
    """Return the beginning of a call as text."""
    if service == "redis":
        words = [part.partition(b"\r\n")[0] for part in _RESP_BULK.split(data)[1:4]]
        text = b" ".join(_scripts().get(word, word) for word in words)
    elif service == "mysql":
        text = data[5:] if len(data) > 4 and data[4] == _COM_QUERY else b"command %d" % data[4]
    else:
        head = data.partition(b"\r\n\r\n")[0]
        target = re.search(rb"(?i)x-amz-target: *(\S+)", head)
        text = target[1] if target else head.partition(b"\r\n")[0]
    return _NUMBER.sub("#", " ".join(text.decode("utf-8", "replace").split()))[:_MAX_TEXT]


@cache
def _scripts() -> dict[bytes, bytes]:
    """Return SHA-1 of a script -> its name."""
    paths = [path for path in LAYER.rglob("*.lua") if not path.name.endswith(".inc.lua")]
    return {(s := load_script(path)).sha.encode(): s.name.encode() for path in paths}
