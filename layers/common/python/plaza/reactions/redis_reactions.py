"""Where reactions are in Redis, and the scripts that touch them.

Everything about one target lives in one of 1,024 logical shards, and every key of a shard carries
the hash tag ``{<shard>}``. Per target and kind, under ``{<shard>}:<kind>:<target>:``

    meta     hash    total; ver, the last given; dbver and dbtotal, the newest the database told;
                     complete, recent has everybody; bloom, the bits of the filter in use, 0 none;
                     filling, filling_by, filling_at: of the filter being built; rebuild_at, when
                     one was last asked for; waiting, how many are pending; stale; gone, it
                     was deleted; sweeps, sweep_cursor
    pending  hash    actor -> state:ver:total; accepted, not yet confirmed: the outbox
    recent   zset    actor -> ver; the newest actors, at most cap
    older    bitmap  Bloom filter of the actors that fell out of recent
    filling  bitmap  the Bloom filter that is being built
    fence    string  newest dbver heard while the target was not in Redis

per shard ``{<shard>}:dirty``, a zset: <kind>:<target> -> oldest pending ver, or when it was last
swept; and per user and kind, in the shard of the user, ``{<shard>}:<kind>:user:<id>:``

    newest   zset    target -> ver; floor -> the version above which the list is whole
    lease    string  which reader may fill it
"""

from __future__ import annotations

import random
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.redis import Call
from plaza.infra.settings import settings
from plaza.infra.shards import SHARDS, shard_of
from plaza.reactions.mysql_reactions import Reacted, Reactor, Snapshot
from plaza.reactions.reactions import (
    KINDS,
    MOST_ID,
    MOST_VER_US,
    Key,
    Kind,
    ReactionChanged,
    Target,
)

FENCE_TTL_S = 300
LIST_LENGTH = 100
LIST_TTL_S = 86_400
LEASE_TTL_S = 10
_FLOOR = "floor"

_LUA = Path(__file__).with_name("lua")
GATE = load_script(_LUA / "gate.lua")
READ = load_script(_LUA / "read.lua")
PAGE = load_script(_LUA / "page.lua")
HYDRATE = load_script(_LUA / "hydrate.lua")
BURY = load_script(_LUA / "bury.lua")
FORGET = load_script(_LUA / "forget.lua")
SETTLE = load_script(_LUA / "settle.lua")
SWEEP = load_script(_LUA / "sweep.lua")
BEGIN_BLOOM = load_script(_LUA / "begin_bloom.lua")
FILL_BLOOM = load_script(_LUA / "fill_bloom.lua")
FILL_LIST = load_script(_LUA / "fill_list.lua")
INSPECT = load_script(_LUA / "inspect.lua")
FIND_DENIED = load_script(_LUA / "find_denied.lua")

_META_KEY = re.compile(r"\{\d+\}:([a-z]+):([a-z]+):([1-9]\d{0,18}):meta", re.ASCII)


class Keys(NamedTuple):
    """The keys of one target and kind; ``member`` is its name in the shard's dirty set."""

    meta: str
    pending: str
    recent: str
    older: str
    filling: str
    fence: str
    dirty: str
    member: str


class Decision(NamedTuple):
    """What the gate decided; see gate.lua for the codes."""

    code: str
    total: int
    ver_us: int
    rebuild: bool


class Seen(NamedTuple):
    """What Redis knows of a target: its total, and if the asking actor is on (None: ask MySQL)."""

    total: int
    mine: bool | None
    rebuild: bool


class Settlement(NamedTuple):
    """What MySQL has of one target and kind after a commit; ``rows`` are (actor, ver_us, on)."""

    kind: Kind
    target: Target
    dbtotal: int
    dbver: int
    rows: Sequence[tuple[int, int, bool]]


class Settled(NamedTuple):
    """What settling one target came to; see settle.lua for the codes."""

    code: str
    drift: int


class Fingerprint(NamedTuple):
    """Of some actors: how many, the sum of their ids and of their versions, each mod 10^9."""

    actors: int
    ids: int
    vers: int


class Held(NamedTuple):
    """What Redis holds of a target and kind, as far as it can be compared with MySQL.

    ``waiting`` and ``pending`` are how many are in the outbox, by its meta and by itself. The
    fingerprint is of everybody in recent with a version above ``floor_us``; None: of nobody.
    """

    total: int
    dbver: int
    waiting: int
    pending: int
    complete: bool
    bloom: int
    floor_us: int | None
    newest: Fingerprint


class Unreadable(NamedTuple):
    """What Redis holds of a target is not what Plaza writes; ``said`` shows it."""

    said: str


@lru_cache(maxsize=8192)
def keys_of(kind: str, target: Target) -> Keys:
    """The keys of ``target``. Every script gets its keys from here."""
    tag = f"{{{shard_of(str(target))}}}"
    base = f"{tag}:{kind}:{target}"
    return Keys(
        meta=f"{base}:meta",
        pending=f"{base}:pending",
        recent=f"{base}:recent",
        older=f"{base}:older",
        filling=f"{base}:filling",
        fence=f"{base}:fence",
        dirty=_dirty_key(shard_of(str(target))),
        member=f"{kind}:{target}",
    )


def _dirty_key(shard: int) -> str:
    return f"{{{shard}}}:dirty"


def _list_keys(kind: str, actor_id: int) -> tuple[str, str]:
    base = f"{{{shard_of(f'user:{actor_id}')}}}:{kind}:user:{actor_id}"
    return f"{base}:newest", f"{base}:lease"


def _idle_ttl_ms() -> int:
    """Ten days, more or less: what was hydrated together need not expire together."""
    return int(settings().idle_ttl_s * 1000 * random.uniform(0.9, 1.1))


def gate(
    kind: Kind, target: Target, actor_id: int, on: bool, hint: tuple[bool, int] | None
) -> Decision:
    """Decide one reaction; ``hint`` is (state, dbver) from MySQL. One round trip.

    Raises RedisDown.
    """
    keys = keys_of(kind.name, target)
    answer = redis.run(
        GATE,
        (keys.meta, keys.pending, keys.recent, keys.older, keys.filling, keys.dirty),
        (
            actor_id,
            int(on),
            "" if hint is None else int(hint[0]),
            0 if hint is None else hint[1],
            settings().recent_cap,
            settings().outbox_limit,
            keys.member,
            _idle_ttl_ms(),
        ),
    )
    code, total, ver_us, rebuild = answer if len(answer) == 4 else (answer[0], 0, 0, 0)
    return Decision(code, total, ver_us, rebuild == 1)


def read_all(wanted: Sequence[tuple[Kind, Target]], actor_id: int | None) -> list[Seen | None]:
    """What Redis knows of each of ``wanted``; None for what isn't there. One round trip.

    Raises RedisDown.
    """
    actor, ttl_ms = "" if actor_id is None else actor_id, _idle_ttl_ms()
    calls = []
    for kind, target in wanted:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(
                READ,
                (keys.meta, keys.pending, keys.recent, keys.older, keys.filling),
                (actor, ttl_ms),
            )
        )
    return [
        a and Seen(a[0], None if a[1] == -1 else a[1] == 1, a[2] == 1) for a in redis.run_all(calls)
    ]


def hydrate_all(found: Sequence[tuple[Kind, Target, Snapshot]]) -> list[str]:
    """Bring targets back; HYDRATED, PRESENT or FENCED for each. One round trip.

    Raises RedisDown.
    """
    calls = []
    for kind, target, snapshot in found:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(
                HYDRATE,
                (keys.meta, keys.recent, keys.fence, keys.older, keys.filling, keys.pending),
                (
                    snapshot.total,
                    snapshot.dbver,
                    int(snapshot.complete),
                    snapshot.last_ver_us,
                    _idle_ttl_ms(),
                    *(part for pair in snapshot.newest for part in pair),
                ),
            )
        )
    return redis.run_all(calls)


def forget_all(targets: Iterable[tuple[Kind, Target]]) -> None:
    """Drop what Redis holds of ``targets``, or mark it stale. One round trip. Raises RedisDown."""
    calls = []
    for kind, target in targets:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(FORGET, (keys.meta, keys.pending, keys.recent, keys.older, keys.filling), ())
        )
    redis.run_all(calls)


def bury_all(deleted: Iterable[Target]) -> None:
    """Mark what Redis holds of deleted targets, of all kinds. One round trip. Raises RedisDown."""
    redis.run_all(
        [
            Call(BURY, (keys_of(kind.name, target).meta,), ())
            for target in deleted
            for kind in KINDS.values()
            if target.type in kind.targets
        ]
    )


def settle_all(settlements: Sequence[Settlement]) -> list[Settled]:
    """Tell targets what MySQL has, and drop the lists of those who reacted. One round trip.

    Raises RedisDown.
    """
    scripts: list[Call] = []
    leave_at_ms = int(time.time() * 1000) + _idle_ttl_ms()
    for settlement in settlements:
        keys = keys_of(settlement.kind.name, settlement.target)
        scripts.append(
            Call(
                SETTLE,
                (
                    keys.meta,
                    keys.pending,
                    keys.recent,
                    keys.older,
                    keys.filling,
                    keys.dirty,
                    keys.fence,
                ),
                (
                    settlement.dbtotal,
                    settlement.dbver,
                    keys.member,
                    leave_at_ms,
                    FENCE_TTL_S,
                    settings().recent_cap,
                    *(part for actor, ver, on in settlement.rows for part in (actor, ver, int(on))),
                ),
            )
        )
    of_users = sorted({(s.kind.name, row[0]) for s in settlements for row in s.rows})
    lists = (key for of_user in of_users for key in _list_keys(*of_user))
    answers = redis.run_all(scripts, redis.deletions(lists))
    return [Settled(code, drift) for code, drift in answers[: len(scripts)]]


def target_of_key(key: str) -> tuple[Kind, Target] | None:
    """The target whose meta ``key`` is, None for any other key."""
    found = _META_KEY.fullmatch(key)
    if found is None or found[1] not in KINDS:
        return None
    kind, target = KINDS[found[1]], Target(found[2], int(found[3]))
    ours = target.type in kind.targets and target.id <= MOST_ID
    return (kind, target) if ours and keys_of(kind.name, target).meta == key else None


def inspect_all(wanted: Sequence[tuple[Kind, Target]], most: int) -> list[Held | Unreadable | None]:
    """What Redis holds of each of ``wanted``, with its ``most`` newest actors; None: nothing.

    Nothing lives longer for it. One round trip. Raises RedisDown.
    """
    calls = []
    for kind, target in wanted:
        keys = keys_of(kind.name, target)
        calls.append(Call(INSPECT, (keys.meta, keys.pending, keys.recent), (most,)))
    return [answer and _read_held(answer) for answer in redis.run_all(calls)]


def _read_held(answer: Sequence[str | int]) -> Held | Unreadable:
    total, dbver, waiting, pending, complete, bloom, floor, *newest = answer
    try:
        floor_us = int(floor)
        held = Held(
            int(total),
            int(dbver),
            int(waiting),
            int(pending),
            complete == "1",
            int(bloom),
            None if floor_us < 0 else floor_us,
            Fingerprint(*map(int, newest)),
        )
    except ValueError:
        return Unreadable(f"total {total!s:.20} dbver {dbver!s:.20} waiting {waiting!s:.20}")
    return held if 0 <= held.dbver <= MOST_VER_US else Unreadable(f"dbver {dbver!s:.20}")


def find_denied(wanted: Sequence[tuple[Kind, Target, Sequence[int]]]) -> list[list[int]]:
    """Of each page of actors, whom the gate would take for off without asking MySQL.

    Who is pending is left out. One round trip. Raises RedisDown.
    """
    calls = []
    for kind, target, actor_ids in wanted:
        keys = keys_of(kind.name, target)
        of_target = (keys.meta, keys.pending, keys.recent, keys.older)
        calls.append(Call(FIND_DENIED, of_target, tuple(actor_ids)))
    return [[int(actor) for actor in answer] for answer in redis.run_all(calls)]


def read_recent(wanted: Sequence[tuple[Kind, Target]], most: int) -> list[dict[str, int]]:
    """actor -> ver_us of the ``most`` newest of each. One round trip. Raises RedisDown."""
    found = []
    for answer in redis.pipeline(
        [
            ("ZRANGE", keys_of(kind.name, target).recent, 0, most - 1, "REV", "WITHSCORES")
            for kind, target in wanted
        ]
    ):
        pairs = iter(answer)
        found.append({a: int(float(ver)) for a, ver in zip(pairs, pairs, strict=True)})
    return found


def read_page(
    kind: Kind, target: Target, after: Reactor | None, latest: bool, count: int
) -> tuple[bool, list[Reactor]] | None:
    """(everybody is in recent, the page of it from ``after`` on), or None when the target is away.

    The page holds ``count`` or more if there are so many, those equal to ``after`` included.
    Raises RedisDown.
    """
    keys = keys_of(kind.name, target)
    begin = after.ver_us if after else ("+inf" if latest else "-inf")
    answer = redis.run(PAGE, (keys.meta, keys.recent), (begin, "desc" if latest else "asc", count))
    if not answer:
        return None
    pairs = iter(answer[1:])
    return answer[0] == 1, [
        Reactor(int(actor), int(float(ver))) for actor, ver in zip(pairs, pairs, strict=True)
    ]


def read_pending(
    kind: Kind, target: Target, actor_ids: Sequence[int]
) -> dict[int, tuple[bool, int]]:
    """(on, ver_us) of those of ``actor_ids`` who are in the outbox. Raises RedisDown."""
    if not actor_ids:
        return {}
    entries = redis.execute("HMGET", keys_of(kind.name, target).pending, *actor_ids)
    found = {}
    for actor_id, entry in zip(actor_ids, entries, strict=True):
        if entry:
            state, ver, _ = entry.split(":")
            found[actor_id] = state == "1", int(ver)
    return found


def read_list(kind: Kind, actor_id: int) -> tuple[int, list[Reacted]] | None:
    """(floor_us, the newest reactions of a user): whole above the floor, in no order.

    None when it isn't in Redis. Raises RedisDown.
    """
    entries = redis.execute("ZRANGE", _list_keys(kind.name, actor_id)[0], 0, -1, "WITHSCORES")
    if not entries:
        return None
    floor_us, found = 0, []
    pairs = iter(entries)
    for member, score in zip(pairs, pairs, strict=True):
        if member == _FLOOR:
            floor_us = int(float(score))
            continue
        target_type, _, target_id = member.partition(":")
        found.append(Reacted(Target(target_type, int(target_id)), int(float(score))))
    return floor_us, found


def take_lease(kind: Kind, actor_id: int) -> str:
    """Leave to fill the user's list with what MySQL says from now on. Raises RedisDown."""
    lease = secrets.token_hex(8)
    redis.execute("SET", _list_keys(kind.name, actor_id)[1], lease, "EX", LEASE_TTL_S)
    return lease


def fill_list(
    kind: Kind, actor_id: int, lease: str, newest: Sequence[Reacted], floor_us: int
) -> None:
    """Keep ``newest`` as the user's list unless it changed since the lease. Raises RedisDown."""
    members: list[int | str] = [floor_us, _FLOOR]
    for reacted in newest:
        members += [reacted.ver_us, str(reacted.target)]
    redis.run(FILL_LIST, _list_keys(kind.name, actor_id), (lease, LIST_TTL_S, *members))


def find_dirty(before_us: int, limit: int) -> list[tuple[Kind, Target]]:
    """Targets that are due for a sweep: dirty since ``before_us``, at most ``limit`` a shard.

    One round trip. Raises RedisDown.
    """
    answers = redis.pipeline(
        [
            ("ZRANGE", _dirty_key(shard), "-inf", before_us, "BYSCORE", "LIMIT", 0, limit)
            for shard in range(SHARDS)
        ]
    )
    found = []
    for member in (member for answer in answers for member in answer):
        kind, target_type, target_id = member.split(":")
        found.append((KINDS[kind], Target(target_type, int(target_id))))
    return found


def sweep_all(
    targets: Sequence[tuple[Kind, Target]], grace_us: int, count: int, longest_wait_us: int
) -> list[ReactionChanged]:
    """The facts of ``targets`` that waited too long, to be published again. One round trip.

    Raises RedisDown.
    """
    calls = []
    for kind, target in targets:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(
                SWEEP,
                (keys.meta, keys.pending, keys.dirty),
                (keys.member, grace_us, count, longest_wait_us),
            )
        )
    facts = []
    for (kind, target), entries in zip(targets, redis.run_all(calls), strict=True):
        pairs = iter(entries)
        for actor, entry in zip(pairs, pairs, strict=True):
            state, ver, total = entry.split(":")
            key = Key(*target, kind.name, int(actor))
            facts.append(ReactionChanged(key, state == "1", int(ver), int(total)))
    return facts


def begin_bloom(kind: Kind, target: Target, build: str, actors: int) -> str:
    """Start to build the filter for ``actors``; see begin_bloom.lua. Raises RedisDown."""
    keys = keys_of(kind.name, target)
    return str(redis.run(BEGIN_BLOOM, (keys.meta, keys.filling), (build, actors)))


def fill_bloom(kind: Kind, target: Target, build: str, actor_ids: Sequence[int], last: bool) -> str:
    """Add a page to the filter; see fill_bloom.lua. Raises RedisDown."""
    keys = keys_of(kind.name, target)
    return str(
        redis.run(FILL_BLOOM, (keys.meta, keys.filling, keys.older), (build, int(last), *actor_ids))
    )
