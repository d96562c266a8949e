"""Lists, unread counters and units of sales that Redis derives from MySQL and that can be dropped
any time.

A scan of Redis finds their keys, so each run compares all that Redis has. An inbox costs as much as
a page of old posts: each night compares the inboxes of a 28th of all users. The repair of a list
drops it: its next reader loads it again. A sale is compared while no order changes it between both
looks; else it is passed over, and compared when it is settled. Places and filters of shops and
vouchers are compared by cycles of all ids, and projected again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from plaza.commerce.checkins import inspection as checkins
from plaza.commerce.flash_sales import inspection as sales
from plaza.commerce.shops import inspection as shops
from plaza.core.reactions import KINDS, Kind, Target, inspection
from plaza.infra.derived.list_state import ListState
from plaza.infra.runtime import clock
from plaza.notifications.unread import inspection as unread_counters
from plaza.operate.reconciliation.model import CYCLE_S, Subject
from plaza.social.feed import inspection as feed

_DAY_S = 86_400


class DerivedList(NamedTuple):
    """A kind of list of owners. ``find_owner``: the owner of a key, None for any other key.
    ``compare``: owner -> the state of the list, without owners of whom Redis has none; a constant
    number of round trips and statements. ``drop``: drops the lists of owners. ``owner``: their
    type."""

    find_owner: Callable[[str], int | None]
    compare: Callable[[Sequence[int]], dict[int, ListState]]
    drop: Callable[[Sequence[int]], object]
    owner: str = "user"


def _of_kind(kind: Kind) -> DerivedList:
    def find_owner(key: str) -> int | None:
        owner = inspection.owner_of_list(key)
        return owner[1] if owner and owner[0] is kind else None

    return DerivedList(
        find_owner,
        partial(inspection.compare_user_lists, kind),
        lambda user_ids: inspection.drop_lists((kind, user_id) for user_id in user_ids),
    )


def _of_earliest(kind: Kind, target_type: str) -> DerivedList:
    def find_owner(key: str) -> int | None:
        pair = inspection.target_of_earliest(key)
        return pair[1].id if pair and pair[0] is kind and pair[1].type == target_type else None

    return DerivedList(
        find_owner,
        partial(inspection.compare_earliest, kind, target_type),
        lambda ids: inspection.drop_earliest((kind, Target(target_type, i)) for i in ids),
        owner=target_type,
    )


def _of_inbox(key: str) -> int | None:
    inbox = feed.owner_of(key)
    is_compared = inbox and inbox.kind == "inbox" and is_in_quota(inbox.user_id)
    return inbox.user_id if inbox and is_compared else None


def _of_celebrity(key: str) -> int | None:
    timeline = feed.owner_of(key)
    return timeline.user_id if timeline and timeline.kind == "posts" else None


def _of_no_key(_: str) -> None:
    """A cycle of all ids compares it, because most keys have many owners."""


def is_in_quota(user_id: int) -> bool:
    """Return whether a user belongs to the quota of this day: each user does in one of 28 days."""
    days = CYCLE_S // _DAY_S
    return user_id % days == int(clock.now_s() // _DAY_S) % days


LISTS: dict[str, DerivedList] = {
    **{f"list-{name}": _of_kind(kind) for name, kind in KINDS.items()},
    **{
        f"earliest-{name}-{target_type}": _of_earliest(kind, target_type)
        for name, kind in KINDS.items()
        for target_type in kind.targets
    },
    "unread-cache": DerivedList(
        unread_counters.owner_of_key, unread_counters.compare, unread_counters.drop_unread
    ),
    "inbox": DerivedList(_of_inbox, feed.compare_inboxes, feed.drop_inboxes),
    "celebrity-posts": DerivedList(
        _of_celebrity, feed.compare_celebrity_posts, feed.drop_celebrity_posts
    ),
    "check-ins": DerivedList(checkins.owner_of_key, checkins.compare, checkins.drop),
    "shop": DerivedList(_of_no_key, shops.compare, shops.repair, owner="shop"),
    "voucher": DerivedList(_of_no_key, sales.compare_filter, sales.add_to_filter, owner="voucher"),
    "sale": DerivedList(
        sales.voucher_of_key, sales.compare_sales, sales.reload_sales, owner="voucher"
    ),
}
"""``what`` of a subject -> the list."""


def find_subject(key: str) -> Subject | None:
    """Return the subject whose list ``key`` has, None for any other key."""
    for what, derived in LISTS.items():
        if (owner_id := derived.find_owner(key)) is not None:
            return Subject(what, derived.owner, owner_id)
    return None


def compare(subjects: Sequence[Subject]) -> dict[Subject, ListState]:
    """Compare lists with MySQL; omit subjects of which Redis has none. At most two round trips and
    a statement for each kind of list, and a statement for each 20 inboxes. Raises RedisDown,
    MysqlDown."""
    states: dict[Subject, ListState] = {}
    for what, owner_ids in _group(subjects).items():
        derived = LISTS[what]
        of_owners = derived.compare(owner_ids)
        states |= {Subject(what, derived.owner, i): state for i, state in of_owners.items()}
    return states


def drop(subjects: Sequence[Subject]) -> None:
    """Drop lists. One round trip for each kind of list, and for sales ``reload_sales``. Raises
    RedisDown, MysqlDown."""
    for what, owner_ids in _group(subjects).items():
        LISTS[what].drop(owner_ids)


def _group(subjects: Sequence[Subject]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for subject in sorted(set(subjects)):
        groups.setdefault(subject.what, []).append(subject.id)
    return groups
