"""Models of the reconciliation API."""

from __future__ import annotations

from datetime import datetime

from plaza.infra.http import ResponseModel
from plaza.reconciliation.model import Example, RunReport


class FindingResponse(ResponseModel):
    """A difference. ``what``: a kind of reaction, comments, or a total of a user."""

    reason: str
    what: str
    type: str
    id: str
    details: str
    found_at: datetime
    repaired_at: datetime | None

    @classmethod
    def of(cls, example: Example) -> FindingResponse:
        reason, (what, target_type, target_id), details = example.finding
        return cls(
            reason=reason,
            what=what,
            type=target_type,
            id=str(target_id),
            details=details,
            found_at=example.found_at,
            repaired_at=example.repaired_at,
        )


class RunResponse(ResponseModel):
    """A run. ``ended_at``: null until it has ended. ``cached``: targets and projections in Redis;
    ``skipped``: those that changed meanwhile. ``reasons``: reason -> number of differences;
    ``examples``: the first 20."""

    id: str
    started_at: datetime
    ended_at: datetime | None
    targets: int
    relations: int
    users: int
    cached: int
    skipped: int
    differing: int
    repaired: int
    reasons: dict[str, int]
    examples: list[FindingResponse]

    @classmethod
    def of(cls, report: RunReport) -> RunResponse:
        tally = report.tally
        return cls(
            id=str(report.run_id),
            started_at=report.started_at,
            ended_at=report.ended_at,
            targets=tally.targets,
            relations=tally.relations,
            users=tally.users,
            cached=tally.cached,
            skipped=tally.skipped,
            differing=report.differing,
            repaired=report.repaired,
            reasons=dict(report.reason_counts),
            examples=[FindingResponse.of(example) for example in report.examples],
        )
