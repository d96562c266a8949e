"""A TCP proxy that fails on demand, in a process of its own; ``Proxy`` controls it.

Each route is a loopback port that leads to a server. Its modes:

  pass      forward data
  slow      delay each piece of an answer by ``delay_s``
  hang      accept connections and buffer all data until the mode changes
  refuse    reset open and new connections
  close     close the port and reset open connections
  throttle  answer each HTTP request with 400 ThrottlingException
  fail      answer each HTTP request with 500
  lose      drop the next answer with its connection, then pass

Commands are lines of JSON on standard input; each is answered with one line.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import subprocess
import sys
from typing import Any

_PIECE = 65_536
_LINGER = struct.pack("ii", 1, 0)  # close with a reset
_ANSWERS = {
    "throttle": (400, {"__type": "com.amazonaws.sqs#ThrottlingException", "message": "Slow down"}),
    "fail": (500, {"__type": "com.amazonaws.sqs#InternalFailure", "message": "Our fault"}),
}


class Route:
    """A port that leads to ``target``, a loopback port. Changes take effect at once."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.mode = "pass"
        self.delay_s = 0.0
        self.port = 0
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        """Open the port, the same one each time."""
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, backlog=512, limit=4 * _PIECE
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def change(self, mode: str, delay_s: float, target: int | None) -> None:
        """Set the mode; ``target`` applies to new connections."""
        before, self.mode, self.delay_s = self.mode, mode, delay_s
        self.target = target or self.target
        if mode == "hang":
            self._open.clear()
        else:
            self._open.set()
        if mode == "close" and self._server is not None:
            self._server.close()
            self._server = None
        if mode != "close" and self._server is None:
            await self.listen()
        if {before, mode} & {"refuse", "close", "throttle", "fail"}:
            self.cut()

    def cut(self) -> None:
        """Reset every open connection."""
        for writer in self._writers:
            _reset(writer)
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            await self._relay(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            _reset(writer)
        except asyncio.CancelledError:
            _reset(writer)  # on command; no one awaits this task
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mode == "refuse":
            _reset(writer)
            return
        if self.mode in _ANSWERS:
            while self.mode in _ANSWERS:
                await _answer(reader, writer, *_ANSWERS[self.mode])
            return
        await self._open.wait()
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers.add(back)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, back, is_answer=False))
                both.create_task(self._pump(there, writer, is_answer=True))
        except* (OSError, RuntimeError):
            _reset(writer)
        finally:
            self._writers.discard(back)
            back.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        while piece := await reader.read(_PIECE):
            await self._open.wait()
            if is_answer and self.mode == "lose":
                self.mode = "pass"
                raise ConnectionResetError("the answer is lost")
            if is_answer and self.mode == "slow":
                await asyncio.sleep(self.delay_s)
            writer.write(piece)
            await writer.drain()
        await self._open.wait()
        # Not half-closed: after the end of one side the other is not read either.
        writer.close()


class Proxy:
    """The proxy process. A context manager; ``add_route`` adds a port, ``set`` changes its mode."""

    def __enter__(self) -> Proxy:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.proxy"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()  # it ends with this process
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def add_route(self, name: str, target: int) -> int:
        """Add a route to a loopback port. Returns its port."""
        return int(self._command(name=name, target=target)["port"])

    def set(self, name: str, mode: str, *, delay_s: float = 0.0, target: int | None = None) -> None:
        """Set the mode of a route before returning; ``target`` moves it to another server."""
        self._command(name=name, mode=mode, delay_s=delay_s, target=target)

    def _command(self, **message: Any) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int, message: Any
) -> None:
    """Read one HTTP request and refuse it."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    for line in head.split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            await reader.readexactly(int(value))
    body = json.dumps(message).encode()
    writer.write(
        f"HTTP/1.1 {status} No\r\ncontent-type: application/x-amz-json-1.0\r\n"
        f"content-length: {len(body)}\r\n\r\n".encode()
        + body
    )
    await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Reset a connection (RST)."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
    writer.transport.abort()


async def _run_commands() -> None:
    routes: dict[str, Route] = {}
    commands = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        message = json.loads(line)
        if "mode" not in message:
            route = routes[message["name"]] = Route(message["target"])
            await route.listen()
        else:
            route = routes[message["name"]]
            await route.change(message["mode"], message["delay_s"], message["target"])
        print(json.dumps({"port": route.port}), flush=True)


if __name__ == "__main__":
    asyncio.run(_run_commands())
