"""Rebuilding: the Bloom filter of a big target, from MySQL, in bounded steps."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra import builds
from plaza.infra.builds import FILLED, Builder
from plaza.reactions import mysql_reactions, redis_filter
from plaza.reactions.queues import REBUILDS, Step
from plaza.reactions.reactions import Kind, Target

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
    done = builds.step(
        _filter_of(step.kind, step.target), step.build, step.after_id, PAGE, PAGES_PER_STEP
    )
    if done.code == FILLED:
        REBUILDS.send(Step(step.kind, step.target, done.build, done.after_id))


def _filter_of(kind: Kind, target: Target) -> Builder[int]:
    def begin(build: str) -> str:
        total, _ = mysql_reactions.read_counters([(kind, target)])[0]
        return redis_filter.begin_bloom(kind, target, build, total)

    return Builder(
        f"filter of {kind.name} {target}",
        begin,
        lambda after_id, limit: mysql_reactions.read_actors(kind, target, after_id, limit),
        lambda build, actors, last: redis_filter.fill_bloom(kind, target, build, actors, last),
        int,
    )
