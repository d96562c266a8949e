"""Differences between rankings."""

import pytest

from local.load.rankings import describe_difference

RIGHT = [(9, 5), (7, 5), (8, 1)]


def test_two_equal_rankings_do_not_differ() -> None:
    assert describe_difference("all", RIGHT, list(RIGHT)) is None
    assert describe_difference("day", [], []) is None


@pytest.mark.parametrize(
    ("seen", "difference"),
    [
        ([(7, 5), (9, 5), (8, 1)], "ranking of all: rank 1 is post 7 with 5, not post 9 with 5"),
        ([(9, 5), (7, 4), (8, 1)], "ranking of all: rank 2 is post 7 with 4, not post 7 with 5"),
        (RIGHT[:2], "ranking of all has 2 posts, not 3"),
        ([*RIGHT, (1, 1)], "ranking of all has 4 posts, not 3"),
    ],
)
def test_first_wrong_rank_is_reported(seen: list[tuple[int, int]], difference: str) -> None:
    assert describe_difference("all", RIGHT, seen) == difference
