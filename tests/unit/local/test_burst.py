"""The observer of a burst finds each wrong answer, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

import pytest

from local.load.burst import AUTHOR, Burst, Observation, Options
from local.load.crowd import Answer, Client
from local.load.requests import Call

ACTORS = range(1, 41)
POST = 7


class FakeApi:
    """A client of an API with one post, whose answers are wrong in the manner of ``lie``."""

    def __init__(self, lie: str = "") -> None:
        self.lie = lie
        self.likers: set[int] = set()

    async def send(self, call: Call, user_id: int) -> Answer:
        await asyncio.sleep(0)
        if call.method == "POST":
            return self.read(user_id)
        on = call.method == "PUT"
        changed = on != (user_id in self.likers)
        if self.lie == "first likes" or (self.lie == "unlikes" and not on):
            changed = False
        if self.lie == "repeats" and on:
            changed = True
        self.likers = self.likers | {user_id} if on else self.likers - {user_id}
        status = 503 if self.lie == "undecided" and user_id % 2 else 200
        return Answer(status, {"changed": changed, "exact": True}, {})

    def read(self, user_id: int) -> Answer:
        if self.lie == "refused" and user_id != AUTHOR:
            return Answer(503, {}, {})
        liked = (user_id in self.likers) != (self.lie == "states")
        likes = len(self.likers) + (self.lie == "totals")
        item = {"likes": likes, "mine": {"liked": liked}}
        return Answer(200, {"items": [item], "exact": self.lie != "inexact"}, {})

    async def play(self, crowd: Iterable[int], act: Callable[[int], Awaitable[Any]]) -> None:
        for member in crowd:
            await act(member)


def observe(api: FakeApi) -> tuple[Burst, Observation]:
    """Return a burst of all actors, and what is observed afterwards."""
    client = cast(Client, api)
    burst = Burst(client, client, POST, Options(len(ACTORS), 1, 0))
    moment = Observation(1.0, 0, 0)

    async def run() -> None:
        await api.play(ACTORS, burst.like)
        await burst.observe(moment, len(ACTORS), touch=True)

    asyncio.run(run())
    return burst, moment


def test_true_answers_are_clean() -> None:
    api = FakeApi()
    burst, moment = observe(api)
    assert (moment.wrong, moment.refused, burst.wrong_likes) == (0, 0, 0)
    assert (moment.asked, moment.unlikes, moment.repeats) == (48, 4, 4)
    assert burst.liked == 40
    assert burst.expect_total(burst.count_on(), burst.count_maybe()) == (36, 36)
    assert burst.count_wrong_rows(api.likers) == 0


@pytest.mark.parametrize(
    ("lie", "field", "count"),
    [
        ("states", "wrong_states", 48),
        ("totals", "wrong_totals", 1),
        ("unlikes", "wrong_unlikes", 4),
        ("inexact", "inexact", 48),
    ],
)
def test_wrong_answer_is_counted(lie: str, field: str, count: int) -> None:
    _, moment = observe(FakeApi(lie))
    assert getattr(moment, field) == moment.wrong == count


def test_repeat_that_changes_is_wrong() -> None:
    burst, moment = observe(FakeApi("repeats"))
    assert moment.wrong == moment.wrong_repeats == 4
    assert burst.wrong_likes == 0


def test_first_like_that_changes_nothing_is_wrong() -> None:
    burst, _ = observe(FakeApi("first likes"))
    assert (burst.wrong_likes, burst.liked) == (40, 0)


def test_refused_answer_is_not_wrong() -> None:
    _, moment = observe(FakeApi("refused"))
    assert (moment.refused, moment.wrong) == (48, 0)


def test_undecided_like_may_count_or_not_and_its_state_is_not_checked() -> None:
    api = FakeApi("undecided")
    burst, moment = observe(api)
    assert (burst.undecided, burst.liked) == (20, 20)
    assert (moment.asked, moment.wrong) == (24, 0)
    assert burst.expect_total(burst.count_on(), burst.count_maybe()) == (18, 38)
    assert burst.count_wrong_rows(api.likers) == 0


def test_row_that_differs_from_the_last_answer_is_wrong() -> None:
    api = FakeApi()
    burst, _ = observe(api)
    liker = min(api.likers)
    assert burst.count_wrong_rows(api.likers - {liker}) == 1
    unliked = min(set(ACTORS) - api.likers)
    assert burst.count_wrong_rows(api.likers | {unliked}) == 1
