"""The consumer of announced writes: Redis gets what MySQL has now."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.core.targets import external_targets
from plaza.core.targets.queues import REFRESHES, TargetRefresh
from plaza.core.targets.types import EXTERNAL, TypedId
from plaza.infra.contexts import offers
from plaza.infra.mysql import participants
from plaza.infra.queues import announcements
from plaza.infra.runtime.observability import record

__all__ = ["REFRESHES", "refresh"]


@REFRESHES.consumer
def refresh(refreshes: Sequence[TargetRefresh]) -> None:
    """Write the projections of the targets again; missing targets are skipped.

    Each context projects its own types. Safe to repeat, in any order. Statements and round trips do
    not grow with the number of targets. Raises MysqlDown, RedisDown, QueueDown.
    """
    targets = sorted({(item.type, item.id) for item in refreshes})
    for _, project in offers("refreshes"):
        project(targets)
    record("projections_refreshed", {"refreshed": len(refreshes)})


def refresh_external(targets: Sequence[TypedId]) -> None:
    """Mark deleted targets of the app, and read their notifications. One statement and a round
    trip; two statements, a transaction an owner and a round trip more if some were deleted."""
    of_app = [target for target in targets if target[0] in EXTERNAL]
    if not of_app:
        return
    if owners := external_targets.refresh(of_app):
        participants.clear((*target, owner_id) for target, owner_id in owners.items())
        participants.refresh(sorted(set(owners.values())))
        announcements.announce_notified(set(owners.values()))
