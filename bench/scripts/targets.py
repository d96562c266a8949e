"""Markers of targets."""

from __future__ import annotations

from bench.scripts.cases import Case, nothing
from plaza.targets import marking, redis_targets

CASES = [
    Case(
        "a deleted post",
        redis_targets.MARK,
        nothing,
        lambda run: marking.mark_gone([("post", 7)]),
    ),
]
