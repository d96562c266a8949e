"""Rebuilding: the Bloom filter of a big target, from MySQL, in bounded steps."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from plaza.infra.observability import record
from plaza.reactions import mysql_reactions, redis_reactions
from plaza.reactions.queues import REBUILDS, Step

__all__ = ["PAGE", "PAGES_PER_STEP", "REBUILDS", "rebuild"]

PAGE = 250
PAGES_PER_STEP = 200


@REBUILDS.consumer
def rebuild(steps: Sequence[Step]) -> None:
    """Take each build one step further: 50,000 actors, then the rest through the queue again.

    Safe to repeat. Raises RedisDown, MysqlDown, QueueDown.
    """
    for step in steps:
        _take(step)


def _take(step: Step) -> None:
    build, after_id = step.build, step.after_id
    if not build:
        build = secrets.token_hex(8)
        total, _ = mysql_reactions.read_counters([(step.kind, step.target)])[0]
        code = redis_reactions.begin_bloom(step.kind, step.target, build, total)
        if code != "BEGUN":
            record("rebuild_refused", target=str(step.target), code=code)
            return
    code = "FILLED"
    for _ in range(PAGES_PER_STEP):
        actor_ids = mysql_reactions.read_actors(step.kind, step.target, after_id, PAGE)
        last = len(actor_ids) < PAGE
        code = redis_reactions.fill_bloom(step.kind, step.target, build, actor_ids, last)
        if code != "FILLED":
            break
        after_id = actor_ids[-1]
    else:
        REBUILDS.send(Step(step.kind, step.target, build, after_id))
    record("rebuild_stepped", target=str(step.target), code=code, after_id=after_id)
