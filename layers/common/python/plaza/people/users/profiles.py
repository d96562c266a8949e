"""Read and change profiles: cards with totals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from plaza.core import counters
from plaza.core.counters import UserCounter
from plaza.core.reactions import FOLLOW, Target, queries, react
from plaza.core.targets import announce, lookup
from plaza.infra.http.requests import check_tag, tag_fields
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.hot_reads import HotReads
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import error_fields, record
from plaza.people.users import mysql_users, redis_store
from plaza.people.users.cards import read_cards, read_zone
from plaza.people.users.model import Card, Profile, UserMissing
from plaza.people.users.zones import DEFAULT

_InRedis = tuple[Card | None, UserCounter | None]
_hot_profiles: HotReads[int, _InRedis] = HotReads(counters.user_key)


def read_profile(user_id: int, actor_id: int | None) -> Profile:
    """Return the profile of a user for the caller ``actor_id``, None: an anonymous caller.

    Two round trips to Redis and no statement if all is hydrated; reads of MySQL in place of Redis
    take from the fallback budget. An anonymous caller gets the totals of a hot user up to 2 s late.
    Raises UserMissing, TargetMissing, MysqlDown, RedisDown.
    """
    if actor_id is not None:
        return _read_profile(user_id, actor_id, lambda: redis_store.read_profile(user_id))

    def load(_: object, source: RunAll) -> dict[int, _InRedis]:
        return {user_id: redis_store.read_profile(user_id, source)}

    return _read_profile(user_id, None, lambda: _hot_profiles.read_all([user_id], load)[user_id])


def _read_profile(user_id: int, actor_id: int | None, read: Callable[[], _InRedis]) -> Profile:
    target = Target("user", user_id)
    try:
        card, totals = read()
        if card is None:
            react.require_existing(target)  # its marker keeps reads of missing users from MySQL
    except RedisDown:
        card, totals = None, None
    [followers], exact = queries.read_counts([(FOLLOW, target)], actor_id)
    card = card or read_cards([user_id]).get(user_id)
    if card is None:
        raise UserMissing(f"User {user_id} does not exist.")
    return Profile(
        card=card,
        followers=followers.total,
        totals=totals or counters.read_users([user_id])[user_id],
        following=None if actor_id is None else followers.viewer_state,
        exact=exact,
        followers_at=followers.at,
    )


def _read_own(user_id: int) -> Profile:
    return _read_profile(user_id, None, lambda: redis_store.read_profile(user_id))


def read_profiles(user_ids: Sequence[int], actor_id: int | None) -> list[Profile]:
    """Return the profiles of the users that exist, in their order, for the caller.

    Four round trips to Redis if all is cached, however many ids there are; ids without a card are
    looked up like targets, so that few of them reach MySQL. Raises TooManyLookups, MysqlDown,
    RedisDown.
    """
    targets = [Target("user", user_id) for user_id in user_ids]
    live = lookup.find_live(targets)
    ids = [target.id for target in targets if target in live]
    cards, totals = read_cards(ids), counters.read_users(ids)
    counts, exact = queries.read_counts([(FOLLOW, Target("user", i)) for i in ids], actor_id)
    return [
        Profile(
            card=cards[user_id],
            followers=followers.total,
            totals=totals[user_id],
            following=None if actor_id is None else followers.viewer_state,
            exact=exact,
            followers_at=followers.at,
        )
        for user_id, followers in zip(ids, counts, strict=True)
        if user_id in cards
    ]


def read_own_profile(user_id: int) -> Profile:
    """Return a user's own profile. As ``read_profile``, and one more round trip."""
    return replace(_read_own(user_id), zone=read_zone(user_id))


def tag_of(profile: Profile) -> str:
    """Return the ETag of a user's own profile: of the fields that the user may change."""
    card, zone = profile.card, profile.zone.name if profile.zone else DEFAULT
    return _tag({"nickname": card.nickname, "avatar": card.avatar, "time_zone": zone})


def _tag(columns: Mapping[str, str | None]) -> str:
    return tag_fields(*(columns[name] for name in mysql_users.PROFILE_COLUMNS))


def change_profile(
    user_id: int, changes: Mapping[str, str | None], tags: Collection[str] | None = None
) -> Profile:
    """Change columns of a user's card or the time zone; return the user's own profile.

    ``tags``: of the versions that may be changed; without them the last of concurrent changes wins.
    The change is announced, committed, then projected; the announcement repairs what fails after
    the commit. Raises UserMissing, ChangedMeanwhile, MysqlDown; RedisDown after the change is
    committed.
    """

    def work(cursor: Cursor) -> tuple[Card, int] | None:
        if tags is not None and (stored := mysql_users.lock_profile(cursor, user_id)):
            check_tag(tags, _tag(stored), _tag({**stored, **changes}), "profile")
        if name := changes.get("time_zone"):
            mysql_users.move_to_zone(cursor, user_id, name, clock.now_s())
        return mysql_users.update_columns(cursor, user_id, changes)

    announce.announce_write("user", user_id)
    changed = mysql.run_in_transaction(work)
    if changed is None:
        raise UserMissing(f"User {user_id} does not exist.")
    zones = mysql_users.read_zones([user_id])
    try:
        redis_store.store_cards({user_id: changed}, create=False)
        if "time_zone" in changes:
            redis_store.store_zones(zones, create=False)
    except RedisDown as error:
        record(
            "card_projection_postponed", {"card_projections_postponed": 1}, **error_fields(error)
        )
    return replace(_read_own(user_id), card=changed[0], zone=zones[user_id][0])
