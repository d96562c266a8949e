"""Types of counters and holds. No I/O."""

from __future__ import annotations

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


COMMENT = "comment"  # the kind of the counter of a post's comments
USER_COLUMNS = UserCounter._fields[:-1]  # all but the version
USER_COUNTER = record_codec("user_totals", UserCounter)
COMMENT_TOTAL: Codec[int] = json_codec("comment_totals", int)


class RecountedRows(NamedTuple):
    """Rows besides reactions that a counter counts, as a context offers them: ``name`` is a kind of
    counters of ``target_type``, or a column of user_counter. ``rows``: a SELECT of their column id,
    of the target."""

    target_type: str
    name: str
    rows: str


class Hold(NamedTuple):
    """A reserved slot below a limit: its time on the clock of Redis, and the time of the member's
    earlier hold, 0 without one. Both in microseconds since 1970."""

    at_us: int
    before_us: int


CounterKey = tuple[str, int, str]
"""The primary key of a counter: type and id of its target, and kind."""


class TargetCounter(NamedTuple):
    """The total of a target and kind, and its version: how many commits changed it.

    ``sorted_at``: the version up to which the list in ``sorted_reaction`` is kept, negative while
    the list is filled, 0 without one.
    """

    total: int = 0
    version: int = 0
    sorted_at: int = 0

    @property
    def keeps_list(self) -> bool:
        """Return whether each commit has to change the sorted list, too."""
        return self.sorted_at != 0 and abs(self.sorted_at) == self.version

    @property
    def has_list(self) -> bool:
        """Return whether the sorted list is complete."""
        return self.sorted_at > 0 and self.sorted_at == self.version


class CounterDelta(NamedTuple):
    """A change of a counter. ``version``: by how much its version is raised, also for a total that
    stays. ``is_ranked``: rankings read the total."""

    total: int
    version: int = 1
    is_ranked: bool = False
