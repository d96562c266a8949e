"""Reading the API: retries, whole lists, many requests at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from cli.paths import CommandError
from local.load.api_reader import ApiReader
from tests.unit.local.test_player import FakeResponse

T = TypeVar("T")
Answer = tuple[int, Any]


class FakeSession:
    """Returns the given answers of each path in order, and records the requests."""

    def __init__(self, **answers: list[Answer | Exception]) -> None:
        self.answers = {f"http://api/{path}": answer for path, answer in answers.items()}
        self.asked: list[tuple[str, Any, Any]] = []

    def request(self, method: str, url: str, *, json: Any, headers: Any) -> FakeResponse:
        self.asked.append((url.removeprefix("http://api"), json, headers.get("Authorization")))
        answer = self.answers[url.partition("?")[0]].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return FakeResponse(*answer, {})

    async def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry without waiting."""
    monkeypatch.setattr("local.load.client.draw_backoff_s", lambda tries: 0.0)


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return ``ask(session, lambda api: ...)``, which runs a reader on a session."""

    def run(
        session: FakeSession,
        work: Callable[[ApiReader], Awaitable[T]],
        progress: list[str] | None = None,
    ) -> T:
        monkeypatch.setattr("local.load.api_reader.open_session", lambda concurrency: session)
        on_progress = (progress if progress is not None else []).append

        async def do() -> T:
            return await work(ApiReader("http://api", {7: "token"}, 3, on_progress))

        return asyncio.run(do())

    return run


def test_request_of_a_user_has_the_users_token(ask: Callable[..., Any]) -> None:
    session = FakeSession(me=[(200, {"id": "7"}), (200, {"id": "7"})])
    assert ask(session, lambda api: api.fetch("/me", user_id=7)) == {"id": "7"}
    assert ask(session, lambda api: api.fetch("/me", body={"a": 1})) == {"id": "7"}
    assert session.asked == [("/me", None, "Bearer token"), ("/me", {"a": 1}, None)]


def test_temporary_refusal_is_retried(ask: Callable[..., Any]) -> None:
    session = FakeSession(me=[(503, {}), TimeoutError(), (429, {}), (200, {"id": "7"})])
    assert ask(session, lambda api: api.fetch("/me")) == {"id": "7"}


def test_final_refusal_raises_an_error(ask: Callable[..., Any]) -> None:
    session = FakeSession(me=[(404, {"detail": "There is no user 7"}), (200, {})])
    with pytest.raises(CommandError, match=r"GET http://api/me answers 404: .*no user 7"):
        ask(session, lambda api: api.fetch("/me"))
    session = FakeSession(me=[TimeoutError()] * 8)
    with pytest.raises(CommandError, match="gives no answer: timeout"):
        ask(session, lambda api: api.fetch("/me"))


def test_list_is_read_to_its_end(ask: Callable[..., Any]) -> None:
    pages = [(200, {"items": [1, 2], "next": "b"}), (200, {"items": [], "next": "c"})]
    session = FakeSession(all=[*pages, (200, {"items": [3], "next": None})])
    assert ask(session, lambda api: api.read_list("/all")) == [1, 2, 3]
    assert [path for path, *_ in session.asked] == [
        "/all?limit=100",
        "/all?limit=100&cursor=b",
        "/all?limit=100&cursor=c",
    ]


def test_each_item_gets_its_own_answer(ask: Callable[..., Any]) -> None:
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

    result = ask(FakeSession(), lambda api: api.fetch_each("squares", range(120), square), progress)
    assert list(result.items()) == [(number, number**2) for number in range(120)]
    assert most == 3
    assert progress == ["squares, 50 of 120", "squares, 100 of 120"]


def test_one_failure_ends_all_requests(ask: Callable[..., Any]) -> None:
    async def fail(number: int) -> int:
        await asyncio.sleep(0)
        raise CommandError(f"no {number}")

    with pytest.raises(CommandError, match="no 1"):
        ask(FakeSession(), lambda api: api.fetch_each("none", [1, 2, 3], fail))
    assert ask(FakeSession(), lambda api: api.fetch_each("none", [], fail)) == {}
