"""Markers of targets."""

from bench.scripts.cases import Case, prepare_nothing
from plaza.core.targets import markers, redis_store

CASES = [
    Case(
        "a deleted post",
        redis_store.MARK,
        prepare_nothing,
        lambda run: markers.mark_deleted([("post", 7)]),
    ),
]
