"""Sweeps of the outboxes of reactions; see sweep.lua. Each function costs one round trip and raises
RedisDown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plaza.infra import outbox, redis
from plaza.infra.lua import load_script
from plaza.infra.redis import Call
from plaza.reactions.model import KINDS, Kind, ReactionEvent, ReactionKey, Target
from plaza.reactions.redis_keys import keys_of, outboxes_key, reign_of

SWEEP = load_script(Path(__file__).with_name("lua") / "sweep.lua")


class SweptTarget(NamedTuple):
    """The entries of one target to send again; the header of sweep.lua has the codes."""

    kind: Kind
    target: Target
    code: str
    db_version: int
    events: list[ReactionEvent]


def find_due(before_us: int, limit: int) -> list[tuple[Kind, Target]]:
    """Return targets due for a sweep before ``before_us``, at most ``limit`` of each shard."""
    found = []
    for member in outbox.find_due(outboxes_key, before_us, limit):
        kind, target_type, target_id = member.split(":")
        found.append((KINDS[kind], Target(target_type, int(target_id))))
    return found


def sweep_all(
    targets: Sequence[tuple[Kind, Target]], grace_us: int, count: int, max_wait_us: int
) -> list[SweptTarget]:
    """Return the entries of ``targets`` that waited longer than ``grace_us``, ``count`` of each."""
    calls = []
    for kind, target in targets:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(
                SWEEP,
                (keys.meta, keys.outbox, keys.outboxes),
                (reign_of(keys), keys.member, grace_us, count, max_wait_us),
            )
        )
    swept = []
    replies = redis.run_all(calls)
    for (kind, target), (code, db_version, *entries) in zip(targets, replies, strict=True):
        pairs = iter(entries)
        events = []
        for actor, entry in zip(pairs, pairs, strict=True):
            want, version, _ = entry.split(":", 2)
            events.append(
                ReactionEvent(
                    ReactionKey(*target, kind.name, int(actor)), want == "1", int(version)
                )
            )
        swept.append(SweptTarget(kind, target, code, int(db_version), events))
    return swept
