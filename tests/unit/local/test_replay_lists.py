"""Comparison of lists and viewer states after a replay of interactions."""

from __future__ import annotations

import pytest

from local.load.interactions import (
    choose_likers,
    find_wrong_orders,
    find_wrong_own_lists,
)
from local.load.requests import Reaction
from local.load.scenario import compare_states, rank_ids

AFTER = {
    Reaction("like", 7, 1),
    Reaction("like", 7, 2),
    Reaction("like", 8, 1),
    Reaction("collect", 7, 1),
}


def test_latest_first_is_the_reverse_of_earliest_first() -> None:
    assert find_wrong_orders({7: [1, 2, 3]}, {7: [3, 2, 1]}) == []


@pytest.mark.parametrize("latest", [[3, 2], [3, 1, 2], [3, 2, 1, 1], []])
def test_inconsistent_orders_are_reported(latest: list[int]) -> None:
    (difference,) = find_wrong_orders({7: [1, 2, 3]}, {7: latest})
    assert "likers of post 7" in difference


def test_viewer_states_are_compared() -> None:
    correct = {
        Reaction("like", 7, 1): True,
        Reaction("collect", 7, 1): True,
        Reaction("collect", 8, 2): False,
    }
    assert compare_states(AFTER, correct) == []
    wrong = {item: not state for item, state in correct.items()}
    assert compare_states(AFTER, wrong) == [
        "like of post 7 by user 1 is off by the API",
        "collect of post 7 by user 1 is off by the API",
        "collect of post 8 by user 2 is on by the API",
    ]


def test_own_lists_are_compared_without_other_posts() -> None:
    posts = {7, 8}
    assert find_wrong_own_lists(AFTER, {"like": {1: [99, 8, 7]}, "collect": {2: []}}, posts) == []


@pytest.mark.parametrize("result", [[7], [7, 8, 8], []])
def test_incomplete_own_list_is_reported(result: list[int]) -> None:
    (difference,) = find_wrong_own_lists(AFTER, {"like": {1: result}}, {7, 8})
    assert difference.startswith("likes of user 1 by the API are wrong")


def test_chosen_likers_are_deterministic() -> None:
    after = [Reaction("like", post, user) for post in (7, 8) for user in range(post, post + 100)]
    chosen = choose_likers(after, [7, 8], 5, 3)
    assert 5 <= len(chosen) <= 10
    assert chosen == choose_likers(after, [7, 8], 5, 3)
    assert choose_likers(AFTER, [7], 5, 0) == [1, 2]


def test_users_with_the_most_reactions_are_the_most_active() -> None:
    assert rank_ids((reaction.user_id for reaction in AFTER), 1) == [1]
