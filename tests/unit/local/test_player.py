"""Requests of players, and the detection of impossible answers."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from cli.paths import CommandError
from local.load import crowd
from local.load.crowd import Answer, Client, Tally
from local.load.player import Player
from local.load.requests import Call, Copies, Expectation, Reaction, Request, set_reaction, view

LIKE = set_reaction(Reaction("like", 7, 1))
LIKED = Expectation(changes=True, shows={"liked": True})
VIEW = view(1, 7)
DONE = {"liked": True, "likes": 1, "changed": True, "exact": True}
AGAIN = {**DONE, "changed": False}
Given = tuple[int, dict[str, Any]] | Exception


class FakeApi:
    """Gives the given answers in order, and records the requests."""

    def __init__(self, *answers: Given) -> None:
        self.answers = list(answers)
        self.sent: list[Call] = []
        self.users: list[int | None] = []

    async def exchange(self, client: Client, call: Call, user_id: int | None) -> Answer:
        self.sent.append(call)
        self.users.append(user_id)
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Answer(*answer, {})


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry without a random wait."""
    monkeypatch.setattr(crowd, "draw_backoff_s", lambda tries: 0.0)


def play(api: FakeApi, *requests: Request, expectations: list[Expectation]) -> Tally:
    async def send() -> Tally:
        tokens = {request.user_id: "token" for request in requests}
        async with Player("http://api", tokens, 4, lambda _: None) as player:
            await player.play_requests(requests, expectations)
        return player.tally

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "_exchange", lambda *args: api.exchange(*args))
        return asyncio.run(send())


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


def test_good_answer_is_counted_once() -> None:
    tally = play(FakeApi((200, DONE)), LIKE, expectations=[LIKED])
    assert (tally.sent, tally.accepted, tally.changed, tally.wrong) == (1, 1, 1, [])


@pytest.mark.parametrize("copies", [Copies.AT_ONCE, Copies.IN_A_ROW])
def test_duplicate_is_no_further_change(copies: Copies) -> None:
    request = replace(LIKE, copies=copies)
    tally = play(FakeApi((200, DONE), (200, AGAIN)), request, expectations=[LIKED])
    assert (tally.sent, tally.accepted, tally.changed, tally.duplicates) == (2, 2, 1, 1)
    assert tally.wrong == []


def test_like_counted_twice_is_found() -> None:
    request = replace(LIKE, copies=Copies.AT_ONCE)
    tally = play(FakeApi((200, DONE), (200, DONE)), request, expectations=[LIKED])
    assert tally.wrong == ["like of post 7 by user 1: changed 2 times, not 1"]


def test_lost_answer_leaves_the_number_of_changes_open() -> None:
    tally = play(FakeApi(TimeoutError(), (200, AGAIN)), LIKE, expectations=[LIKED])
    assert (tally.accepted, tally.uncertain, tally.changed, tally.wrong) == (1, 1, 0, [])
    assert tally.retries == {"timeout": 1}


def test_failed_request_has_its_reason() -> None:
    api = FakeApi(*[(503, {"title": "Try again", "detail": "MySQL is unavailable"})] * 8)
    tally = play(api, LIKE, expectations=[LIKED])
    assert (tally.sent, tally.accepted) == (8, 0)
    assert tally.failures == ["like of post 7 by user 1: 503: MySQL is unavailable"]


def test_bad_request_is_not_retried() -> None:
    tally = play(FakeApi((404, {"detail": "There is no post 7"})), LIKE, expectations=[LIKED])
    assert tally.sent == 1
    assert tally.failures == ["like of post 7 by user 1: 404: There is no post 7"]


def test_replay_ends_when_the_api_stops_answering() -> None:
    requests = [set_reaction(Reaction("like", 7, user_id)) for user_id in range(1, 100)]
    api = FakeApi(*[TimeoutError()] * 8 * len(requests))
    with pytest.raises(CommandError, match=r"http://api stopped answering: .*timeout"):
        play(api, *requests, expectations=[LIKED] * len(requests))
    assert len(api.sent) < 8 * 20


def test_user_with_a_failed_request_is_not_checked_further() -> None:
    mine = {"items": [{"mine": {"liked": False, "collected": False}}], "exact": True}
    tally = play(FakeApi((500, {}), (200, mine)), LIKE, VIEW, expectations=[LIKED, LIKED])
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


def test_state_is_known_by_the_last_answer_alone() -> None:
    known = []

    async def send(*answers: Given) -> None:
        api = FakeApi(*answers)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Client, "_exchange", lambda *args: api.exchange(*args))
            async with Player("http://api", {1: "token"}, 1, lambda _: None) as player:
                api.exchange = watch(api, player)  # type: ignore[method-assign]
                await player.play_requests([LIKE], [LIKED])
                known.append(player.states)
                assert player.is_over

    def watch(api: FakeApi, player: Player) -> Any:
        exchange = api.exchange

        async def note(client: Client, call: Call, user_id: int | None) -> Answer:
            assert player.states == {Reaction("like", 7, 1): None}
            return await exchange(client, call, user_id)

        return note

    for answer in ((200, DONE), (202, DONE), (404, {})):
        asyncio.run(send(answer))
    assert [list(states.values()) for states in known] == [[True], [None], [None]]
