"""Profiles: the card of a user with their totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from plaza import counters, reactions, targets
from plaza.infra import mysql
from plaza.infra.observability import cause, record
from plaza.infra.redis import RedisDown
from plaza.reactions import FOLLOW, Target
from plaza.users import mysql_users, redis_users
from plaza.users.cards import read_cards
from plaza.users.users import Profile, UserMissing


def read_profile(user_id: int, actor_id: int | None) -> Profile:
    """The profile of a user as ``actor_id`` sees it, None for nobody in particular.

    Two round trips to Redis when all is warm, and nothing of MySQL; what MySQL is asked in Redis'
    place is rationed. Raises UserMissing, TargetMissing, MysqlDown, RedisDown.
    """
    target = Target("user", user_id)
    try:
        card, totals = redis_users.read_profile(user_id)
        if card is None:
            reactions.require_there(target)  # its marker spares MySQL those who look for nobody
    except RedisDown:
        card, totals = None, None
    [followers], exact = reactions.count([(FOLLOW, target)], actor_id)
    card = card or read_cards([user_id]).get(user_id)
    if card is None:
        raise UserMissing(f"There is no user {user_id}")
    return Profile(
        card=card,
        followers=followers.total,
        totals=totals or counters.read_users([user_id])[user_id],
        following=None if actor_id is None else followers.mine,
        exact=exact,
    )


def change_profile(user_id: int, changes: Mapping[str, str | None]) -> Profile:
    """Change columns of a user's card; their profile after it.

    Announced, committed, then told to Redis: whatever fails from the commit on, the announcement
    makes good. Raises UserMissing, MysqlDown; RedisDown as ``read_profile``, when it is changed.
    """
    targets.announce("user", user_id)
    changed = mysql.atomically(lambda cursor: mysql_users.change_card(cursor, user_id, changes))
    if changed is None:
        raise UserMissing(f"There is no user {user_id}")
    try:
        redis_users.keep_cards({user_id: changed}, create=False)
    except RedisDown as error:
        record("card_postponed", {"cards_postponed": 1}, **cause(error))
    return replace(read_profile(user_id, None), card=changed[0])
