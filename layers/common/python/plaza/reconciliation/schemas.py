"""What admins are told about runs."""

from __future__ import annotations

from datetime import datetime

from plaza.infra.http import ResponseModel
from plaza.reconciliation.model import Example, RunReport


class FindingResponse(ResponseModel):
    """Something that differed. ``what``: a kind of reaction, comments, or a total of a user."""

    reason: str
    what: str
    type: str
    id: str
    said: str
    found_at: datetime
    repaired_at: datetime | None

    @classmethod
    def of(cls, example: Example) -> FindingResponse:
        """What an admin is told about it."""
        reason, (what, target_type, target_id), said = example.finding
        return cls(
            reason=reason,
            what=what,
            type=target_type,
            id=str(target_id),
            said=said,
            found_at=example.found_at,
            repaired_at=example.repaired_at,
        )


class RunResponse(ResponseModel):
    """A run. ``ended_at`` null: it goes on. ``hot``: what Redis held; ``moving``: what of
    that was passed over. ``why``: reason -> how many; ``examples``: the first 20.
    """

    id: str
    started_at: datetime
    ended_at: datetime | None
    targets: int
    relations: int
    users: int
    hot: int
    moving: int
    differing: int
    repaired: int
    why: dict[str, int]
    examples: list[FindingResponse]

    @classmethod
    def of(cls, report: RunReport) -> RunResponse:
        """What an admin is told about it."""
        tally = report.tally
        return cls(
            id=str(report.run_id),
            started_at=report.started_at,
            ended_at=report.ended_at,
            targets=tally.targets,
            relations=tally.relations,
            users=tally.users,
            hot=tally.cached,
            moving=tally.skipped,
            differing=report.differing,
            repaired=report.repaired,
            why=dict(report.reason_counts),
            examples=[FindingResponse.of(example) for example in report.examples],
        )
