"""Lists that Redis derives from MySQL and that can be dropped at any time.

A scan of Redis finds their keys, so each run compares all that Redis has. An inbox costs as much as
a page of old posts: each night compares the inboxes of a 28th of all users. The repair of a list
drops it: its next reader loads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from plaza.checkins import inspection as checkins
from plaza.feed import inspection as feed
from plaza.infra.derived.list_state import ListState
from plaza.infra.runtime import clock
from plaza.reactions import KINDS, Kind, inspection
from plaza.reconciliation.model import ROUND_S, Subject

_OWNER = "user"
_DAY_S = 86_400


class DerivedList(NamedTuple):
    """A kind of list of users. ``find_owner``: the user of a key, None for any other key.
    ``compare``: user -> the state of the list, without users of whom Redis has none; a constant
    number of round trips and statements. ``drop``: drops the lists of users."""

    find_owner: Callable[[str], int | None]
    compare: Callable[[Sequence[int]], dict[int, ListState]]
    drop: Callable[[Sequence[int]], object]


def _of_kind(kind: Kind) -> DerivedList:
    def find_owner(key: str) -> int | None:
        owner = inspection.owner_of_list(key)
        return owner[1] if owner and owner[0] is kind else None

    return DerivedList(
        find_owner,
        partial(inspection.compare_user_lists, kind),
        lambda user_ids: inspection.drop_lists((kind, user_id) for user_id in user_ids),
    )


def _of_inbox(key: str) -> int | None:
    inbox = feed.owner_of(key)
    is_compared = inbox and inbox.kind == "inbox" and is_in_share(inbox.user_id)
    return inbox.user_id if inbox and is_compared else None


def _of_star(key: str) -> int | None:
    timeline = feed.owner_of(key)
    return timeline.user_id if timeline and timeline.kind == "posts" else None


def is_in_share(user_id: int) -> bool:
    """Return whether a user belongs to the share of this day: each user does in one of 28 days."""
    days = ROUND_S // _DAY_S
    return user_id % days == int(clock.now_s() // _DAY_S) % days


LISTS: dict[str, DerivedList] = {
    **{f"list-{name}": _of_kind(kind) for name, kind in KINDS.items()},
    "inbox": DerivedList(_of_inbox, feed.compare_inboxes, feed.drop_inboxes),
    "star-posts": DerivedList(_of_star, feed.compare_star_posts, feed.drop_star_posts),
    "check-ins": DerivedList(checkins.owner_of_key, checkins.compare, checkins.drop),
}
"""``what`` of a subject -> the list."""


def find_subject(key: str) -> Subject | None:
    """Return the subject whose list ``key`` has, None for any other key."""
    for what, derived in LISTS.items():
        if (user_id := derived.find_owner(key)) is not None:
            return Subject(what, _OWNER, user_id)
    return None


def compare(subjects: Sequence[Subject]) -> dict[Subject, ListState]:
    """Compare lists with MySQL; omit subjects of which Redis has none. At most two round trips and
    a statement for each kind of list, and a statement for each 20 inboxes. Raises RedisDown,
    MysqlDown."""
    states: dict[Subject, ListState] = {}
    for what, user_ids in _group(subjects).items():
        of_users = LISTS[what].compare(user_ids)
        states |= {Subject(what, _OWNER, user_id): state for user_id, state in of_users.items()}
    return states


def drop(subjects: Sequence[Subject]) -> None:
    """Drop lists. One round trip for each kind of list. Raises RedisDown."""
    for what, user_ids in _group(subjects).items():
        LISTS[what].drop(user_ids)


def _group(subjects: Sequence[Subject]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for subject in sorted(set(subjects)):
        groups.setdefault(subject.what, []).append(subject.id)
    return groups
