"""The replica check: a target in Redis equals MySQL at one version of its counter.

This holds at every moment and under every fault, so it may be checked after any step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from local.audit.stores import TargetState, unpack_meta
from plaza.core.reactions import Kind, Target, redis_keys
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, masters


class RowAt(NamedTuple):
    """A row at a version of the counter, and whether it was written later."""

    on: bool
    version: int
    changed_later: bool


def check_replica(kind: Kind, target: Target) -> bool:
    """Compare a loaded target with the log; False when it is not loaded. Two round trips.

    At its db_version: base is the counter; ``recent`` (above its floor) and the filter have the
    actors that are on; each outbox entry is newer than its actor's row and has its state as base;
    delta is their sum; and the fence is not newer. For actors whose rows changed later, the filter
    and the bases may be ahead. Raises AssertionError.
    """
    keys, client = redis_keys.keys_of(kind.name, target), connections.client()
    meta, fence = client.hgetall(keys.meta), client.get(keys.fence)
    members = client.zrange(keys.recent, 0, -1, withscores=True)
    outbox = client.hgetall(keys.outbox)
    bloom = client.execute_command("GET", keys.bloom, NEVER_DECODE=True)
    if meta.get("term") != masters.find_node(keys.meta).term:
        return False
    meta = unpack_meta(meta)
    db_version, floor = int(meta["db_version"]), int(meta["floor"])
    name = f"{kind.name} {target} at {db_version}"
    fence = int(fence or 0)
    assert db_version >= fence, f"{name}: the fence is {fence}"
    rows = read_rows_at(kind, target, db_version)
    on = {actor: row.version for actor, row in rows.items() if row.on}
    unchanged = {actor for actor, row in rows.items() if not row.changed_later}
    assert int(meta["base"]) == len(on), f"{name}: base {meta['base']}, log {on}"

    recent = {int(actor): int(version) for actor, version in members}
    above = {a: version for a, version in on.items() if meta["complete"] == "1" or version > floor}
    assert recent.items() <= on.items(), f"{name}: recent {recent}, log {on}"
    assert above.items() <= recent.items(), f"{name}: recent {recent}, above {floor}: {above}"
    below = {actor: version for actor, version in recent.items() if version < floor}
    assert not below, f"{name}: in recent below the floor {floor}: {below}"
    if bits := int(meta["bloom"]):
        hot = TargetState(bits=bits, bloom=bloom or b"")
        denied = {
            actor for actor in (on.keys() - recent.keys()) & unchanged if not hot.may_have(actor)
        }
        assert not denied, f"{name}: {denied} are on and denied by the filter"

    delta = 0
    for actor, entry in outbox.items():
        want, version, base = map(int, entry.split(":")[:3])
        row = rows.get(int(actor), RowAt(False, 0, False))
        assert version > row.version, f"{name}: entry {entry} of {actor} is confirmed by {row}"
        assert base == row.on or row.changed_later, f"{name}: entry {entry} of {actor}, {row}"
        delta += want - base
    counted = int(meta["delta"]), int(meta["outbox_count"])
    assert counted == (delta, len(outbox)), f"{name}: {counted} in meta, outbox {outbox}"
    return True


def read_rows_at(kind: Kind, target: Target, db_version: int) -> dict[int, RowAt]:
    """Return the rows at a version of the counter, by actor, from the log. One statement."""
    rows: Any = mysql.fetch_all(
        "SELECT actor_id, SUM(IF(db_version <= %s, change_by, 0)),"
        " MAX(IF(db_version <= %s, version, 0)), MAX(db_version) > %s FROM reaction_log"
        " WHERE target_type = %s AND target_id = %s AND kind = %s GROUP BY actor_id",
        (db_version, db_version, db_version, *target, kind.name),
    )
    return {
        actor: RowAt(state == 1, version, changed_later == 1)
        for actor, state, version, changed_later in rows
    }
