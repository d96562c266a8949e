"""Rebuilding: the Bloom filter of a big target, from MySQL, in bounded steps."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra import builds
from plaza.infra.builds import FILLED, Builder
from plaza.reactions import mysql_reactions, redis_bloom
from plaza.reactions.model import Kind, Target
from plaza.reactions.queues import REBUILDS, BloomBuildStep

__all__ = ["PAGE", "PAGES_PER_STEP", "REBUILDS", "rebuild"]

PAGE = 250
PAGES_PER_STEP = 200


@REBUILDS.consumer
def rebuild(steps: Sequence[BloomBuildStep]) -> None:
    """Take each build one step further: 50,000 actors, then the rest through the queue again.

    Safe to repeat. Raises RedisDown, MysqlDown, QueueDown.
    """
    for step in steps:
        _run_step(step)


def _run_step(step: BloomBuildStep) -> None:
    done = builds.advance(
        _bloom_builder(step.kind, step.target), step.build, step.after_id, PAGE, PAGES_PER_STEP
    )
    if done.code == FILLED:
        REBUILDS.send(BloomBuildStep(step.kind, step.target, done.build, done.after_id))


def _bloom_builder(kind: Kind, target: Target) -> Builder[int]:
    def begin(build: str) -> str:
        total, _ = mysql_reactions.read_counters([(kind, target)])[0]
        return redis_bloom.begin_bloom(kind, target, build, total)

    return Builder(
        f"filter of {kind.name} {target}",
        begin,
        lambda after_id, limit: mysql_reactions.read_actors(kind, target, after_id, limit),
        lambda build, actors, last: redis_bloom.fill_bloom(kind, target, build, actors, last),
        int,
    )
