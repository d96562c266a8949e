"""Types of counters and claims. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from plaza.infra.runtime.codec import Codec, json_codec, record_codec


class UserCounter(NamedTuple):
    """The totals of a user and their version in MySQL; all 0 without a row."""

    followers_total: int = 0
    following_total: int = 0
    posts_total: int = 0
    likes_received_total: int = 0
    collects_received_total: int = 0
    version: int = 0


CONTENT_COLUMNS = ("like_total", "collect_total", "comment_total", "follow_total")
USER_COLUMNS = UserCounter._fields[:-1]  # all but the version
USER_COUNTER = record_codec("user_totals", UserCounter)
COMMENT_TOTAL: Codec[int] = json_codec("comment_totals", int)


class Claim(NamedTuple):
    """A reserved slot below a limit: its time on the clock of Redis, and the time of the member's
    earlier claim, 0 without one. Both in microseconds since 1970."""

    at_us: int
    before_us: int


class ContentCounter(NamedTuple):
    """The totals of a target by column, and the version of each: how many commits changed it."""

    totals: Mapping[str, int]
    versions: Mapping[str, int]
