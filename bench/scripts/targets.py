"""Markers of targets."""

from __future__ import annotations

from bench.scripts.cases import Case, nothing
from plaza import targets
from plaza.targets import redis_targets

CASES = [
    Case(
        "a deleted post",
        redis_targets.MARK,
        nothing,
        lambda run: targets.mark_gone([("post", 7)]),
    ),
]
