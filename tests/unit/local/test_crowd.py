"""The demo crowd: small, skewed, the same each time, and nobody we know."""

from collections import Counter

from local.crowd import FIRST_ID, PEOPLE, POSTS, make_crowd
from local.interactions import Verb, foresee, plan


def test_the_crowd_is_the_same_each_time() -> None:
    assert make_crowd() == make_crowd()
    assert make_crowd() != make_crowd(seed=8)


def test_its_ids_are_in_a_range_of_their_own() -> None:
    crowd = make_crowd()
    assert {one.user_id for one in crowd} <= set(range(FIRST_ID, FIRST_ID + PEOPLE))
    assert {one.item_id for one in crowd} <= set(range(FIRST_ID, FIRST_ID + POSTS))
    assert FIRST_ID > 1_000_000  # beyond the ids of the public files


def test_it_is_skewed_like_a_real_one() -> None:
    likes = Counter(one.item_id for one in make_crowd() if one.rating >= 4)
    ranked = [count for _, count in likes.most_common()]
    assert ranked[0] > 5 * ranked[len(ranked) // 2]
    assert sum(ranked[: POSTS // 5]) > sum(ranked) / 2


def test_it_likes_collects_views_and_changes_its_mind() -> None:
    requests = plan(make_crowd())
    forecasts, after = foresee(requests, set())
    changes = Counter(
        request.verb for request, forecast in zip(requests, forecasts, strict=True) if forecast[0]
    )
    assert changes[Verb.LIKE] > 200
    assert changes[Verb.COLLECT] > 50
    assert changes[Verb.UNLIKE] > 50
    assert {reaction.kind for reaction in after} == {"like", "collect"}


def test_it_is_sorted_by_time_and_small() -> None:
    crowd = make_crowd()
    assert [one.at_s for one in crowd] == sorted(one.at_s for one in crowd)
    assert 1200 <= len(plan(crowd)) <= 1800
