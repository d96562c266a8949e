"""Reading the API: whole lists, many requests at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from cli.paths import CommandError
from local.load import crowd
from local.load.api_reader import ApiReader
from local.load.crowd import Client
from tests.unit.local.test_player import FakeApi

T = TypeVar("T")
Ask = Callable[..., Any]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return ``ask(api, lambda reader: ...)``, which runs a reader on a fake; it never waits."""
    monkeypatch.setattr(crowd, "draw_backoff_s", lambda tries: 0.0)

    def run(
        api: FakeApi,
        work: Callable[[ApiReader], Awaitable[T]],
        progress: list[str] | None = None,
    ) -> T:
        monkeypatch.setattr(Client, "_exchange", lambda *args: api.exchange(*args))
        on_progress = (progress if progress is not None else []).append

        async def do() -> T:
            async with ApiReader("http://api", {7: "token"}, 3, on_progress) as reader:
                return await work(reader)

        return asyncio.run(do())

    return run


def test_body_is_sent_and_returned_by_a_user_or_none(ask: Ask) -> None:
    api = FakeApi((200, {"id": "7"}), (200, {"id": "7"}))
    assert ask(api, lambda reader: reader.fetch("/me", user_id=7)) == {"id": "7"}
    assert ask(api, lambda reader: reader.fetch("/me", body={"a": 1})) == {"id": "7"}
    assert [(call.path, call.body) for call in api.sent] == [("/me", None), ("/me", {"a": 1})]
    assert api.users == [7, None]


def test_final_refusal_raises_an_error(ask: Ask) -> None:
    api = FakeApi((404, {"detail": "There is no user 7"}), (200, {}))
    with pytest.raises(CommandError, match=r"GET http://api/me answers 404: .*no user 7"):
        ask(api, lambda reader: reader.fetch("/me"))
    api = FakeApi(*[TimeoutError()] * 8)
    with pytest.raises(CommandError, match="gives no answer: timeout"):
        ask(api, lambda reader: reader.fetch("/me"))


def test_list_is_read_to_its_end(ask: Ask) -> None:
    api = FakeApi(
        (200, {"items": [1, 2], "next": "b"}),
        (200, {"items": [], "next": "c"}),
        (200, {"items": [3], "next": None}),
    )
    assert ask(api, lambda reader: reader.read_list("/all")) == [1, 2, 3]
    assert [call.path for call in api.sent] == [
        "/all?limit=100",
        "/all?limit=100&cursor=b",
        "/all?limit=100&cursor=c",
    ]


def test_each_item_gets_its_own_answer(ask: Ask) -> None:
    busy, most = 0, 0
    progress: list[str] = []

    async def square(number: int) -> int:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        for _ in range(number % 3):
            await asyncio.sleep(0)
        busy -= 1
        return number**2

    squares = ask(
        FakeApi(), lambda reader: reader.fetch_each("squares", range(120), square), progress
    )
    assert list(squares.items()) == [(number, number**2) for number in range(120)]
    assert most == 3
    assert progress == ["squares, 50 of 120", "squares, 100 of 120"]


def test_nothing_is_fetched_of_no_items(ask: Ask) -> None:
    async def fail(number: int) -> int:
        raise CommandError(f"no {number}")

    assert ask(FakeApi(), lambda reader: reader.fetch_each("none", [], fail)) == {}
