"""What players send, which answers they believe, and how they find one that can't be true."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import pytest

from local.load import client
from local.load.client import Tally
from local.load.player import Player
from local.load.requests import Call, Copies, Expectation, Reaction, Request, set_reaction, view
from local.paths import LocalError

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
    """Answers with what it was given, one after the other, and remembers what was asked."""

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
    """The seconds that were slept; nobody sleeps."""
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
def test_an_act_is_a_route(sent: Request, act: str, call: Call) -> None:
    assert (sent.act, sent.call) == (act, call)
    assert str(sent) == f"{act} of post 7 by user 1"


def test_a_good_answer_is_counted_once(waits: list[float]) -> None:
    tally = play(FakeSession((200, DONE)), LIKE, expectations=[LIKED])
    assert (tally.sent, tally.accepted, tally.changed, tally.wrong) == (1, 1, 1, [])
    assert waits == []


@pytest.mark.parametrize("copies", [Copies.AT_ONCE, Copies.IN_A_ROW])
def test_a_duplicate_changes_nothing_more(copies: Copies, waits: list[float]) -> None:
    request = replace(LIKE, copies=copies)
    tally = play(FakeSession((200, DONE), (200, AGAIN)), request, expectations=[LIKED])
    assert (tally.sent, tally.accepted, tally.changed, tally.duplicates) == (2, 2, 1, 1)
    assert tally.wrong == []


def test_a_like_that_counted_twice_is_found(waits: list[float]) -> None:
    request = replace(LIKE, copies=Copies.AT_ONCE)
    tally = play(FakeSession((200, DONE), (200, DONE)), request, expectations=[LIKED])
    assert tally.wrong == ["like of post 7 by user 1: changed 2 times, not 1"]


def test_a_refusal_for_now_is_tried_again_when_it_asked_for_it(waits: list[float]) -> None:
    session = FakeSession((503, {}, {"Retry-After": "2"}), (429, {}), (200, DONE))
    tally = play(session, LIKE, expectations=[LIKED])
    assert (tally.sent, tally.accepted) == (3, 1)
    assert tally.retries == {"503": 1, "429": 1}
    assert waits[0] >= 2
    assert waits[1] < 1


def test_an_answer_that_was_lost_leaves_open_how_often_it_changed(waits: list[float]) -> None:
    tally = play(FakeSession(TimeoutError(), (200, AGAIN)), LIKE, expectations=[LIKED])
    assert (tally.accepted, tally.uncertain, tally.changed, tally.wrong) == (1, 1, 0, [])
    assert tally.retries == {"timeout": 1}


def test_a_request_is_given_up_with_its_reason(waits: list[float]) -> None:
    session = FakeSession(*[(503, {"title": "Try again", "detail": "MySQL is away"})] * 8)
    tally = play(session, LIKE, expectations=[LIKED])
    assert (tally.sent, tally.accepted) == (8, 0)
    assert tally.failures == ["like of post 7 by user 1: 503: MySQL is away"]
    assert sum(waits) < 8 * client.MAX_WAIT_S


def test_a_bad_request_is_not_tried_again(waits: list[float]) -> None:
    tally = play(FakeSession((404, {"detail": "There is no post 7"})), LIKE, expectations=[LIKED])
    assert tally.sent == 1
    assert tally.failures == ["like of post 7 by user 1: 404: There is no post 7"]


def test_an_answer_that_is_no_json_is_shown(waits: list[float]) -> None:
    tally = play(FakeSession((500, b"<html>oops")), LIKE, expectations=[LIKED])
    assert tally.failures == ["like of post 7 by user 1: 500: <html>oops"]


def test_where_nobody_answers_any_more_it_ends(waits: list[float]) -> None:
    requests = [set_reaction(Reaction("like", 7, user_id)) for user_id in range(1, 100)]
    session = FakeSession(*[TimeoutError()] * 8 * len(requests))
    with pytest.raises(LocalError, match=r"http://api stopped answering: .*timeout"):
        play(session, *requests, expectations=[LIKED] * len(requests))
    assert len(session.asked) < 8 * 20


def test_after_a_request_was_given_up_nothing_is_expected_of_that_user(waits: list[float]) -> None:
    mine = {"items": [{"mine": {"liked": False, "collected": False}}], "exact": True}
    tally = play(FakeSession((500, {}), (200, mine)), LIKE, VIEW, expectations=[LIKED, LIKED])
    assert len(tally.failures) == 1
    assert tally.wrong == []


def seeing(liked: bool) -> Expectation:
    return Expectation(changes=False, shows={"mine": {"liked": liked, "collected": False}})


def test_a_view_must_show_what_its_user_did() -> None:
    answer = {"items": [{"mine": {"liked": False, "collected": False}}], "exact": True}
    assert seeing(liked=False).find_wrong(VIEW, [answer], True) == []
    assert len(seeing(liked=True).find_wrong(VIEW, [answer], True)) == 1
    assert len(seeing(liked=False).find_wrong(VIEW, [{"items": []}], True)) == 1


def test_a_view_that_says_it_is_not_exact_may_be_old() -> None:
    answer = {"items": [{"mine": {"liked": False, "collected": False}}], "exact": False}
    assert seeing(liked=True).find_wrong(VIEW, [answer], True) == []


def test_an_answer_must_say_what_was_wished() -> None:
    assert LIKED.find_wrong(LIKE, [{**DONE, "liked": False}], True) == [
        "like of post 7 by user 1: liked is False"
    ]


def test_the_longest_times_without_an_answer_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tally, now_s = Tally(), iter([10.0, 12.0, 13.0, 20.0])
    monkeypatch.setattr("local.load.client.time.monotonic", lambda: next(now_s))
    for status in (200, 202, 503, 200):
        tally.record_try(status, 0.1)
    assert tally.gaps_s == {"200": 10.0, "good": 8.0}
    assert tally.statuses == {200: 2, 202: 1, 503: 1}
