"""The load driver on a real server: what is in flight, retries, lost answers."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from cli.paths import CommandError
from local.load import crowd
from local.load.crowd import Client
from local.load.requests import Call

GET = Call("GET", "/posts/7")
Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]
Use = Callable[[str], Awaitable[None]]


def serve(handler: Handler, use: Use) -> None:
    """Run ``use(base_url)`` while a server answers by ``handler``."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        made = await loop.create_server(web.Server(handler), "127.0.0.1", 0, backlog=1024)
        try:
            await use(f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}")
        finally:
            made.close()

    asyncio.run(run())


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry without a random wait."""
    monkeypatch.setattr(crowd, "draw_backoff_s", lambda tries: 0.0)


def test_so_many_requests_are_in_flight_as_the_server_counts() -> None:
    """No request is answered before all are there: fewer connections would never end."""
    crowd_size, waiting = 300, asyncio.Condition()
    known = 0

    async def hold(_: web.BaseRequest) -> web.Response:
        nonlocal known
        async with waiting:
            known += 1
            waiting.notify_all()
            await waiting.wait_for(lambda: known % crowd_size == 0 or known > 2 * crowd_size)
        return web.Response()

    async def use(base_url: str) -> None:
        async with Client(base_url, {}, crowd_size) as client:
            await client.connect_all()
            async with asyncio.timeout(30):
                tally = await client.play(range(2 * crowd_size), lambda _: client.send(GET))
        assert tally.in_flight[1] == crowd_size
        assert 0 < tally.in_flight[0] <= crowd_size
        assert (tally.sent, tally.errors) == (2 * crowd_size, 0)
        assert tally.statuses == {200: 2 * crowd_size}

    serve(hold, use)


def test_a_member_that_waits_leaves_its_connection_to_another() -> None:
    """Both members sleep until the other one was answered, with one connection."""
    answered: list[int] = []

    async def use(base_url: str) -> None:
        async with Client(base_url, {}, 1) as client:

            async def act(member: int) -> None:
                await client.send(GET)
                answered.append(member)
                while len(answered) < 2:
                    await asyncio.sleep(0)

            async with asyncio.timeout(30), asyncio.TaskGroup() as group:
                for member in range(2):
                    group.create_task(act(member))

    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response()

    serve(answer, use)
    assert sorted(answered) == [0, 1]


def test_request_has_its_session_key_and_body() -> None:
    known: list[Any] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        headers = [request.headers.get(name) for name in ("Authorization", "Idempotency-Key")]
        known.append((request.method, request.path_qs, *headers, await request.text()))
        return web.json_response({"id": "7"}, status=201)

    async def use(base_url: str) -> None:
        async with Client(base_url, {7: "token"}, 1) as client:
            made = await client.send(Call("POST", "/posts?a=1", {"title": "ü"}, "key"), 7)
            assert (made.status, made.body, made.certain) == (201, {"id": "7"}, True)
            await client.send(GET)

    serve(answer, use)
    assert known == [
        ("POST", "/posts?a=1", "Bearer token", "key", '{"title": "\\u00fc"}'),
        ("GET", "/posts/7", None, None, ""),
    ]


def test_refused_request_is_sent_again_after_its_delay() -> None:
    answers = [(503, {"Retry-After": "1"}), (429, {}), (200, {})]

    async def refuse(_: web.BaseRequest) -> web.Response:
        status, headers = answers.pop(0)
        return web.json_response({}, status=status, headers=headers)

    async def use(base_url: str) -> None:
        async with Client(base_url, {}, 1) as client:
            began_s = time.monotonic()
            assert (await client.send(GET)).status == 200
            assert time.monotonic() - began_s >= 1
            assert client.tally.retries == {"503": 1, "429": 1}
            assert client.tally.sent == 3

    serve(refuse, use)


def test_last_refusal_is_returned() -> None:
    async def refuse(_: web.BaseRequest) -> web.Response:
        return web.json_response({"detail": "MySQL is away"}, status=503)

    async def use(base_url: str) -> None:
        async with Client(base_url, {}, 1, max_attempts=2) as client:
            assert str(await client.send(GET)) == "503: MySQL is away"
            assert client.tally.sent == client.tally.errors == 2

    serve(refuse, use)


def test_lost_answer_is_uncertain_and_the_next_connection_is_new() -> None:
    lost = [True, False]

    async def answer(request: web.BaseRequest) -> web.Response:
        if lost.pop(0):
            assert request.transport is not None
            request.transport.close()
        return web.Response(text="oops")

    async def use(base_url: str) -> None:
        async with Client(base_url, {}, 1) as client:
            found = await client.send(GET)
            assert (found.status, found.body) == (200, {"detail": "oops"})
            assert not found.certain
            assert client.tally.retries == {"ConnectionResetError": 1}
            assert client.tally.statuses == {200: 1}

    serve(answer, use)


def test_server_that_is_gone_is_no_answer() -> None:
    async def use(base_url: str) -> None:
        async with Client(base_url, {}, 2, max_attempts=1) as client:
            assert str(await client.send(GET)).startswith("no answer: ConnectionRefused")
            with pytest.raises(CommandError, match="can't be connected"):
                await client.connect_all()

    asyncio.run(use("http://127.0.0.1:1"))
