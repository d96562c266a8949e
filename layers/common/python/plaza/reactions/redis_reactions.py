"""Reactions in Redis, and the scripts that touch them: a replica of MySQL, and the outbox above it.

A target and kind in Redis is what MySQL had at version ``s`` of its counter; commits are applied
in the order of that version, as a replica applies a log. The outbox is an overlay of what was
accepted and is not saved: total = base + delta, and an actor's state is that of their entry, else
the saved one. See docs/decisions.md.

Everything about one target lives in one of 128 logical shards, and every key of a shard carries
the hash tag ``{<shard>}``. Per target and kind, under ``{<shard>}:<kind>:<target>:``

    meta     hash    protocol; run_id of the node that it was loaded at; s; base, the counter at s;
                     delta, sum over the outbox of want - base; ver, the newest version; waiting,
                     entries of the outbox; complete, recent has all actors that are on; floor, else
                     recent has all with a version above it; bloom, the bits of the filter in use, 0
                     none; filling, filling_by, filling_at: of the filter being built; rebuild_at,
                     when a build was last requested; blocked, since when a commit is missing; gone,
                     it was deleted; earliest, a later row on with at most this version comes into
                     the page; sweeps, sweep_cursor
    outbox   hash    actor -> want:ver:base:nonce; accepted, not yet confirmed. The nonce has a
                     letter before it: c when the request changed the state, u when it did not
    recent   zset    actor -> ver; the newest saved actors, at most cap
    earliest zset    actor -> ver; the first page of the earliest saved actors, good as long as
                     meta has the field
    bloom    bitmap  Bloom filter of the saved actors that are not in recent
    filling  bitmap  the Bloom filter that is being built
    ahead    hash    n -> total|rows; commits that wait for the one before them
    fence    string  newest n heard of while the target was not loaded
    lease    string  who loads the target
    loading  hash    sums over the outbox while the target is loaded
    asked    hash    actor -> s when its row was asked for
    toggles  hash    actor -> start:count of its changes in quick succession

per shard ``{<shard>}:outboxes``, a zset: <kind>:<target> -> oldest version in the outbox, or when
it was last swept; and per user and kind, in the shard of the user, ``{<shard>}:<kind>:user:<id>:``

    newest   zset    target -> ver; floor:<run_id of the node that it was filled at> -> the version
                     above which the list is whole
    lease    string  who may fill it
"""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from plaza.infra import clock, redis
from plaza.infra.hot_keys import Argument, Command
from plaza.infra.lua import load_script
from plaza.infra.redis import Call, Node, RedisDown
from plaza.infra.settings import settings
from plaza.infra.shards import SHARDS, group_by_tag, shard_of
from plaza.reactions.reactions import (
    KINDS,
    MOST_ID,
    MOST_VER_US,
    Commit,
    Fingerprint,
    Held,
    Key,
    Kind,
    Reacted,
    ReactionEvent,
    Reactor,
    Snapshot,
    Target,
    Undecided,
    Unreadable,
)
from plaza.targets.marking import there_key

FENCE_TTL_S = 300
LOAD_LEASE_TTL_MS = 10_000
MAX_AHEAD = 100  # commits that may wait for the one before them
MAX_ROWS = 250  # of one call of a script
ROWS_OF_TARGET = 8  # a target of a call takes the time of so many rows
LIST_LENGTH = 100
EARLIEST_TTL_S = 3_600
LIST_TTL_S = 86_400
LEASE_TTL_S = 10
_MAX_TRIES = 3
_KEYS_OF_APPLY = 10

_LUA = Path(__file__).with_name("lua")
GATE = load_script(_LUA / "gate.lua")
READ = load_script(_LUA / "read.lua")
PAGE = load_script(_LUA / "page.lua")
LEASE = load_script(_LUA / "lease.lua")
REBASE = load_script(_LUA / "rebase.lua")
KEEP_EARLIEST = load_script(_LUA / "keep_earliest.lua")
HYDRATE = load_script(_LUA / "hydrate.lua")
APPLY = load_script(_LUA / "apply.lua")
DROP = load_script(_LUA / "drop.lua")
TOMBSTONE = load_script(_LUA / "tombstone.lua")
SWEEP = load_script(_LUA / "sweep.lua")
BEGIN_BLOOM = load_script(_LUA / "begin_bloom.lua")
FILL_BLOOM = load_script(_LUA / "fill_bloom.lua")
FILL_LIST = load_script(_LUA / "fill_list.lua")
INSPECT = load_script(_LUA / "inspect.lua")
FIND_DENIED = load_script(_LUA / "find_denied.lua")

_META_KEY = re.compile(r"\{\d+\}:([a-z]+):([a-z]+):([1-9]\d{0,18}):meta", re.ASCII)


class Keys(NamedTuple):
    """The keys of one target and kind; ``member`` is its name in the index of its shard.

    The first ten are those of apply.lua, in its order.
    """

    meta: str
    outbox: str
    recent: str
    bloom: str
    filling: str
    ahead: str
    fence: str
    lease: str
    asked: str
    earliest: str
    loading: str
    toggles: str
    there: str
    outboxes: str
    member: str


class Decision(NamedTuple):
    """What the gate decided; see gate.lua for the codes."""

    code: str
    total: int = 0
    ver_us: int = 0
    rebuild: bool = False


class Seen(NamedTuple):
    """What Redis knows of a target: its total, and if the calling actor is on (None: ask MySQL)."""

    total: int
    mine: bool | None
    rebuild: bool


class Applied(NamedTuple):
    """What applying a commit came to; see apply.lua for the codes."""

    code: str
    waiting: int
    rebuild: bool
    s: int


class ListLease(NamedTuple):
    """Leave to fill the list of a user, given by ``node``."""

    token: str
    node: Node


class Lease(NamedTuple):
    """Permission to load a target, taken at a node in one of its runs.

    ``code``: TAKEN, HELD, PRESENT; ``entries``: how many the outbox has.
    """

    code: str
    token: str
    run_id: str
    entries: int


class Swept(NamedTuple):
    """What a sweep of one target found; see sweep.lua for the codes."""

    kind: Kind
    target: Target
    code: str
    s: int
    events: list[ReactionEvent]


@lru_cache(maxsize=8192)
def keys_of(kind: str, target: Target) -> Keys:
    """The keys of ``target``. Every script gets its keys from here."""
    shard = shard_of(str(target))
    base = f"{{{shard}}}:{kind}:{target}"
    return Keys(
        meta=f"{base}:meta",
        outbox=f"{base}:outbox",
        recent=f"{base}:recent",
        bloom=f"{base}:bloom",
        filling=f"{base}:filling",
        ahead=f"{base}:ahead",
        fence=f"{base}:fence",
        lease=f"{base}:lease",
        asked=f"{base}:asked",
        earliest=f"{base}:earliest",
        loading=f"{base}:loading",
        toggles=f"{base}:toggles",
        there=there_key(*target),
        outboxes=_index_key(shard),
        member=f"{kind}:{target}",
    )


def _index_key(shard: int) -> str:
    return f"{{{shard}}}:outboxes"


def _list_keys(kind: str, actor_id: int) -> tuple[str, str]:
    base = f"{{{shard_of(f'user:{actor_id}')}}}:{kind}:user:{actor_id}"
    return f"{base}:newest", f"{base}:lease"


def _idle_ttl_ms() -> int:
    """Ten days, more or less: what was loaded together need not expire together."""
    return int(settings().idle_ttl_s * 1000 * random.uniform(0.9, 1.1))


def _run_id(keys: Keys) -> str:
    return redis.node_of(keys.meta).run_id


def gate_keys(keys: Keys) -> tuple[str, ...]:
    """The keys of gate.lua, in its order."""
    of_actors = (keys.meta, keys.outbox, keys.recent, keys.bloom, keys.filling, keys.asked)
    return (*of_actors, keys.toggles, keys.outboxes)


def gate(
    kind: Kind,
    target: Target,
    actor_id: int,
    on: bool,
    nonce: str,
    expected: tuple[bool, int] | None,
) -> Decision:
    """Decide one reaction; ``expected`` is (state, n) of the actor's row in MySQL, if it was read.

    One round trip. When it raises, no copy of the command will be executed any more: it waits for
    the command's deadline, which the gate checks. Raises RedisDown; Undecided when the node turned
    out to have restarted.
    """
    keys = keys_of(kind.name, target)
    timeout_s = settings().redis_timeout_s
    for _ in range(_MAX_TRIES):
        began_s, run_id = clock.monotonic_s(), ""

        def args_for(node: Node, until_s: float = began_s + timeout_s) -> tuple[Argument, ...]:
            nonlocal run_id
            run_id = node.run_id
            return (
                actor_id,
                int(on),
                nonce,
                node.clock_us + int(until_s * 1e6),
                run_id,
                "" if expected is None else int(expected[0]),
                0 if expected is None else expected[1],
                settings().outbox_limit,
                keys.member,
            )

        try:
            code, now_us, *rest = redis.run_at(GATE, gate_keys(keys), args_for)
        except RedisDown as error:
            if error.may_have_run:
                clock.sleep(max(0.0, began_s + timeout_s - clock.monotonic_s()))
            raise
        redis.learn_clock(keys.meta, now_us)
        if _run_id(keys) != run_id:
            raise Undecided(f"Redis restarted while {target} was changed")
        if code == "UNKNOWN":
            return Decision(code, rebuild=rest[0] == 1)
        if code != "LATE":
            total, ver_us, rebuild = rest or (0, 0, 0)
            return Decision(code, total, ver_us, rebuild == 1)
    raise RedisDown("Redis answers too late", may_have_run=False)


def read_all(wanted: Sequence[tuple[Kind, Target]], actor_id: int | None) -> list[Seen | None]:
    """What Redis knows of each of ``wanted``; None for what is not loaded. One round trip.

    Raises RedisDown.
    """
    actor, ttl_ms = "" if actor_id is None else actor_id, _idle_ttl_ms()
    all_keys = [keys_of(kind.name, target) for kind, target in wanted]

    def calls() -> list[Call]:
        return [
            Call(
                READ,
                (keys.meta, keys.outbox, keys.recent, keys.bloom, keys.filling),
                (_run_id(keys), actor, ttl_ms),
            )
            for keys in all_keys
        ]

    return [
        a and Seen(a[0], None if a[1] == "" else a[1] == "1", a[2] == 1)
        for a in _run_reads(all_keys, calls)
    ]


def _run_reads(all_keys: Sequence[Keys], calls: Callable[[], list[Call]]) -> list[Any]:
    """The answers of ``calls``; once more when a node turned out to have restarted meanwhile."""
    answers: list[Any] = []
    for _ in range(_MAX_TRIES):
        before = [_run_id(keys) for keys in all_keys]
        answers = redis.run_all(calls())
        if before == [_run_id(keys) for keys in all_keys]:
            return answers
    raise RedisDown("Redis restarts again and again")


def take_load_leases(wanted: Sequence[tuple[Kind, Target]]) -> list[Lease]:
    """Ask for permission to load targets, for 10 s. One round trip. Raises RedisDown."""
    token = secrets.token_hex(8)
    calls, run_ids = [], []
    for kind, target in wanted:
        keys = keys_of(kind.name, target)
        run_ids.append(_run_id(keys))
        calls.append(
            Call(
                LEASE,
                (keys.meta, keys.outbox, keys.lease),
                (run_ids[-1], token, LOAD_LEASE_TTL_MS),
            )
        )
    return [
        Lease(code, token, run_id, entries)
        for run_id, (code, entries) in zip(run_ids, redis.run_all(calls), strict=True)
    ]


def read_outboxes(wanted: Sequence[tuple[Kind, Target, int]]) -> list[list[int]]:
    """The actors in the outbox of each (kind, target, entries), which must not change meanwhile.

    One round trip, and one for each 250 entries of an outbox that has more. Raises RedisDown.
    """
    found: list[list[int]] = [[] for _ in wanted]
    small = [i for i, (_, _, entries) in enumerate(wanted) if 0 < entries <= MAX_ROWS]
    keys = [keys_of(kind.name, target).outbox for kind, target, _ in wanted]
    if small:
        answers = redis.pipeline([("HKEYS", keys[i]) for i in small])
        for i, actors in zip(small, answers, strict=True):
            found[i] = [int(actor) for actor in actors]
    for i, (_, _, entries) in enumerate(wanted):
        cursor: str | None = "0" if entries > MAX_ROWS else None
        seen: set[int] = set()
        while cursor is not None:
            following, of_actors = redis.execute("HSCAN", keys[i], cursor, "COUNT", MAX_ROWS)
            seen.update(map(int, of_actors))
            cursor = None if following in ("0", 0) else following
            found[i] = sorted(seen)
    return found


def hydrate_all(found: Sequence[tuple[Kind, Target, Lease, Snapshot]]) -> list[str]:
    """Load targets from snapshots; see hydrate.lua for the codes.

    One round trip; one more for each 250 entries of the largest outbox. Raises RedisDown.
    """
    pages = [
        [s.rows[start : start + MAX_ROWS] for start in range(0, len(s.rows), MAX_ROWS)]
        for _, _, _, s in found
    ]
    for number in range(max(map(len, pages), default=0)):
        redis.run_all(
            [
                _rebase_call(kind, target, lease, number + 1, of_target[number])
                for (kind, target, lease, _), of_target in zip(found, pages, strict=True)
                if number < len(of_target)
            ]
        )
    calls = []
    for kind, target, lease, snapshot in found:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(
                HYDRATE,
                (
                    keys.meta,
                    keys.outbox,
                    keys.recent,
                    keys.bloom,
                    keys.filling,
                    keys.ahead,
                    keys.fence,
                    keys.lease,
                    keys.asked,
                    keys.outboxes,
                    keys.loading,
                    keys.there,
                ),
                (
                    lease.run_id,
                    lease.token,
                    snapshot.n,
                    snapshot.total,
                    int(snapshot.is_complete),
                    snapshot.last_ver_us,
                    keys.member,
                    _idle_ttl_ms(),
                    *(part for pair in snapshot.newest for part in pair),
                ),
            )
        )
    return redis.run_all(calls)


def _rebase_call(
    kind: Kind, target: Target, lease: Lease, page: int, rows: Sequence[tuple[int, int, bool]]
) -> Call:
    keys = keys_of(kind.name, target)
    return Call(
        REBASE,
        (keys.outbox, keys.lease, keys.loading),
        (lease.token, page, LOAD_LEASE_TTL_MS, _render_rows(rows)),
    )


def _render_rows(rows: Iterable[tuple[int, int, bool]]) -> str:
    return ";".join([f"{actor_id} {ver_us} {on:d}" for actor_id, ver_us, on in rows])


def drop_all(targets: Iterable[tuple[Kind, Target, int | None]]) -> list[str]:
    """Drop targets but for their outbox; with a version only if they are at it still.

    One round trip. Raises RedisDown.
    """
    calls = []
    for kind, target, s in targets:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(
                DROP,
                (
                    keys.meta,
                    keys.recent,
                    keys.bloom,
                    keys.filling,
                    keys.ahead,
                    keys.fence,
                    keys.lease,
                    keys.asked,
                    keys.loading,
                ),
                ("" if s is None else s, FENCE_TTL_S),
            )
        )
    return redis.run_all(calls)


def tombstone_all(deleted: Iterable[Target]) -> None:
    """Mark deleted targets that are loaded, of all kinds. One round trip. Raises RedisDown."""
    redis.run_all(
        [
            Call(TOMBSTONE, (keys_of(kind.name, target).meta,), ())
            for target in deleted
            for kind in KINDS.values()
            if target.type in kind.targets
        ]
    )


def apply_all(commits: Sequence[Commit]) -> list[Applied]:
    """Apply commits to their targets, and drop the lists of the users who reacted.

    One round trip; one more while a target has more to apply than fits one call. Raises RedisDown,
    UnknownProtocol.
    """
    expires_at_ms = clock.now_ms() + _idle_ttl_ms()
    of_users = sorted({(c.kind.name, row[0]) for c in commits for row in c.rows})
    lists = (key for of_user in of_users for key in _list_keys(*of_user))
    applied = _apply(commits, expires_at_ms, redis.deletions(lists))
    while more := [i for i, a in enumerate(applied) if a.code == "MORE"]:
        rest = [commits[i]._replace(is_new=False, rows=()) for i in more]
        for i, again in zip(more, _apply(rest, expires_at_ms), strict=True):
            applied[i] = again._replace(rebuild=again.rebuild or applied[i].rebuild)
    return applied


def _apply(
    commits: Sequence[Commit], expires_at_ms: int, commands: Sequence[Command] = ()
) -> list[Applied]:
    outboxes = [keys_of(c.kind.name, c.target).outboxes for c in commits]
    sizes = [len(commit.rows) + ROWS_OF_TARGET for commit in commits]
    groups = group_by_tag(outboxes, MAX_ROWS, sizes)
    calls = [apply_call([commits[i] for i in group], expires_at_ms) for group in groups]
    answers = redis.run_all(calls, commands)
    applied: dict[int, Applied] = {}
    for group, answer in zip(groups, answers[: len(groups)], strict=True):
        for i, (code, waiting, rebuild, s) in zip(group, answer, strict=True):
            applied[i] = Applied(code, waiting, rebuild == 1, s)
    return [applied[i] for i in range(len(commits))]


def apply_call(commits: Sequence[Commit], expires_at_ms: int) -> Call:
    """One run of apply.lua for commits of one shard, of 250 rows together at most."""
    all_keys = [keys_of(commit.kind.name, commit.target) for commit in commits]
    keys: list[str] = [all_keys[0].outboxes]
    args: list[str | int] = []
    for commit, of_target in zip(commits, all_keys, strict=True):
        keys += of_target[:_KEYS_OF_APPLY]
        rows = _render_rows(commit.rows)
        args += [commit.n, commit.total, int(commit.is_new), rows, of_target.member]
    count = sum(len(commit.rows) for commit in commits)
    run_id, cap = _run_id(all_keys[0]), settings().recent_cap
    return Call(APPLY, keys, (run_id, cap, MAX_AHEAD, expires_at_ms, FENCE_TTL_S, count, *args))


def target_of_key(key: str) -> tuple[Kind, Target] | None:
    """The target whose meta ``key`` is, None for any other key."""
    found = _META_KEY.fullmatch(key)
    if found is None or found[1] not in KINDS:
        return None
    kind, target = KINDS[found[1]], Target(found[2], int(found[3]))
    ours = target.type in kind.targets and target.id <= MOST_ID
    return (kind, target) if ours and keys_of(kind.name, target).meta == key else None


def inspect_all(wanted: Sequence[tuple[Kind, Target]], most: int) -> list[Held | Unreadable | None]:
    """What Redis holds of each of ``wanted``, with its ``most`` newest actors; None: not loaded.

    Nothing lives longer for it. One round trip. Raises RedisDown.
    """
    calls = []
    for kind, target in wanted:
        keys = keys_of(kind.name, target)
        calls.append(Call(INSPECT, (keys.meta, keys.outbox, keys.recent), (_run_id(keys), most)))
    return [answer and _read_held(answer) for answer in redis.run_all(calls)]


def _read_held(answer: Sequence[str | int]) -> Held | Unreadable:
    s, base, delta, waiting, entries, complete, bloom, floor, blocked, *newest = answer
    try:
        floor_us = int(floor)
        held = Held(
            int(base),
            int(s),
            int(delta),
            int(waiting),
            int(entries),
            complete == "1",
            int(bloom),
            None if floor_us < 0 else floor_us,
            blocked != "",
            Fingerprint(*map(int, newest)),
        )
    except ValueError:
        return Unreadable(
            f"base {base!s:.20} s {s!s:.20} delta {delta!s:.20} waiting {waiting!s:.20}"
        )
    return held if 0 <= held.s <= MOST_VER_US else Unreadable(f"s {s!s:.20}")


def find_denied(
    wanted: Sequence[tuple[Kind, Target, Sequence[int]]],
) -> list[tuple[int, list[int]]]:
    """Of each page of actors, those that are off by recent and the filter, and the s of the target.

    The outbox does not count. One round trip. Raises RedisDown.
    """
    calls = []
    for kind, target, actor_ids in wanted:
        keys = keys_of(kind.name, target)
        of_target = (keys.meta, keys.recent, keys.bloom)
        calls.append(Call(FIND_DENIED, of_target, (_run_id(keys), *actor_ids)))
    return [
        (int(answer[0]), [int(actor) for actor in answer[1:]]) if answer else (0, [])
        for answer in redis.run_all(calls)
    ]


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
    """(the page is whole by itself, the page from ``after`` on), or None when the target is away.

    It is whole when Redis has everybody, and when it has the earliest and those are asked for. Else
    it is the part that is in recent. The page holds ``count`` or more if there are so many, those
    equal to ``after`` included; of the earliest not more than were kept. Raises RedisDown.
    """
    keys = keys_of(kind.name, target)
    begin = after.ver_us if after else ("+inf" if latest else "-inf")
    order = "desc" if latest else "asc"

    def calls() -> list[Call]:
        args = (_run_id(keys), begin, order, count)
        return [Call(PAGE, (keys.meta, keys.recent, keys.earliest), args)]

    [answer] = _run_reads([keys], calls)
    if not answer:
        return None
    pairs = iter(answer[1:])
    return answer[0] > 0, [
        Reactor(int(actor), int(float(ver))) for actor, ver in zip(pairs, pairs, strict=True)
    ]


def keep_earliest(kind: Kind, target: Target, n: int, earliest: Sequence[Reactor]) -> bool:
    """Keep the first page of the earliest actors, as MySQL had it at version ``n`` of the counter.

    There are more actors than those. False when the target is not loaded or was brought to a later
    version. One round trip. Raises RedisDown.
    """
    keys = keys_of(kind.name, target)
    args: list[Argument] = [_run_id(keys), n, earliest[-1].ver_us, EARLIEST_TTL_S * 1000]
    for actor_id, ver_us in earliest:
        args += [ver_us, actor_id]
    return bool(redis.run(KEEP_EARLIEST, (keys.meta, keys.earliest), args) == 1)


def read_list(kind: Kind, actor_id: int) -> tuple[int, list[Reacted]] | None:
    """(floor_us, the newest reactions of a user): whole above the floor, in no order.

    None when it isn't in Redis, or was filled before the node restarted, maybe with older data.
    One round trip. Raises RedisDown.
    """
    key, _ = _list_keys(kind.name, actor_id)
    pairs = iter(redis.execute("ZRANGE", key, 0, -1, "WITHSCORES"))
    score_of = dict(zip(pairs, pairs, strict=True))
    floor = score_of.pop(_floor_at(redis.node_of(key)), None)
    if floor is None:
        return None
    found = []
    for member, score in score_of.items():
        target_type, _, target_id = member.partition(":")
        found.append(Reacted(Target(target_type, int(target_id)), int(float(score))))
    return int(float(floor)), found


def _floor_at(node: Node) -> str:
    return f"floor:{node.run_id}"


def take_lease(kind: Kind, actor_id: int) -> ListLease:
    """Leave to fill the user's list with what MySQL says from now on.

    One round trip. Raises RedisDown.
    """
    key, token = _list_keys(kind.name, actor_id)[1], secrets.token_hex(8)
    redis.execute("SET", key, token, "EX", LEASE_TTL_S)
    return ListLease(token, redis.node_of(key))


def fill_list(
    kind: Kind, actor_id: int, lease: ListLease, newest: Sequence[Reacted], floor_us: int
) -> None:
    """Keep ``newest`` as the user's list unless it changed since the lease.

    One round trip. Raises RedisDown.
    """
    members: list[int | str] = [floor_us, _floor_at(lease.node)]
    for reacted in newest:
        members += [reacted.ver_us, str(reacted.target)]
    redis.run(FILL_LIST, _list_keys(kind.name, actor_id), (lease.token, LIST_TTL_S, *members))


def find_due(before_us: int, limit: int) -> list[tuple[Kind, Target]]:
    """Targets that are due for a sweep since ``before_us``, at most ``limit`` a shard.

    One round trip. Raises RedisDown.
    """
    answers = redis.pipeline(
        [
            ("ZRANGE", _index_key(shard), "-inf", before_us, "BYSCORE", "LIMIT", 0, limit)
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
) -> list[Swept]:
    """What of ``targets`` waited too long, to be published again. One round trip.

    Raises RedisDown.
    """
    calls = []
    for kind, target in targets:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(
                SWEEP,
                (keys.meta, keys.outbox, keys.outboxes),
                (_run_id(keys), keys.member, grace_us, count, longest_wait_us),
            )
        )
    swept = []
    for (kind, target), (code, s, *entries) in zip(targets, redis.run_all(calls), strict=True):
        pairs = iter(entries)
        events = []
        for actor, entry in zip(pairs, pairs, strict=True):
            want, ver, _ = entry.split(":", 2)
            events.append(ReactionEvent(Key(*target, kind.name, int(actor)), want == "1", int(ver)))
        swept.append(Swept(kind, target, code, int(s), events))
    return swept


def begin_bloom(kind: Kind, target: Target, build: str, actors: int) -> str:
    """Start to build the filter for ``actors``; see begin_bloom.lua. Raises RedisDown."""
    keys = keys_of(kind.name, target)
    args = (_run_id(keys), build, actors)
    return str(redis.run(BEGIN_BLOOM, (keys.meta, keys.filling), args))


def fill_bloom(kind: Kind, target: Target, build: str, actor_ids: Sequence[int], last: bool) -> str:
    """Add a page to the filter; see fill_bloom.lua. Raises RedisDown."""
    keys = keys_of(kind.name, target)
    return str(
        redis.run(FILL_BLOOM, (keys.meta, keys.filling, keys.bloom), (build, int(last), *actor_ids))
    )
