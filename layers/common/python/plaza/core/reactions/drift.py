"""When the state of a target in Redis differs from MySQL, and which differences may be in transit.
No I/O."""

from __future__ import annotations

from typing import NamedTuple

from plaza.core.counters import COMMENT, USER_COLUMNS, USER_COUNTER, UserCounter
from plaza.core.reactions.kinds import KINDS
from plaza.core.reactions.model import CachedTarget, Fingerprint, Unreadable
from plaza.infra.derived.comparisons import Comparison
from plaza.infra.runtime.codec import MAX_VERSION

TYPES = tuple(sorted({target_type for kind in KINDS.values() for target_type in kind.targets}))
TARGET_KINDS = (*KINDS, COMMENT)
USER_TOTALS = {column.removesuffix("_total"): column for column in USER_COLUMNS}

# The reasons of findings.
TOTAL = "total"  # a total of Redis is not the counter
MEMBERS = "members"  # the actors in recent are not the newest active rows
FILTER = "filter"  # the Bloom filter denies an active actor
PROJECTION = "projection"  # the projection of a user or of comments is not the counter
AHEAD = "ahead"  # Redis has a version that MySQL never had, and refuses MySQL's versions
UNKNOWN = "unknown"  # Redis has a total, MySQL has no counter
UNREADABLE = "unreadable"  # Plaza does not write such a value
SORTED = "sorted"  # the sorted list of a target has other entries than there are rows
STUCK = "stuck"  # the outbox does not have outbox_count entries
OF_STATES = (TOTAL, MEMBERS, PROJECTION, AHEAD, UNKNOWN, UNREADABLE, STUCK)


class MysqlState(NamedTuple):
    """MySQL's state of a target and kind. ``newest``: fingerprint of rows above Redis' floor."""

    has_counter: bool
    total: int
    version: int
    newest: Fingerprint


def compare_target(cached: CachedTarget | Unreadable, recorded: MysqlState) -> Comparison:
    """Compare a target in Redis with MySQL, which was read after it."""
    if isinstance(cached, Unreadable):
        return Comparison({UNREADABLE: cached.detail})
    if cached.outbox_count != cached.entries:
        return Comparison(
            {STUCK: f"outbox_count {cached.outbox_count}, the outbox has {cached.entries}"}
        )
    versions = f"Redis @{cached.db_version}, MySQL @{recorded.version}"
    if not recorded.has_counter and (cached.base or cached.newest.actors):
        return Comparison({UNKNOWN: f"Redis {cached.base}, {versions}"})
    reasons = {}
    if cached.db_version > recorded.version:
        reasons[AHEAD] = versions
    if cached.base != recorded.total:
        reasons[TOTAL] = f"Redis {cached.base}, counter {recorded.total}, {versions}"
    if cached.newest != recorded.newest:
        reasons[MEMBERS] = (
            f"Redis {cached.newest.actors} actors, rows {recorded.newest.actors}, {versions}"
        )
    return Comparison(reasons, is_conclusive=cached.db_version >= recorded.version)


def compare_user_totals(cached: tuple[str, str], counter: UserCounter) -> Comparison:
    """Compare a projection (version, value) of a user's totals with the counter, read after it."""
    version = parse_version(cached[0])
    shown = USER_COUNTER.read(cached[1])
    if version is None or shown is None or shown.version != version:
        return Comparison({UNREADABLE: f"@{cached[0]:.20} {cached[1]:.300}"})
    return _compare_projection(
        version,
        shown[:-1] == counter[:-1],
        counter.version,
        cached[1],
        USER_COUNTER.encode(counter),
    )


def compare_comment_total(cached: tuple[str, str], total: int, counter_version: int) -> Comparison:
    """Compare a projection (version, value) of comments with the counter, read after it."""
    version = parse_version(cached[0])
    if version is None or not (cached[1].isascii() and cached[1].removeprefix("-").isdigit()):
        return Comparison({UNREADABLE: f"@{cached[0]:.20} {cached[1]:.20}"})
    return _compare_projection(
        version, int(cached[1]) == total, counter_version, cached[1], str(total)
    )


def _compare_projection(
    version: int, same: bool, counter_version: int, shown: str, counted: str
) -> Comparison:
    details = f"Redis {shown} @{version}, MySQL {counted} @{counter_version}"
    reasons = {}
    if version > counter_version:
        reasons[AHEAD] = details
    if not same:
        reasons[PROJECTION] = details
    return Comparison(reasons, is_conclusive=version >= counter_version)


def parse_version(text: str) -> int | None:
    """Return ``text`` as a version, None if it is not one."""
    if not (text.isascii() and text.isdigit()) or int(text) > MAX_VERSION:
        return None
    return int(text)
