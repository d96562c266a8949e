"""The state of targets in Redis and MySQL, for the audit and the reconciliation."""

from collections import Counter
from collections.abc import Sequence

from plaza.core.reactions.drift import UNREADABLE, MysqlState, compare_target
from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import MAX_VERSION_US, Target
from plaza.core.reactions.mysql_counts import CountedState, read_counted
from plaza.core.reactions.mysql_log import read_epoch, read_latest_targets
from plaza.core.reactions.mysql_rows import (
    read_actors,
    read_earliest_of,
    read_reacted_above,
)
from plaza.core.reactions.mysql_snapshots import read_counters
from plaza.core.reactions.mysql_sorted_lists import find_differing
from plaza.core.reactions.redis_hydration import evict_all
from plaza.core.reactions.redis_inspection import (
    drop_earliest,
    find_denied,
    inspect_all,
    read_earliest_pages,
    read_recent,
    target_of_earliest,
    target_of_key,
)
from plaza.core.reactions.redis_user_lists import LIST_LENGTH, drop_lists, owner_of_list, read_lists
from plaza.core.reactions.settings import reaction_settings
from plaza.infra.derived.list_state import ListState, compare_entries

__all__ = [
    "UNREADABLE",
    "CountedState",
    "MysqlState",
    "compare_earliest",
    "compare_target",
    "compare_user_lists",
    "drop_earliest",
    "drop_lists",
    "evict_all",
    "find_denied",
    "find_differing",
    "inspect_all",
    "list_active",
    "owner_of_list",
    "read_actors",
    "read_counted",
    "read_counters",
    "read_epoch",
    "read_recent",
    "read_recent_cap",
    "target_of_earliest",
    "target_of_key",
]

_LATEST_EVENTS = 1_000


def list_active(limit: int) -> list[tuple[Kind, Target]]:
    """Return up to ``limit`` targets with the most of the latest 1,000 events.

    An outbox counts as one event: two of each shard are considered. One round trip, one statement.
    Raises RedisDown, MysqlDown.
    """
    from plaza.core.reactions.redis_outbox import find_due  # other callers do not need it

    active = Counter(find_due(MAX_VERSION_US, limit=2))
    for kind, target in read_latest_targets(_LATEST_EVENTS):
        active[KINDS[kind], target] += 1
    return [pair for pair, _ in active.most_common(limit)]


def read_recent_cap() -> int:
    """Return how many actors of a target ``recent`` may have."""
    return reaction_settings().recent_cap


def compare_user_lists(kind: Kind, actor_ids: Sequence[int]) -> dict[int, ListState]:
    """Compare the lists of users in Redis with their rows; omit users without a list. One round
    trip, one statement. Raises RedisDown, MysqlDown."""
    cached = read_lists(kind, actor_ids)
    floors_us = {actor_id: floor_us for actor_id, (floor_us, _) in cached.items()}
    # A list with a floor has fewer entries above it than it may have.
    recorded = read_reacted_above(kind, floors_us, LIST_LENGTH + 1)
    return {
        actor_id: compare_entries(entries, recorded[actor_id])
        for actor_id, (_, entries) in cached.items()
    }


def compare_earliest(kind: Kind, target_type: str, ids: Sequence[int]) -> dict[int, ListState]:
    """Compare the cached pages of the earliest actors with their rows; omit targets without one.
    One round trip, one statement. Raises RedisDown, MysqlDown."""
    pages = read_earliest_pages([(kind, Target(target_type, i)) for i in ids])
    cached = {i: page for i, page in zip(ids, pages, strict=True) if page}
    recorded = read_earliest_of(kind, {Target(target_type, i): len(p) for i, p in cached.items()})
    return {
        i: compare_entries(page, recorded[Target(target_type, i)]) for i, page in cached.items()
    }
