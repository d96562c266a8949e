"""Types of counters and claims. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

USER_COLUMNS = (
    "followers_total",
    "following_total",
    "posts_total",
    "likes_received_total",
    "collects_received_total",
)
# A batch of events renders one for each user; this takes a tenth of the time of json.dumps.
_JSON = "{" + ",".join(f'"{column}":%d' for column in (*USER_COLUMNS, "version")) + "}"


class UserCounter(NamedTuple):
    """The totals of a user and their version in MySQL; all 0 without a row."""

    followers_total: int = 0
    following_total: int = 0
    posts_total: int = 0
    likes_received_total: int = 0
    collects_received_total: int = 0
    version: int = 0

    def to_json(self) -> str:
        return _JSON % self

    @classmethod
    def from_json(cls, text: str) -> UserCounter:
        return cls(**json.loads(text))


class Claim(NamedTuple):
    """A reserved place below a limit: its time on the clock of Redis, and that of the member's
    earlier claim, 0 without one. Both in microseconds since 1970."""

    at_us: int
    before_us: int


class ContentCounter(NamedTuple):
    """The totals of a target by column, and the version of each: how many commits changed it."""

    totals: Mapping[str, int]
    versions: Mapping[str, int]
