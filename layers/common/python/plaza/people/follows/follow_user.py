"""Follow and unfollow a user: check the rules, then pass the gate."""

from __future__ import annotations

from contextlib import suppress

from plaza.core import counters
from plaza.core.counters import Hold
from plaza.core.reactions import FOLLOW, Target, queries, react
from plaza.core.reactions.model import NotRepeated, Outcome
from plaza.infra.redis.errors import RedisDown
from plaza.people.blocks import Blocked
from plaza.people.blocks import queries as block_queries
from plaza.people.follows.model import FOLLOW_LIMIT, FollowLimit, SelfFollow

_LIMITED_TOTAL = "following_total"


def follow(user_id: int, actor_id: int) -> Outcome:
    """Follow a user. Four round trips to Redis if all is cached. Raises SelfFollow, Blocked,
    FollowLimit, TargetMissing; retryable: OutboxFull, ReactionUndecided, MysqlDown, QueueDown."""
    if user_id == actor_id:
        raise SelfFollow(f"User {user_id} is your own user. Follow another one.")
    block_queries.require_unblocked(actor_id, user_id)
    outcome = _follow(Target("user", user_id), actor_id)
    try:
        block_queries.require_unblocked(actor_id, user_id)
    except Blocked:  # made since the first check; its own unfollow may have come too early
        unfollow(user_id, actor_id)
        raise
    return outcome


def _follow(target: Target, actor_id: int) -> Outcome:
    try:
        hold = counters.hold(actor_id, _LIMITED_TOTAL, FOLLOW_LIMIT, str(target))
    except RedisDown:
        return _follow_without_hold(target, actor_id)
    if hold is None:
        return _repeat_follow(target, actor_id)
    try:
        outcome = react.react(FOLLOW, target, actor_id, True)
    except Exception:
        _cancel_hold(target, actor_id, hold)
        raise
    if outcome.changed is False:
        _cancel_hold(target, actor_id, hold)
    return outcome


def unfollow(user_id: int, actor_id: int) -> Outcome:
    """Unfollow a user. Raises what ``react.react`` raises."""
    return react.react(FOLLOW, Target("user", user_id), actor_id, False)


def _follow_without_hold(target: Target, actor_id: int) -> Outcome:
    """Follow while Redis, which has the holds, is unavailable: compare MySQL's total instead."""
    totals = counters.read_users([actor_id])[actor_id]
    if totals.following_total >= FOLLOW_LIMIT:
        return _repeat_follow(target, actor_id)
    return react.react(FOLLOW, target, actor_id, True)


def _repeat_follow(target: Target, actor_id: int) -> Outcome:
    """Repeat a follow at the limit, without a hold. The gate records it, like any other, so that
    it wins over an earlier 202. Raises FollowLimit if the follow is new, TargetMissing."""
    react.require_existing(target)
    [followers], _ = queries.read_counts([(FOLLOW, target)], actor_id)
    if followers.viewer_state:
        with suppress(NotRepeated):  # unfollowed since the read
            return react.react(FOLLOW, target, actor_id, True, only_repeat=True)
    raise FollowLimit(
        f"You follow {FOLLOW_LIMIT} users, including follows that are not counted yet."
        " Unfollow a user first."
    )


def _cancel_hold(target: Target, actor_id: int, hold: Hold) -> None:
    with suppress(RedisDown):  # the hold expires
        counters.cancel_hold(actor_id, str(target), hold)
