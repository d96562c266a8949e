"""The load driver on a real server: what is in flight, retries, lost answers."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from cli.paths import CommandError
from local.load import crowd
from local.load.crowd import Answer, Client, Tally, send_once
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


def send(
    handler: Handler, call: Call = GET, user_id: int | None = None, attempts: int = 8
) -> tuple[Answer, Tally]:
    """Send one request to a server that answers by ``handler``."""
    results = []

    async def use(base_url: str) -> None:
        async with Client(base_url, {7: "token"}, 1, attempts) as client:
            results.append((await client.send(call, user_id), client.tally))

    serve(handler, use)
    return results[0]


def test_so_many_requests_are_in_flight_as_the_server_counts() -> None:
    """No request of a round is answered before all are there: with fewer it would not end."""
    size, arrived, waiting = 300, 0, asyncio.Condition()

    async def hold(_: web.BaseRequest) -> web.Response:
        nonlocal arrived
        async with waiting:
            arrived += 1
            all_are_there = -(-arrived // size) * size
            waiting.notify_all()
            await waiting.wait_for(lambda: arrived >= all_are_there)
        return web.Response()

    async def use(base_url: str) -> None:
        async with Client(base_url, {}, size) as client:
            await client.connect_all()
            async with asyncio.timeout(30):
                tally = await client.play(range(2 * size), lambda _: client.send(GET))
        assert tally.in_flight[1] == size
        assert 0 < tally.in_flight[0] <= size
        assert (tally.statuses, tally.sent, tally.errors) == ({200: 2 * size}, 2 * size, 0)
        assert len(tally.latencies_s) == 2 * size

    serve(hold, use)


def test_request_has_its_session_key_and_body() -> None:
    known: list[Any] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        headers = [request.headers.get(name) for name in ("Authorization", "Idempotency-Key")]
        known.append((request.method, request.path_qs, *headers, await request.text()))
        return web.json_response({"id": "7"}, status=201)

    made, _ = send(answer, Call("POST", "/posts?a=1", {"title": "\u00fc"}, "key"), 7)
    assert (made.status, made.body, made.certain) == (201, {"id": "7"}, True)
    send(answer)
    assert known == [
        ("POST", "/posts?a=1", "Bearer token", "key", '{"title": "\\u00fc"}'),
        ("GET", "/posts/7", None, None, ""),
    ]


def test_refused_request_is_sent_again_after_its_delay() -> None:
    answers = [(503, {"Retry-After": "1"}), (429, {}), (200, {})]

    async def refuse(_: web.BaseRequest) -> web.Response:
        status, headers = answers.pop(0)
        return web.json_response({}, status=status, headers=headers)

    began_s = time.monotonic()
    answer, tally = send(refuse)
    assert time.monotonic() - began_s >= 1
    assert (answer.status, tally.sent, tally.retries) == (200, 3, {"503": 1, "429": 1})


def test_last_refusal_is_returned() -> None:
    async def refuse(_: web.BaseRequest) -> web.Response:
        return web.json_response({"detail": "MySQL is unavailable"}, status=503)

    answer, tally = send(refuse, attempts=2)
    assert str(answer) == "503: MySQL is unavailable"
    assert tally.sent == tally.errors == 2


def test_lost_answer_is_uncertain_and_the_next_connection_is_new() -> None:
    lost = [True, False]

    async def answer(request: web.BaseRequest) -> web.Response:
        if lost.pop(0):
            assert request.transport is not None
            request.transport.close()
        return web.Response(text="oops")

    reply, tally = send(answer)
    assert (reply.status, reply.body, reply.certain) == (200, {"detail": "oops"}, False)
    assert (tally.retries, tally.statuses) == ({"ConnectionResetError": 1}, {200: 1})


def test_server_that_is_gone_is_no_answer() -> None:
    async def use() -> None:
        async with Client("http://127.0.0.1:1", {}, 2, max_attempts=1) as client:
            assert str(await client.send(GET)).startswith("no answer: ConnectionRefused")
            with pytest.raises(CommandError, match="can't be connected"):
                await client.connect_all()

    asyncio.run(use())


def test_one_request_is_sent_again_while_it_is_refused() -> None:
    statuses, tokens = [503, 201], []

    async def answer(request: web.BaseRequest) -> web.Response:
        tokens.append(request.headers["Authorization"])
        return web.json_response(await request.json(), status=statuses.pop(0))

    async def use(base_url: str) -> None:
        made = await asyncio.to_thread(send_once, base_url, "token", Call("POST", "/", {"a": 1}))
        assert (made.status, made.body) == (201, {"a": 1})

    serve(answer, use)
    assert tokens == ["Bearer token"] * 2


def test_late_answer_is_not_that_of_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request is answered after the second, which must not use its connection."""
    monkeypatch.setattr(crowd, "TIMEOUT_S", 0.5)
    sent, second = iter(range(9)), asyncio.Event()

    async def answer(_: web.BaseRequest) -> web.Response:
        if next(sent) == 0:
            await second.wait()
        second.set()
        return web.Response()

    reply, tally = send(answer, attempts=2)
    assert (reply.status, reply.certain) == (200, False)
    assert tally.retries == {"timeout": 1}
