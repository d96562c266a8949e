"""Projections of counters in Redis (``plaza.infra.derived.projections``), and holds. Unless stated
otherwise, a function costs one round trip and raises RedisDown.

{<shard>}:user:<id>:counters  hash  version, value: a user's totals, JSON; fence: name of the fence
                                    that readers left
{<shard>}:user:<id>:holds    zset  target -> time of the hold, microseconds since 1970; follows
                                    that the totals do not include yet
{<shard>}:user:<id>:counted   hash  holds that were counted or taken back after a later hold of
                                    the same target, see cancel_hold.lua
{<shard>}:user:<id>:hold:<nonce>  string  the reply to a hold, kept for 1 min for a repeat
{<shard>}:post:<id>:comments  hash  version, value: the number of comments
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from plaza.core.counters.model import COMMENT_TOTAL, USER_COUNTER, Hold, UserCounter
from plaza.infra.derived import projections
from plaza.infra.derived.projections import Projection, key_of
from plaza.infra.redis import masters, redis
from plaza.infra.redis.commands import Argument, Call, RunAll
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import group_by_tag, shard_of
from plaza.infra.redis.terms import Node
from plaza.infra.runtime import clock
from plaza.infra.runtime.settings import settings

HOLD_TTL_MS = 3_600_000
_REPLY_TTL_MS = 60_000
MAX_HOLDS_PER_CALL = 250
# Between the node that stamps holds and the one that assigns versions.
MAX_CLOCK_SKEW_US = 10_000
_MAX_ID = 2**63 - 1
_PROJECTION_KEY = re.compile(r"\{\d+\}:(user|post):([1-9]\d{0,18}):(?:counters|comments)", re.ASCII)
_LUA = Path(__file__).with_name("lua")
HOLD = load_script(_LUA / "hold.lua")
CANCEL_HOLD = load_script(_LUA / "cancel_hold.lua")
RELEASE = load_script(_LUA / "release.lua")


def user_key(user_id: int) -> str:
    return key_of(f"user:{user_id}", "counters")


def _holds_key(user_id: int) -> str:
    return key_of(f"user:{user_id}", "holds")


def _counted_key(user_id: int) -> str:
    return key_of(f"user:{user_id}", "counted")


def comments_key(post_id: int) -> str:
    return key_of(f"post:{post_id}", "comments")


def read_users(user_ids: Iterable[int]) -> dict[int, UserCounter]:
    """Return the totals of the users that are in Redis."""
    ids = list(user_ids)
    cached = projections.read_all([user_key(user_id) for user_id in ids], USER_COUNTER)
    return {
        user_id: projected[1]
        for user_id, projected in zip(ids, cached, strict=True)
        if projected is not None
    }


def project_users(totals: Mapping[int, UserCounter]) -> None:
    """Store newer totals of users that Redis has totals of."""
    projections.store_all(_projections_of(totals), create=False)


def announce_reads(user_ids: Sequence[int]) -> dict[int, str]:
    """Leave a fence for users without totals, before the totals are read from MySQL to be stored:
    ``find_cached_users`` finds them. Return the fence of each user."""
    fences = projections.announce_reads([user_key(user_id) for user_id in user_ids])
    return dict(zip(user_ids, fences, strict=True))


def store_read_users(totals: Mapping[int, UserCounter], announced: Mapping[int, str]) -> None:
    """Store newer totals of users where the fence that ``announce_reads`` returned still is."""
    projections.store_read(_projections_of(totals), [announced[user_id] for user_id in totals])


def _projections_of(totals: Mapping[int, UserCounter]) -> list[Projection]:
    return [
        Projection(user_key(u), total.version, USER_COUNTER.encode(total))
        for u, total in totals.items()
    ]


def find_cached_users(
    user_ids: Iterable[int], also: Callable[[int], str] | None = None
) -> set[int]:
    """Return the users that have totals, a fence or holds in Redis, or the key ``also``, and
    others of their shards.

    A consumer that calls it after its commit need not update the rest: who reads their totals from
    MySQL later reads the committed ones. One command for each shard.
    """
    users: dict[int, list[int]] = {}
    keys: dict[int, list[str]] = {}
    for user_id in user_ids:
        shard = shard_of(f"user:{user_id}")
        users.setdefault(shard, []).append(user_id)
        keys.setdefault(shard, ["EXISTS"]).extend(
            (
                f"{{{shard}}}:user:{user_id}:counters",
                f"{{{shard}}}:user:{user_id}:holds",
                *((also(user_id),) if also else ()),
            )
        )
    counts = redis.pipeline([tuple(of_shard) for of_shard in keys.values()])
    return {
        user_id
        for of_shard, count in zip(users.values(), counts, strict=True)
        if count
        for user_id in of_shard
    }


def read_comments(
    post_ids: Iterable[int], source: RunAll = redis.run_all
) -> dict[int, tuple[int, int]]:
    """Return (comments, version) of the posts that are in ``source``."""
    ids = list(post_ids)
    cached = projections.read_all([comments_key(p) for p in ids], COMMENT_TOTAL, source)
    return {
        p: (projected[1], projected[0])
        for p, projected in zip(ids, cached, strict=True)
        if projected
    }


def project_comments(totals: Mapping[int, tuple[int, int]], *, create: bool) -> None:
    """Store newer (comments, version) of posts, as ``project_users`` does."""
    projections.store_all(
        [
            Projection(comments_key(p), version, COMMENT_TOTAL.encode(total))
            for p, (total, version) in totals.items()
        ],
        create=create,
    )


def owner_of_key(key: str) -> tuple[str, int] | None:
    """Return ("user" or "post", id) that the projection at ``key`` is of; None for other keys."""
    match = _PROJECTION_KEY.fullmatch(key)
    if match is None:
        return None
    owner = match[1], int(match[2])
    return owner if owner[1] <= _MAX_ID and _owned_key(*owner) == key else None


def read_raw(owners: Sequence[tuple[str, int]]) -> list[tuple[str, str] | None]:
    """Return (version, value) of each owner's projection, not parsed; None without a value."""
    answers = redis.pipeline(
        [("HMGET", _owned_key(*owner), "version", "value") for owner in owners]
    )
    return [None if value is None else (version or "", value) for version, value in answers]


def drop_projections(owners: Iterable[tuple[str, int]]) -> None:
    """Delete projections that cannot be parsed."""
    redis.pipeline(redis.delete_commands(_owned_key(*owner) for owner in owners))


def _owned_key(owner_type: str, owner_id: int) -> str:
    return user_key(owner_id) if owner_type == "user" else comments_key(owner_id)


def hold(user_id: int, column: str, limit: int, member: str) -> tuple[bool, Hold | None]:
    """Return (whether Redis has the totals, the hold or None at the limit); see hold.lua.
    Raises RedisDown also when Redis runs the command after its deadline."""
    reply_key = key_of(f"user:{user_id}", f"hold:{secrets.token_hex(6)}")
    keys = (user_key(user_id), _holds_key(user_id), reply_key)
    until_s = clock.monotonic_s() + settings().redis_timeout_s

    def args_for(node: Node) -> tuple[Argument, ...]:
        return column, limit, member, HOLD_TTL_MS, _REPLY_TTL_MS, node.deadline_us(until_s)

    code, *times = masters.run_on_node(HOLD, keys, args_for)
    if code == "LATE":
        raise RedisDown("Redis ran the hold after its deadline", may_have_run=False)
    return code != "COLD", Hold(*times) if code == "HELD" else None


def cancel_hold(user_id: int, member: str, hold: Hold) -> None:
    """Take a hold back; see cancel_hold.lua."""
    keys = (_holds_key(user_id), _counted_key(user_id))
    redis.run(CANCEL_HOLD, keys, (member, *hold, HOLD_TTL_MS))


def release(counted: Iterable[tuple[int, str, int]]) -> None:
    """Drop holds up to a time: (user, member, microseconds)."""
    holds = list(counted)
    keys = [(_holds_key(user), _counted_key(user)) for user, _, _ in holds]
    calls = []
    for group in group_by_tag([of_holds for of_holds, _ in keys], MAX_HOLDS_PER_CALL):
        args = [x for i in group for x in (holds[i][1], holds[i][2] + MAX_CLOCK_SKEW_US)]
        calls.append(Call(RELEASE, [key for i in group for key in keys[i]], (HOLD_TTL_MS, *args)))
    redis.run_all(calls)
