"""The consumer that builds the Bloom filters of large targets from MySQL, in bounded steps."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.core.reactions import mysql_rows, mysql_snapshots, redis_bloom
from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import Target
from plaza.core.reactions.queues import REBUILDS, BloomBuildStep
from plaza.infra.derived import builds
from plaza.infra.derived.builds import FILLED, Builder

__all__ = ["PAGE", "PAGES_PER_STEP", "REBUILDS", "rebuild"]

PAGE = 250
PAGES_PER_STEP = 200


@REBUILDS.consumer
def rebuild(steps: Sequence[BloomBuildStep]) -> None:
    """Add up to 50,000 actors to each build, then queue its next step. Safe to repeat. Raises
    RedisDown, MysqlDown, QueueDown."""
    for step in steps:
        _run_step(step)


def _run_step(step: BloomBuildStep) -> None:
    progress = builds.advance(
        _bloom_builder(step.kind, step.target), step.build, step.after_id, PAGE, PAGES_PER_STEP
    )
    if progress.code == FILLED:
        REBUILDS.send(BloomBuildStep(step.kind, step.target, progress.build, progress.after_id))


def _bloom_builder(kind: Kind, target: Target) -> Builder[int]:
    def begin(build: str) -> str:
        total, _ = mysql_snapshots.read_counters([(kind, target)])[0]
        return redis_bloom.begin_bloom(kind, target, build, total)

    return Builder(
        f"filter of {kind.name} {target}",
        begin,
        lambda after_id, limit: mysql_rows.read_actors(kind, target, after_id, limit),
        lambda build, actors, last: redis_bloom.fill_bloom(kind, target, build, actors, last),
        int,
    )
