"""Lists of users: pages whose round trips do not grow with their length."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.core.reactions import FOLLOW, Target, queries, react
from plaza.core.reactions.model import ReactedTarget, Reactor
from plaza.people.follows import mysql_store
from plaza.people.follows.model import FollowCursor, Person
from plaza.people.users.cards import read_cards

Page = tuple[list[Person], FollowCursor | None]


def list_followers(
    user_id: int, actor_id: int | None, after: FollowCursor | None, latest: bool, limit: int
) -> Page:
    """Return a page of a user's followers, and the cursor of the next page (None: the end).
    Raises TargetMissing, MysqlDown, RedisDown."""
    begin = Reactor(after.user_id, after.version_us) if after else None
    page, last = queries.list_reactors(FOLLOW, Target("user", user_id), begin, latest, limit)
    people = _read_people([FollowCursor(r.version_us, r.actor_id) for r in page], actor_id)
    return people, FollowCursor(last.version_us, last.actor_id) if last else None


def list_following(
    user_id: int, actor_id: int | None, after: FollowCursor | None, limit: int
) -> Page:
    """Return a page of the users that a user follows, newest first; see ``list_followers``."""
    react.require_existing(Target("user", user_id))
    begin = ReactedTarget(Target("user", after.user_id), after.version_us) if after else None
    page, last = queries.list_reacted(FOLLOW, user_id, begin, limit)
    people = _read_people([FollowCursor(r.version_us, r.target.id) for r in page], actor_id)
    return people, FollowCursor(last.version_us, last.target.id) if last else None


def list_common(user_id: int, actor_id: int, after: FollowCursor | None, limit: int) -> Page:
    """Return a page of the users that both follow, the actor's newest first; see above."""
    react.require_existing(Target("user", user_id))
    cursors = mysql_store.read_common(user_id, actor_id, after, limit + 1)
    last = cursors[limit - 1] if len(cursors) > limit else None
    return _read_people(cursors[:limit], actor_id), last


def _read_people(cursors: Sequence[FollowCursor], actor_id: int | None) -> list[Person]:
    """Return the users at ``cursors`` with their cards and the actor's follows."""
    ids = [cursor.user_id for cursor in cursors]
    cards = read_cards(ids)
    followed: dict[int, bool] = {}
    if actor_id is not None:
        counts, _ = queries.read_counts([(FOLLOW, Target("user", i)) for i in ids], actor_id)
        followed = {i: count.viewer_state for i, count in zip(ids, counts, strict=True)}
    return [
        Person(p.user_id, cards.get(p.user_id), p.version_us, followed.get(p.user_id))
        for p in cursors
    ]
