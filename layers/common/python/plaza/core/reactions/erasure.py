"""Take back the reactions of an erased user, and end the follows of the user by others.

Each passes the gate, so that counters stay exact. Reactions to deleted content stay counted, as
they do for all actors: the gate refuses to change them.
"""

from __future__ import annotations

from contextlib import suppress

from plaza.core import counters
from plaza.core.reactions import mysql_rows
from plaza.core.reactions.hydration import hydrate
from plaza.core.reactions.kinds import FOLLOW, KINDS, Kind
from plaza.core.reactions.model import (
    ReactedTarget,
    Target,
    TargetDeleted,
    TargetMissing,
    TooManyChanges,
)
from plaza.core.reactions.react import react
from plaza.core.reactions.redis_hydration import evict_all
from plaza.core.reactions.redis_user_lists import drop_lists
from plaza.core.targets import external_targets
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.clock import Deadline

_PAGE = 100
_COUNTED = [kind for kind in KINDS.values() if kind.received and kind is not FOLLOW]


def erase(user_id: int, deadline: Deadline) -> int:
    """Return how many reactions of the user, and to the user, were taken back; 0: none is stored.

    Ends at the deadline. A round trip and a message each. Safe to repeat: what is not stored yet is
    taken back again. Raises what ``react`` raises.
    """
    changed = _take_back_own(user_id, deadline) + _end_follows(Target("user", user_id), deadline)
    changed += _disown(user_id, deadline)
    if changed == 0:
        hide(user_id)
    return changed


def _disown(user_id: int, deadline: Deadline) -> int:
    """Take the user from the targets of the app that it owns, and their reactions from what it
    received; return how many. One transaction of five statements for 100 of them."""

    def work(cursor: Cursor) -> int:
        disowned = external_targets.erase_owner(cursor, user_id, _PAGE)
        keys = [(*target, kind.name) for target in disowned for kind in _COUNTED]
        received: dict[str, int] = {}
        for (_, _, kind), total in counters.read_totals(cursor, keys).items():
            column = KINDS[kind].received or ""
            received[column] = received.get(column, 0) - total
        if received:
            counters.add_to_users(cursor, {(user_id,): received})
        return len(disowned)

    changed = 0
    while not deadline.has_passed:
        count = mysql.run_in_transaction(work)
        changed += count
        if count < _PAGE:
            break
    if changed:
        counters.refresh_projections([user_id])
    return changed


def hide(user_id: int) -> None:
    """Drop the user as a target, and the user's lists, from Redis: later follows find no user.
    Two round trips. Raises RedisDown."""
    evict_all([(FOLLOW, Target("user", user_id), None)])
    drop_lists((kind, user_id) for kind in KINDS.values())


def _take_back_own(user_id: int, deadline: Deadline) -> int:
    changed = 0
    for kind in KINDS.values():
        after: ReactedTarget | None = None
        while page := mysql_rows.read_reacted(kind, user_id, after, _PAGE):
            for reacted in page:
                if deadline.has_passed:
                    return changed
                with suppress(TargetMissing, TargetDeleted):
                    _take_back(kind, reacted.target, user_id)
                    changed += 1
            after = page[-1]
    return changed


def _end_follows(user: Target, deadline: Deadline) -> int:
    changed, after_id = 0, 0
    while page := mysql_rows.read_actors(FOLLOW, user, after_id, _PAGE):
        hydrate([(FOLLOW, user)])  # the gate finds no user to load
        for follower_id in page:
            if deadline.has_passed:
                return changed
            with suppress(TargetMissing):  # it left Redis meanwhile; the next pass repeats it
                _take_back(FOLLOW, user, follower_id)
            changed += 1
        after_id = page[-1]
    return changed


def _take_back(kind: Kind, target: Target, actor_id: int) -> None:
    with suppress(TooManyChanges):  # the next pass repeats it
        react(kind, target, actor_id, False)
