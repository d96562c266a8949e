"""Requests of interactions: number, order and expected outcome."""

from collections import Counter

import pytest

from local.load.interactions import Interaction, build_requests, choose_author, plan
from local.load.player import Turns
from local.load.requests import Copies, Expectation, Reaction, predict, set_reaction


def rated(rating: float, user_id: int = 1, item_id: int = 7) -> Interaction:
    return Interaction(user_id, item_id, rating, 0)


@pytest.mark.parametrize(
    ("rating", "acts"),
    [
        (5, ["like", "collect"]),
        (4.5, ["like"]),
        (4, ["like"]),
        (3.5, ["view"]),
        (2.5, ["view"]),
        (2, ["unlike"]),
        (0, ["unlike"]),
    ],
)
def test_rating_determines_the_requests(rating: float, acts: list[str]) -> None:
    assert [request.act for request in build_requests(rated(rating))] == acts


def test_share_of_changes_is_sent_twice_and_no_view() -> None:
    requests = plan([rated(rating) for rating in (5, 3, 1)] * 2000, duplicates=0.2, seed=3)
    copies = Counter((request.act == "view", request.copies) for request in requests)
    twice = copies[False, Copies.AT_ONCE] + copies[False, Copies.IN_A_ROW]
    assert twice / 6000 == pytest.approx(0.2, abs=0.02)
    assert copies[False, Copies.AT_ONCE] == pytest.approx(copies[False, Copies.IN_A_ROW], rel=0.2)
    assert copies[True, Copies.ONE] == 2000


def test_same_seed_makes_the_same_plan() -> None:
    interactions = [rated(5)] * 100
    assert plan(interactions, 0.5, seed=1) == plan(interactions, 0.5, seed=1)
    assert plan(interactions, 0.5, seed=1) != plan(interactions, 0.5, seed=2)


@pytest.mark.parametrize(("share", "copies"), [(0, {Copies.ONE}), (1, set(Copies) - {Copies.ONE})])
def test_none_or_all_may_be_sent_twice(share: float, copies: set[Copies]) -> None:
    assert {request.copies for request in plan([rated(5)] * 50, share)} == copies


def test_requests_of_a_user_are_sequential() -> None:
    requests = plan([rated(4, user) for user in (1, 1, 2, 1, 2)])
    turns = Turns(requests)
    assert (next(turns, None), next(turns, None), next(turns, None)) == (0, 2, None)
    turns.release(0)
    assert (next(turns, None), next(turns, None)) == (1, None)
    turns.release(2)
    turns.release(1)
    assert (next(turns, None), next(turns, None), next(turns, None)) == (3, 4, None)
    turns.release(3)
    turns.release(4)
    assert next(turns, None) is None


def test_requests_start_in_file_order() -> None:
    turns = Turns(plan([rated(4, user) for user in (3, 1, 2)]))
    assert [next(turns, None) for _ in range(3)] == [0, 1, 2]


def test_end_state_follows_from_start_and_requests() -> None:
    before = {Reaction("like", 7, 1), Reaction("like", 8, 2)}
    requests = plan([rated(5), rated(3), rated(1), rated(1), rated(4, user_id=2)])
    expectations, after = predict(requests, before)
    assert expectations == [
        Expectation(changes=False, shows={"liked": True}),  # liked before
        Expectation(changes=True, shows={"collected": True}),
        Expectation(changes=False, shows={"mine": {"liked": True, "collected": True}}),  # a view
        Expectation(changes=True, shows={"liked": False}),
        Expectation(changes=False, shows={"liked": False}),
        Expectation(changes=True, shows={"liked": True}),
    ]
    assert after == {
        Reaction("collect", 7, 1),
        Reaction("like", 7, 2),
        Reaction("like", 8, 2),
    }


def test_view_shows_the_present_state_of_its_user() -> None:
    requests = plan([rated(4), rated(1), rated(3), rated(3, user_id=2)])
    *_, own, of_another = predict(requests, {Reaction("collect", 7, 1)})[0]
    assert own.shows == {"mine": {"liked": False, "collected": True}}
    assert of_another.shows == {"mine": {"liked": False, "collected": False}}


def test_unlike_keeps_the_collect() -> None:
    _, after = predict(
        [set_reaction(Reaction("like", 7, 1), on=False)], {Reaction("collect", 7, 1)}
    )
    assert after == {Reaction("collect", 7, 1)}


def test_author_of_a_post_is_a_user_and_deterministic() -> None:
    users = [3, 5, 8]
    authors = [choose_author(item_id, users) for item_id in range(1, 3000)]
    assert authors == [choose_author(item_id, users) for item_id in range(1, 3000)]
    assert min(Counter(authors)[user] for user in users) > 800
