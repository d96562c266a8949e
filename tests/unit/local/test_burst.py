"""The requests of a burst, and the bounds of a total while requests are in flight."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from local.load.burst import Burst, Moment, split
from local.load.requests import Reaction, predict

BURST = Burst(7, likes=1_000, earlier=3, seed=1)
MOMENT = Moment(1.0, liked=5, unsaved=9, wrong_answers=0, total=8, low=8, high=9)


def test_each_actor_likes_once_in_order_and_some_read_or_unlike_later() -> None:
    acts = Counter(request.act for request in BURST.requests)
    assert acts["like"] == 1_000
    assert 50 < acts["unlike"] < 200
    assert 200 < acts["view"] < 400
    likers = [request.user_id for request in BURST.requests if request.act == "like"]
    assert likers == list(BURST.actors)
    for act in ("unlike", "view"):
        later = [request.user_id for request in BURST.requests if request.act == act]
        assert later != sorted(later)
    expectations, after = predict(BURST.requests, set())
    assert len(after) == 1_000 - acts["unlike"]
    for request, expectation in zip(BURST.requests, expectations, strict=True):
        assert expectation.changes is bool(request.sets)


def test_burst_is_the_same_for_its_seed() -> None:
    assert Burst(7, 1_000, 3, 1).requests == BURST.requests != Burst(7, 1_000, 3, 2).requests


def test_everyone_has_a_session_and_earlier_actors_do_not_act() -> None:
    assert len(set(BURST.user_ids)) == len(BURST.user_ids) == 1_004
    assert {request.user_id for request in BURST.requests}.isdisjoint(BURST.earlier)


def test_reaction_with_a_request_in_flight_may_be_on() -> None:
    on, off, open_ = (Reaction("like", 7, user_id) for user_id in range(3))
    assert split({on: True, off: False, open_: None}) == ({on}, {on, open_})


@pytest.mark.parametrize(
    ("changes", "clean"),
    [({}, True), ({"total": 9}, True), ({"total": 7}, False), ({"total": 10}, False)],
)
def test_total_outside_its_bounds_is_wrong(changes: dict[str, int], clean: bool) -> None:
    assert replace(MOMENT, **changes).clean is clean
    assert not replace(MOMENT, wrong_answers=1, **changes).clean
