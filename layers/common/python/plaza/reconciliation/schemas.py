"""Schemas of the API: reconciliations, for admins."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from plaza.infra.http import ResponseModel
from plaza.reconciliation.model import Example, RunReport

_FINDING_EXAMPLE: dict[str, Any] = {
    "reason": "counter",
    "metric": "like",
    "type": "post",
    "id": "9000001",
    "detail": "counter 7, rows 2",
    "found_at": "2026-11-22T03:00:11.204518Z",
    "repaired_at": "2026-11-22T03:00:12.733001Z",
}


class FindingResponse(ResponseModel):
    """A difference that a reconciliation found."""

    model_config = ConfigDict(json_schema_extra={"examples": [_FINDING_EXAMPLE]})

    reason: Annotated[
        str,
        Field(description="What differs: `counter`, `total`, `members`, `filter`, and others."),
    ]
    metric: Annotated[
        str,
        Field(
            description="The number concerned: a kind of reaction, `comments` or a user's total."
        ),
    ]
    type: Annotated[str, Field(description="Type of the target, such as `post`.")]
    id: Annotated[str, Field(description="Id of the target.")]
    detail: Annotated[str, Field(description="The values that differ.")]
    found_at: datetime
    repaired_at: Annotated[datetime | None, Field(description="Null if it is not repaired.")]

    @classmethod
    def of(cls, example: Example) -> FindingResponse:
        """Returns ``example`` as the API sends it."""
        reason, (metric, target_type, target_id), detail = example.finding
        return cls(
            reason=reason,
            metric=metric,
            type=target_type,
            id=str(target_id),
            detail=detail,
            found_at=example.found_at,
            repaired_at=example.repaired_at,
        )


class ReconciliationResponse(ResponseModel):
    """A reconciliation: a comparison of Redis, counters and rows."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "412",
                    "started_at": "2026-11-22T03:00:00.104518Z",
                    "ended_at": "2026-11-22T03:04:41.733001Z",
                    "targets": 120_000,
                    "relations": 4_100_000,
                    "users": 50_000,
                    "cached": 9_100,
                    "skipped": 14,
                    "differences": 1,
                    "repaired": 1,
                    "reasons": {"counter": 1},
                    "examples": [_FINDING_EXAMPLE],
                },
                {
                    "id": "413",
                    "started_at": "2026-11-22T12:00:00.104518Z",
                    "ended_at": None,
                    "targets": 0,
                    "relations": 0,
                    "users": 0,
                    "cached": 0,
                    "skipped": 0,
                    "differences": 0,
                    "repaired": 0,
                    "reasons": {},
                    "examples": [],
                },
            ]
        }
    )

    id: str
    started_at: datetime
    ended_at: Annotated[datetime | None, Field(description="Null while it is running.")]
    targets: Annotated[int, Field(description="Targets compared.")]
    relations: Annotated[int, Field(description="Rows compared.")]
    users: Annotated[int, Field(description="Users compared.")]
    cached: Annotated[int, Field(description="Targets that Redis had.")]
    skipped: Annotated[
        int, Field(description="Cached targets that were skipped, because they changed meanwhile.")
    ]
    differences: Annotated[int, Field(description="Differences found.")]
    repaired: Annotated[int, Field(description="Differences repaired.")]
    reasons: Annotated[dict[str, int], Field(description="Number of differences by reason.")]
    examples: Annotated[list[FindingResponse], Field(description="The first 20 differences.")]

    @classmethod
    def of(cls, report: RunReport) -> ReconciliationResponse:
        """Returns ``report`` as the API sends it."""
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
            differences=report.differing,
            repaired=report.repaired,
            reasons=dict(report.reason_counts),
            examples=[FindingResponse.of(example) for example in report.examples],
        )
