"""Schemas of the API: reconciliations and the live audit, for admins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import AfterValidator, ConfigDict, Field

from plaza.core.reactions import Target
from plaza.core.targets.schemas import REFERENCE, check_reference
from plaza.core.targets.target_ids import parse_reference
from plaza.core.targets.types import TypedId
from plaza.infra.http.schemas import ResponseModel, Time
from plaza.infra.mysql.sql import from_us
from plaza.operate.reconciliation.live_audit import MAX_AUDITED, TargetAudit
from plaza.operate.reconciliation.model import Example, RunReport

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
    found_at: Time
    repaired_at: Annotated[Time | None, Field(description="Null if it is not repaired.")]

    @classmethod
    def of(cls, example: Example, ids: Mapping[TypedId, str]) -> FindingResponse:
        """Returns ``example`` as the API sends it; ``ids``: of targets, as views have them."""
        reason, (metric, target_type, target_id), detail = example.finding
        return cls(
            reason=reason,
            metric=metric,
            type=target_type,
            id=ids[target_type, target_id],
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
                    "open": 0,
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
                    "open": 0,
                    "reasons": {},
                    "examples": [],
                },
            ]
        }
    )

    id: str
    started_at: Time
    ended_at: Annotated[Time | None, Field(description="Null while it is running.")]
    targets: Annotated[int, Field(description="Targets compared.")]
    relations: Annotated[int, Field(description="Rows compared.")]
    users: Annotated[int, Field(description="Users compared.")]
    cached: Annotated[int, Field(description="Targets that Redis had.")]
    skipped: Annotated[
        int, Field(description="Cached targets that were skipped, because they changed meanwhile.")
    ]
    differences: Annotated[int, Field(description="Differences found.")]
    repaired: Annotated[int, Field(description="Differences repaired.")]
    open: Annotated[int, Field(description="Differences that are not repaired yet.")]
    reasons: Annotated[dict[str, int], Field(description="Number of differences by reason.")]
    examples: Annotated[list[FindingResponse], Field(description="The first 20 differences.")]

    @classmethod
    def of(cls, report: RunReport, ids: Mapping[TypedId, str]) -> ReconciliationResponse:
        """Returns ``report`` as the API sends it; ``ids``: of targets, as views have them."""
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
            open=max(0, report.differing - report.repaired),
            reasons=dict(report.reason_counts),
            examples=[FindingResponse.of(example, ids) for example in report.examples],
        )


# A post has likes and collects, and the longest ids fit into the longest query.
MAX_TARGETS = min(48, MAX_AUDITED // 2)
TargetTexts = Annotated[
    list[
        Annotated[
            str,
            Field(pattern=REFERENCE),
            AfterValidator(check_reference),
        ]
    ]
    | None,
    Query(
        min_length=1,
        max_length=MAX_TARGETS,
        description=f"Up to {MAX_TARGETS} targets, separated by commas, such as `post:7,user:3`.",
    ),
]


def parse_targets(texts: Sequence[str]) -> list[Target]:
    """Return the targets in ``texts``, each once."""
    return [Target(*parse_reference(text)) for text in dict.fromkeys(texts)]


class AuditedTargetResponse(ResponseModel):
    """What the stores have of a target and kind. `drift` is 0 if they agree."""

    kind: Annotated[str, Field(description="`like`, `collect` or `follow`.")]
    type: Annotated[str, Field(description="Type of the target, such as `post`.")]
    id: Annotated[str, Field(description="Id of the target.")]
    state: Annotated[
        Literal["agrees", "in-transit", "not-loaded", "differs"],
        Field(
            description=(
                "`agrees`: Redis and MySQL were compared at the same version. `in-transit`: Redis "
                "has not applied all commits, so only counter and rows were compared. "
                "`not-loaded`: Redis does not have the target, so only counter and rows were "
                "compared."
            )
        ),
    ]
    total: Annotated[
        int | None, Field(description="What readers get from Redis; null if it is not loaded.")
    ]
    outbox: Annotated[int, Field(description="Reactions that MySQL has not confirmed yet.")]
    delta: Annotated[int, Field(description="What these change: `total` is stored plus `delta`.")]
    counter: Annotated[int, Field(description="The counter in MySQL.")]
    rows: Annotated[
        int | None,
        Field(description="COUNT(*) of the rows; null if the audit would count too many rows."),
    ]
    behind: Annotated[int, Field(description="Commits that Redis has not applied yet.")]
    drift: Annotated[
        int,
        Field(
            description=(
                "Differences between counter and rows, and between counter and Redis, that neither "
                "the outbox nor commits in transit explain."
            )
        ),
    ]
    reasons: Annotated[
        list[str], Field(description="What differs, as in reconciliations: `counter`, `total`.")
    ]

    @classmethod
    def of(cls, audit: TargetAudit, target_id: str) -> AuditedTargetResponse:
        """Returns ``audit`` as the API sends it."""
        cached = audit.cached
        state: Literal["agrees", "in-transit", "not-loaded", "differs"] = "agrees"
        if audit.reasons:
            state = "differs"
        elif cached is None:
            state = "not-loaded"
        elif audit.behind:
            state = "in-transit"
        return cls(
            kind=audit.kind.name,
            type=audit.target.type,
            id=target_id,
            state=state,
            total=audit.total,
            outbox=cached.entries if cached else 0,
            delta=cached.delta if cached else 0,
            counter=audit.counter,
            rows=audit.rows,
            behind=audit.behind,
            drift=audit.drift,
            reasons=list(audit.reasons),
        )


class AuditTotals(ResponseModel):
    """Sums over the targets of an audit."""

    targets: Annotated[int, Field(description="Targets, one for each kind.")]
    differing: Annotated[int, Field(description="Targets that differ.")]
    total: Annotated[int, Field(description="Of targets that are loaded into Redis.")]
    outbox: int
    counter: int
    rows: Annotated[int, Field(description="Of targets whose rows were counted.")]
    drift: int


class AuditResponse(ResponseModel):
    """An audit of some targets, while they change."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "audited_at": "2026-11-22T12:00:00.104518Z",
                    "totals": {
                        "targets": 1,
                        "differing": 0,
                        "total": 42,
                        "outbox": 2,
                        "counter": 40,
                        "rows": 40,
                        "drift": 0,
                    },
                    "items": [
                        {
                            "kind": "like",
                            "type": "post",
                            "id": "9000001",
                            "state": "agrees",
                            "total": 42,
                            "outbox": 2,
                            "delta": 2,
                            "counter": 40,
                            "rows": 40,
                            "behind": 0,
                            "drift": 0,
                            "reasons": [],
                        }
                    ],
                }
            ]
        }
    )

    audited_at: Time
    totals: AuditTotals
    items: Annotated[list[AuditedTargetResponse], Field(description="The most active first.")]

    @classmethod
    def of(
        cls, audits: Sequence[TargetAudit], ids: Mapping[TypedId, str], now_us: int
    ) -> AuditResponse:
        """Returns ``audits``, which were made at ``now_us``, as the API sends them; ``ids``: of
        their targets, as views have them."""
        items = [AuditedTargetResponse.of(audit, ids[audit.target]) for audit in audits]
        return cls(
            audited_at=from_us(now_us),
            totals=AuditTotals(
                targets=len(items),
                differing=sum(item.state == "differs" for item in items),
                total=sum(item.total or 0 for item in items),
                outbox=sum(item.outbox for item in items),
                counter=sum(item.counter for item in items),
                rows=sum(item.rows or 0 for item in items),
                drift=sum(item.drift for item in items),
            ),
            items=items,
        )
