"""Requests of players, and the detection of impossible answers."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import pytest

from cli.paths import CommandError
from local.load import client
from local.load.client import Tally
from local.load.player import Player
from local.load.requests import Call, Copies, Expectation, Reaction, Request, set_reaction, view

LIKE = set_reaction(Reaction("like", 7, 1))
LIKED = Expectation(changes=True, shows={"liked": True})
VIEW = view(1, 7)
DONE = {"liked": True, "likes": 1, "changed": True, "exact": True}
AGAIN = {**DONE, "changed": False}


class FakeResponse:
    def __init__(self, status: int, body: Any, headers: Mapping[str, str]) -> None:
        self.status, self.headers, self._body = status, headers, body

    async def __aenter__(self) -> Self:
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        pass

    async def json(self) -> Any:
        return self._body

    async def text(self) -> str:
        return (await self.read()).decode()

    async def read(self) -> bytes:
        return self._body if isinstance(self._body, bytes) else json.dumps(self._body).encode()


class FakeSession:
    """Returns the given answers in order, and records the requests."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []

    def request(self, method: str, url: str, **_: Any) -> FakeResponse:
        self.asked.append((method, url))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, body, *headers = answer
        return FakeResponse(status, body, headers[0] if headers else {})


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the recorded waits; no test sleeps."""
    slept: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        if seconds:
            slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    return slept


def play(session: FakeSession, *requests: Request, expectations: list[Expectation]) -> Tally:
    tokens = {request.user_id: "token" for request in requests}
    player = Player(session, "http://api", tokens, lambda _: None)  # type: ignore[arg-type]
    asyncio.run(player.play(requests, expectations, concurrency=4, rate=None))
    return player.tally


@pytest.mark.parametrize(
    ("sent", "act", "call"),
    [
        (LIKE, "like", Call("PUT", "/posts/7/likes/me")),
        (
            set_reaction(Reaction("like", 7, 1), on=False),
            "unlike",
            Call("DELETE", "/posts/7/likes/me"),
        ),
        (set_reaction(Reaction("collect", 7, 1)), "collect", Call("PUT", "/posts/7/collects/me")),
        (
            VIEW,
            "view",
            Call("POST", "/reactions/query", {"targets": [{"type": "post", "id": "7"}]}),
        ),
    ],
)
def test_act_is_a_route(sent: Request, act: str, call: Call) -> None:
    assert (sent.act, sent.call) == (act, call)
    assert str(sent) == f"{act} of post 7 by user 1"


def test_good_answer_is_counted_once(waits: list[float]) -> None:
    tally = play(FakeSession((200, DONE)), LIKE, expectations=[LIKED])
    assert (tally.sent, tally.accepted, tally.changed, tally.wrong) == (1, 1, 1, [])
    assert waits == []


@pytest.mark.parametrize("copies", [Copies.AT_ONCE, Copies.IN_A_ROW])
def test_duplicate_is_no_further_change(copies: Copies, waits: list[float]) -> None:
    request = replace(LIKE, copies=copies)
    tally = play(FakeSession((200, DONE), (200, AGAIN)), request, expectations=[LIKED])
    assert (tally.sent, tally.accepted, tally.changed, tally.duplicates) == (2, 2, 1, 1)
    assert tally.wrong == []


def test_like_counted_twice_is_found(waits: list[float]) -> None:
    request = replace(LIKE, copies=Copies.AT_ONCE)
    tally = play(FakeSession((200, DONE), (200, DONE)), request, expectations=[LIKED])
    assert tally.wrong == ["like of post 7 by user 1: changed 2 times, not 1"]


def test_temporary_refusal_is_retried_after_its_delay(waits: list[float]) -> None:
    session = FakeSession((503, {}, {"Retry-After": "2"}), (429, {}), (200, DONE))
    tally = play(session, LIKE, expectations=[LIKED])
    assert (tally.sent, tally.accepted) == (3, 1)
    assert tally.retries == {"503": 1, "429": 1}
    assert waits[0] >= 2
    assert waits[1] < 1


def test_lost_answer_leaves_the_number_of_changes_open(waits: list[float]) -> None:
    tally = play(FakeSession(TimeoutError(), (200, AGAIN)), LIKE, expectations=[LIKED])
    assert (tally.accepted, tally.uncertain, tally.changed, tally.wrong) == (1, 1, 0, [])
    assert tally.retries == {"timeout": 1}


def test_failed_request_has_its_reason(waits: list[float]) -> None:
    session = FakeSession(*[(503, {"title": "Try again", "detail": "MySQL is unavailable"})] * 8)
    tally = play(session, LIKE, expectations=[LIKED])
    assert (tally.sent, tally.accepted) == (8, 0)
    assert tally.failures == ["like of post 7 by user 1: 503: MySQL is unavailable"]
    assert sum(waits) < 8 * client.MAX_WAIT_S


def test_bad_request_is_not_retried(waits: list[float]) -> None:
    tally = play(FakeSession((404, {"detail": "There is no post 7"})), LIKE, expectations=[LIKED])
    assert tally.sent == 1
    assert tally.failures == ["like of post 7 by user 1: 404: There is no post 7"]


def test_answer_that_is_not_json_is_reported(waits: list[float]) -> None:
    tally = play(FakeSession((500, b"<html>oops")), LIKE, expectations=[LIKED])
    assert tally.failures == ["like of post 7 by user 1: 500: <html>oops"]


def test_replay_ends_when_the_api_stops_answering(waits: list[float]) -> None:
    requests = [set_reaction(Reaction("like", 7, user_id)) for user_id in range(1, 100)]
    session = FakeSession(*[TimeoutError()] * 8 * len(requests))
    with pytest.raises(CommandError, match=r"http://api stopped answering: .*timeout"):
        play(session, *requests, expectations=[LIKED] * len(requests))
    assert len(session.asked) < 8 * 20


def test_user_with_a_failed_request_is_not_checked_further(waits: list[float]) -> None:
    mine = {"items": [{"mine": {"liked": False, "collected": False}}], "exact": True}
    tally = play(FakeSession((500, {}), (200, mine)), LIKE, VIEW, expectations=[LIKED, LIKED])
    assert len(tally.failures) == 1
    assert tally.wrong == []


def seeing(liked: bool) -> Expectation:
    return Expectation(changes=False, shows={"mine": {"liked": liked, "collected": False}})


def test_view_must_show_what_its_user_did() -> None:
    answer = {"items": [{"mine": {"liked": False, "collected": False}}], "exact": True}
    assert seeing(liked=False).find_wrong(VIEW, [answer], True) == []
    assert len(seeing(liked=True).find_wrong(VIEW, [answer], True)) == 1
    assert len(seeing(liked=False).find_wrong(VIEW, [{"items": []}], True)) == 1


def test_inexact_view_may_be_outdated() -> None:
    answer = {"items": [{"mine": {"liked": False, "collected": False}}], "exact": False}
    assert seeing(liked=True).find_wrong(VIEW, [answer], True) == []


def test_answer_must_have_the_requested_state() -> None:
    assert LIKED.find_wrong(LIKE, [{**DONE, "liked": False}], True) == [
        "like of post 7 by user 1: liked is False"
    ]


def test_longest_gaps_between_answers_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    tally, now_s = Tally(), iter([10.0, 12.0, 13.0, 20.0])
    monkeypatch.setattr("local.load.client.time.monotonic", lambda: next(now_s))
    for status in (200, 202, 503, 200):
        tally.record_try(status, 0.1)
    assert tally.gaps_s == {"200": 10.0, "good": 8.0}
    assert tally.statuses == {200: 2, 202: 1, 503: 1}
