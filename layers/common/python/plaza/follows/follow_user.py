"""Following: the rules first, then the gate."""

from __future__ import annotations

from contextlib import suppress

from plaza import counters
from plaza.counters import Claim
from plaza.follows.model import FOLLOW_LIMIT, FollowLimit, SelfFollow
from plaza.infra.redis import RedisDown
from plaza.reactions import FOLLOW, Outcome, Target, queries, react

_LIMITED_TOTAL = "following_total"


def follow(user_id: int, actor_id: int) -> Outcome:
    """Follow a user. Two round trips to Redis when all is warm.

    Raises SelfFollow, FollowLimit, TargetMissing; OutboxFull, ReactionUndecided, MysqlDown, QueueDown mean:
    try again.
    """
    if user_id == actor_id:
        raise SelfFollow(f"User {user_id} is you")
    target = Target("user", user_id)
    try:
        claim = counters.claim(actor_id, _LIMITED_TOTAL, FOLLOW_LIMIT, str(target))
    except RedisDown:
        return _follow_unclaimed(target, actor_id)
    if claim is None:
        return _keep_following(target, actor_id)
    try:
        outcome = react.react(FOLLOW, target, actor_id, True)
    except Exception:
        _unclaim(target, actor_id, claim)
        raise
    if outcome.changed is False:
        _unclaim(target, actor_id, claim)
    return outcome


def unfollow(user_id: int, actor_id: int) -> Outcome:
    """Follow a user no more. Raises what ``reactions.react`` raises."""
    return react.react(FOLLOW, Target("user", user_id), actor_id, False)


def _follow_unclaimed(target: Target, actor_id: int) -> Outcome:
    """Redis is away, and with it what is on its way: MySQL's total has to do for the limit."""
    totals = counters.read_users([actor_id])[actor_id]
    if totals.following_total >= FOLLOW_LIMIT:
        return _keep_following(target, actor_id)
    return react.react(FOLLOW, target, actor_id, True)


def _keep_following(target: Target, actor_id: int) -> Outcome:
    """At the limit, who follows already goes on. Raises FollowLimit, TargetMissing."""
    react.require_existing(target)
    [followers], _ = queries.read_counts([(FOLLOW, target)], actor_id)
    if not followers.viewer_state:
        raise FollowLimit(f"You follow {FOLLOW_LIMIT} users, or will in a moment")
    return Outcome(on=True, total=followers.total, changed=False)


def _unclaim(target: Target, actor_id: int, claim: Claim) -> None:
    with suppress(RedisDown):  # then it lapses
        counters.unclaim(actor_id, str(target), claim)
