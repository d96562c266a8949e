"""Types of counters and holds. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from plaza.infra.runtime.codec import Codec, json_codec, list_codec, record_codec


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


class ShopCounter(NamedTuple):
    """The number of a shop's reviews and the sum of their scores; or a change of both."""

    reviews_total: int
    score_total: int


SHOP_COUNTER = list_codec("shop_totals", ShopCounter)


class Hold(NamedTuple):
    """A reserved slot below a limit: its time on the clock of Redis, and the time of the member's
    earlier hold, 0 without one. Both in microseconds since 1970."""

    at_us: int
    before_us: int


class ContentCounter(NamedTuple):
    """The totals of a target by column, and the version of each: how many commits changed it.

    ``sorted_at``: the version up to which a total's list in ``sorted_reaction`` is kept, negative
    while the list is filled, 0 without one.
    """

    totals: Mapping[str, int]
    versions: Mapping[str, int]
    sorted_at: Mapping[str, int] = {}

    def keeps_list(self, column: str) -> bool:
        """Return whether each commit has to change the sorted list of a total, too."""
        at = self.sorted_at.get(column, 0)
        return at != 0 and abs(at) == self.versions[column]

    def has_list(self, column: str) -> bool:
        """Return whether the sorted list of a total is complete."""
        return self.keeps_list(column) and self.sorted_at[column] > 0
