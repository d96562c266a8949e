"""The settings of recommendations and rankings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from plaza.infra.runtime.settings import BadSettings, declare, read_whole

_NUMBER_BY_NAME = re.compile(r"(?:^|,)([a-z]+)=([0-9]{1,9})(?=,|$)")
_MAX_NUMBER_BY_NAME = 1_000_000


class RankingSettings(NamedTuple):
    """``review_weights`` and ``review_halves`` are of the components of a review's score
    (docs/ranking.md)."""

    review_weights: Mapping[str, int]
    review_halves: Mapping[str, int]
    hot_half_life_h: int


def _numbers_by_name(
    env: Mapping[str, str], name: str, default: str, *, lowest: int
) -> dict[str, int]:
    """Read ``likes=50,age=15``: a whole number for each of the names in ``default``."""
    raw = env.get(name) or default
    numbers = dict(_NUMBER_BY_NAME.findall(raw))
    expected = dict(_NUMBER_BY_NAME.findall(default))
    if numbers.keys() != expected.keys() or raw.count(",") != len(expected) - 1:
        raise BadSettings(f"{name} is {raw!r}, not of the form {default!r}")
    for key, number in numbers.items():
        if not lowest <= int(number) <= _MAX_NUMBER_BY_NAME:
            raise BadSettings(f"{name} has {key}={number}, not {lowest} to {_MAX_NUMBER_BY_NAME}")
    return {key: int(numbers[key]) for key in expected}


def _review_weights(env: Mapping[str, str]) -> dict[str, int]:
    name = "PLAZA_REVIEW_WEIGHTS"
    weights = _numbers_by_name(env, name, "likes=50,length=15,images=10,age=15,author=10", lowest=0)
    if not any(weights.values()):
        raise BadSettings(f"{name} has no weight above 0")
    return weights


def _review_halves(env: Mapping[str, str]) -> dict[str, int]:
    default = "likes=4,length=200,images=1,age=90,author=50"
    return _numbers_by_name(env, "PLAZA_REVIEW_HALVES", default, lowest=1)


def _hot_half_life_h(env: Mapping[str, str]) -> int:
    """Return hours; shorter or longer ones would exceed what a sorted set stores exactly, or the
    hours that are kept."""
    hours = read_whole(env, "PLAZA_HOT_HALF_LIFE_H", 12)
    if not 6 <= hours <= 72:
        raise BadSettings(f"PLAZA_HOT_HALF_LIFE_H is {hours}, not 6 to 72")
    return hours


ranking_settings = declare(
    RankingSettings,
    review_weights=_review_weights,
    review_halves=_review_halves,
    hot_half_life_h=_hot_half_life_h,
)
