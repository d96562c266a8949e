"""Recommended reviews: lists of full length."""

from bench.scripts.cases import Case
from plaza.social.recommendations import LIST_LENGTH, redis_store
from plaza.social.recommendations.model import ReviewList

SHOP = 7


def _swap(run: int = 0) -> None:
    rebuild = redis_store.begin_rebuilds([SHOP])
    list_of_shop = ReviewList(range(10**18, 10**18 + LIST_LENGTH), None)
    redis_store.replace_lists({SHOP: list_of_shop}, rebuild)


CASES = [
    Case(
        "a full list",
        redis_store.READ_LIST,
        lambda harness: _swap(),
        lambda run: redis_store.read_list(SHOP),
    ),
    Case("a full list", redis_store.REPLACE_LIST, lambda harness: _swap(), _swap),
]
