"""Hydration of targets in Redis from snapshots of MySQL, and their eviction. Unless stated
otherwise, a function costs one round trip; it raises RedisDown."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import MAX_ROWS, Snapshot, Target
from plaza.core.reactions.redis_keys import idle_ttl_ms, keys_of
from plaza.core.targets import Visibility
from plaza.infra.redis import locks, masters, redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.terms import Node

FENCE_TTL_S = 300
HYDRATION_LEASE_TTL_MS = 10_000

_LUA = Path(__file__).with_name("lua")
LEASE_HYDRATION = load_script(_LUA / "lease_hydration.lua")
REBASE = load_script(_LUA / "rebase.lua")
HYDRATE = load_script(_LUA / "hydrate.lua")
EVICT = load_script(_LUA / "evict.lua")
TOMBSTONE = load_script(_LUA / "tombstone.lua")
SET_VISIBILITY = load_script(_LUA / "set_visibility.lua")


class HydrationLease(NamedTuple):
    """The reply of lease_hydration.lua, and the node that gave it."""

    code: str
    token: str
    node: Node
    entries: int


def take_hydration_leases(pairs: Sequence[tuple[Kind, Target]]) -> list[HydrationLease]:
    """Try to take leases to load targets, for 10 s."""
    token = secrets.token_hex(8)
    calls, nodes = [], []
    for kind, target in pairs:
        keys = keys_of(kind.name, target)
        nodes.append(masters.find_node(keys.meta))
        calls.append(
            Call(
                LEASE_HYDRATION,
                (keys.meta, keys.outbox, keys.lease),
                (nodes[-1].term, token, HYDRATION_LEASE_TTL_MS),
            )
        )
    return [
        HydrationLease(code, token, node, entries)
        for node, (code, entries) in zip(nodes, redis.run_all(calls), strict=True)
    ]


def release_hydration_leases(
    leases: Iterable[tuple[Kind, Target, HydrationLease]],
) -> None:
    """Let other callers load the targets."""
    locks.unlock_all(
        locks.Lock(keys_of(kind.name, target).lease, lease.token) for kind, target, lease in leases
    )


def read_outboxes(requests: Sequence[tuple[Kind, Target, int]]) -> list[list[int]]:
    """Return the actors in the outbox of each (kind, target, entries). One round trip; one for each
    250 entries of a larger outbox."""
    outboxes: list[list[int]] = [[] for _ in requests]
    small = [i for i, (_, _, entries) in enumerate(requests) if 0 < entries <= MAX_ROWS]
    keys = [keys_of(kind.name, target).outbox for kind, target, _ in requests]
    if small:
        answers = redis.pipeline([("HKEYS", keys[i]) for i in small])
        for i, actors in zip(small, answers, strict=True):
            outboxes[i] = [int(actor) for actor in actors]
    for i, (_, _, entries) in enumerate(requests):
        cursor: str | None = "0" if entries > MAX_ROWS else None
        scanned: set[int] = set()
        while cursor is not None:
            next_cursor, page = redis.execute("HSCAN", keys[i], cursor, "COUNT", MAX_ROWS)
            scanned.update(map(int, page))
            cursor = None if next_cursor in ("0", 0) else next_cursor
            outboxes[i] = sorted(scanned)
    return outboxes


def hydrate_all(loads: Sequence[tuple[Kind, Target, HydrationLease, Snapshot]]) -> list[str]:
    """Load targets from snapshots; return the codes of hydrate.lua. One round trip; one more for
    each 250 entries of the largest outbox."""
    pages = [
        [s.rows[start : start + MAX_ROWS] for start in range(0, len(s.rows), MAX_ROWS)]
        for _, _, _, s in loads
    ]
    for number in range(max(map(len, pages), default=0)):
        redis.run_all(
            [
                _rebase_call(kind, target, lease, number + 1, of_target[number])
                for (kind, target, lease, _), of_target in zip(loads, pages, strict=True)
                if number < len(of_target)
            ]
        )
    calls = []
    for kind, target, lease, snapshot in loads:
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
                    keys.row_requests,
                    keys.outboxes,
                    keys.loading,
                    keys.existence,
                ),
                (
                    lease.node.term,
                    lease.token,
                    snapshot.db_version,
                    snapshot.total,
                    int(snapshot.is_complete),
                    snapshot.last_version_us,
                    keys.member,
                    idle_ttl_ms(),
                    snapshot.loaded_us,
                    *(part for pair in snapshot.newest for part in pair),
                ),
            )
        )
    return redis.run_all(calls)


def render_rows(rows: Iterable[tuple[int, int, bool]]) -> str:
    """Return rows as scripts parse them: "actor version state;..."."""
    return ";".join([f"{actor_id} {version_us} {on:d}" for actor_id, version_us, on in rows])


def _rebase_call(
    kind: Kind,
    target: Target,
    lease: HydrationLease,
    page: int,
    rows: Sequence[tuple[int, int, bool]],
) -> Call:
    keys = keys_of(kind.name, target)
    return Call(
        REBASE,
        (keys.outbox, keys.lease, keys.loading),
        (lease.token, page, HYDRATION_LEASE_TTL_MS, render_rows(rows)),
    )


def evict_all(targets: Iterable[tuple[Kind, Target, int | None]]) -> list[str]:
    """Delete targets except their outboxes, if they have the given db_version; see evict.lua."""
    calls = []
    for kind, target, db_version in targets:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(
                EVICT,
                (
                    keys.meta,
                    keys.recent,
                    keys.bloom,
                    keys.filling,
                    keys.ahead,
                    keys.fence,
                    keys.lease,
                    keys.row_requests,
                    keys.loading,
                ),
                ("" if db_version is None else db_version, FENCE_TTL_S),
            )
        )
    return redis.run_all(calls)


def set_visibility_all(texts: Iterable[tuple[Target, Visibility]]) -> None:
    """Mark loaded targets of all kinds as hidden or visible, unless a newer version did."""
    redis.run_all(
        [
            Call(
                SET_VISIBILITY,
                (keys_of(kind.name, target).meta,),
                (version, "" if hidden_author_id is None else hidden_author_id),
            )
            for target, (version, hidden_author_id) in texts
            for kind in KINDS.values()
            if target.type in kind.targets
        ]
    )


def tombstone_all(deleted: Iterable[Target]) -> None:
    """Mark loaded targets of all kinds as deleted."""
    redis.run_all(
        [
            Call(TOMBSTONE, (keys_of(kind.name, target).meta,), ())
            for target in deleted
            for kind in KINDS.values()
            if target.type in kind.targets
        ]
    )
