"""Redis against the log: what it holds of a target is what MySQL had at one version of the counter.

This holds at every moment and under every fault, so it is looked at between any two steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from local.audit.stores import TargetState
from plaza.infra import mysql, redis
from plaza.reactions import Kind, Target, redis_keys


class RowAt(NamedTuple):
    """A row as it was at a version of the counter, and whether it was written since."""

    on: bool
    version: int
    changed_since: bool


def check_replica(kind: Kind, target: Target) -> bool:
    """Compare a loaded target with the log. Five round trips; False when it is not loaded.

    The base is the counter at version s, ``recent`` (above its floor) and the filter have who is
    on at it, each entry of the outbox is newer than its actor's row and has its base, and delta is
    their sum. No newer commit was heard of while it was loaded. Of actors whose rows changed since,
    the filter and the bases may be ahead. Raises AssertionError.
    """
    keys, client = redis_keys.keys_of(kind.name, target), redis.client()
    meta: Mapping[str, str] = client.hgetall(keys.meta)
    if meta.get("run_id") != redis.find_node(keys.meta).run_id:
        return False
    name, s, floor = f"{kind.name} {target}", int(meta["db_version"]), int(meta["floor"])
    fence = int(client.get(keys.fence) or 0)
    assert s >= fence, f"{name}: loaded as of {s}, and {fence} was heard of before"
    rows = read_rows_at(kind, target, s)
    on = {actor: row.version for actor, row in rows.items() if row.on}
    settled = {actor for actor, row in rows.items() if not row.changed_since}
    assert int(meta["base"]) == len(on), f"{name}: base {meta['base']} @{s}, log {on}"

    recent = {
        int(a): int(version) for a, version in client.zrange(keys.recent, 0, -1, withscores=True)
    }
    above = {a: version for a, version in on.items() if meta["complete"] == "1" or version > floor}
    assert recent.items() <= on.items(), f"{name}: recent {recent} @{s}, log {on}"
    assert above.items() <= recent.items(), f"{name}: recent {recent} @{s}, above {floor}: {above}"
    below = {actor: version for actor, version in recent.items() if version < floor}
    assert not below, f"{name}: in recent, and below the floor {floor}: {below}"
    if bits := int(meta["bloom"]):
        hot = TargetState(
            bits=bits, bloom=client.execute_command("GET", keys.bloom, NEVER_DECODE=True)
        )
        denied = {
            actor for actor in (on.keys() - recent.keys()) & settled if not hot.may_have(actor)
        }
        assert not denied, f"{name}: {denied} are on @{s}, and denied by the filter"

    delta, outbox = 0, client.hgetall(keys.outbox)
    for actor, entry in outbox.items():
        want, version, base = map(int, entry.split(":")[:3])
        row = rows.get(int(actor), RowAt(False, 0, False))
        assert version > row.version, (
            f"{name} of {actor}: entry {entry} @{s}, and it is answered by {row}"
        )
        assert base == row.on or row.changed_since, f"{name} of {actor}: entry {entry} @{s}, {row}"
        delta += want - base
    held = int(meta["delta"]), int(meta["outbox_count"])
    assert held == (delta, len(outbox)), f"{name}: {held} in meta, outbox {outbox}"
    return True


def read_rows_at(kind: Kind, target: Target, s: int) -> dict[int, RowAt]:
    """The rows as of a version of the counter, by actor, from the log. One statement."""
    found: Any = mysql.fetch_all(
        "SELECT actor_id, SUM(IF(db_version <= %s, change_by, 0)),"
        " MAX(IF(db_version <= %s, version, 0)), MAX(db_version) > %s FROM reaction_log"
        " WHERE target_type = %s AND target_id = %s AND kind = %s GROUP BY actor_id",
        (s, s, s, *target, kind.name),
    )
    return {
        actor: RowAt(state == 1, version, changed_since == 1)
        for actor, state, version, changed_since in found
    }
