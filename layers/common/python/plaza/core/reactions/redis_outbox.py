"""Sweeps of the outboxes of reactions; see sweep.lua. A call costs one round trip and raises
RedisDown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import ReactionEvent, ReactionKey, Target
from plaza.core.reactions.redis_keys import keys_of, outboxes_key, term_of
from plaza.infra.derived import outbox
from plaza.infra.derived.outbox import Progress, SweptPage
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import load_script

SWEEP = load_script(Path(__file__).with_name("lua") / "sweep.lua")


SweptTarget = SweptPage[tuple[Kind, Target], ReactionEvent]


def find_due(before_us: int, limit: int) -> list[tuple[Kind, Target]]:
    """Return targets with an entry that was accepted before ``before_us``, at most ``limit`` of
    each shard. Two round trips."""
    members = []
    for member in outbox.find_due(outboxes_key, before_us, limit):
        kind, target_type, target_id = member.split(":")
        members.append((KINDS[kind], Target(target_type, int(target_id))))
    return members


def sweep_all(
    targets: Sequence[tuple[Kind, Target]], resend_after_us: int, count: int, max_wait_us: int
) -> list[SweptTarget]:
    """Return a page of the outbox of each target, about ``count`` entries, with what is due."""
    calls = []
    for kind, target in targets:
        keys = keys_of(kind.name, target)
        calls.append(
            Call(
                SWEEP,
                (keys.meta, keys.outbox, keys.outboxes, keys.sweep),
                (term_of(keys), keys.member, resend_after_us, count, max_wait_us),
            )
        )
    replies = redis.run_all(calls)
    return [_read_page(*swept, *reply) for swept, reply in zip(targets, replies, strict=True)]


def _read_page(kind: Kind, target: Target, code: str, db_version: str, *rest: str) -> SweptTarget:
    before, after, oldest, *packed = rest
    pairs = iter(packed)
    events = []
    for actor, entry in zip(pairs, pairs, strict=True):
        want, version, _ = entry.split(":", 2)
        key = ReactionKey(*target, kind.name, int(actor))
        events.append(ReactionEvent(key, want == "1", int(version)))
    keys = keys_of(kind.name, target)
    progress = Progress(keys.sweep, keys.outboxes, keys.member, before, after, oldest)
    return SweptPage((kind, target), events, progress, code, int(db_version))
