"""Schemas of the API: reports and hidden content."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import AfterValidator, ConfigDict, Field

from plaza.core.reactions import Target
from plaza.core.targets.schemas import NamedTarget, TypeText
from plaza.infra.http.schemas import RequestModel, ResponseModel, Time
from plaza.infra.http.texts import TEXT_RULE, VISIBLE, check_text
from plaza.infra.mysql.sql import from_us
from plaza.infra.runtime.observability import record_unknown
from plaza.social.moderation.model import (
    MAX_PREVIEW_CHARS,
    Reason,
    Report,
    ReportDraft,
    ReportedContent,
    ReportOutcome,
)

_TARGET_EXAMPLE: dict[str, Any] = {"type": "post", "id": "9000001"}
_REPORT_EXAMPLE: dict[str, Any] = {
    "id": "9500001",
    "target": _TARGET_EXAMPLE,
    "reason": "spam",
    "details": "The same advertisement for the third time.",
    "outcome": None,
    "created_at": "2026-11-22T12:00:00.123456Z",
    "resolved_at": None,
}


class ReportedReference(NamedTarget):
    """The type and the id of what is reported."""


class ReportedTarget(ResponseModel):
    """The type and the id of what was reported."""

    type: TypeText
    id: str


class ReportRequest(RequestModel):
    """A report of content or of a user."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "reason": "spam",
                    "target": _TARGET_EXAMPLE,
                    "details": "The same advertisement for the third time.",
                }
            ]
        }
    )

    target: ReportedReference
    reason: Reason
    details: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=1_000,
                description=TEXT_RULE,
                json_schema_extra={"pattern": VISIBLE},
            ),
            AfterValidator(check_text),
        ]
        | None
    ) = None

    def to_draft(self, reporter_id: int) -> ReportDraft:
        """Returns the draft of ``reporter_id``."""
        target = Target(*self.target.to_target())
        return ReportDraft(reporter_id, target, self.reason, self.details)


class ReportResponse(ResponseModel):
    """A report, as its reporter sees it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_REPORT_EXAMPLE]})

    id: str
    target: ReportedTarget
    reason: Reason
    details: str | None
    outcome: Annotated[ReportOutcome | None, Field(description="Null while the report is open.")]
    created_at: Annotated[Time, Field(description="When it was created.")]
    resolved_at: Annotated[
        Time | None, Field(description="When it was resolved; null while it is open.")
    ]

    @classmethod
    def of(cls, report: Report) -> ReportResponse:
        """Returns ``report`` as the API sends it; a reason of another version is `other`."""
        target_type, target_id = report.target
        reason = report.reason
        if reason not in get_args(Reason):
            record_unknown("report.reason", reason)
            reason = "other"
        resolved_us = report.resolved_us
        return cls.model_validate(
            {
                "id": str(report.id),
                "target": {"type": target_type, "id": report.external_id or str(target_id)},
                "reason": reason,
                "details": report.details,
                "outcome": report.outcome,
                "created_at": from_us(report.created_us),
                "resolved_at": None if resolved_us is None else from_us(resolved_us),
            }
        )


class ReportedContentPreview(ResponseModel):
    """What a report is about, as it is now."""

    author_id: str
    title: str | None
    body: Annotated[
        str, Field(description=f"The first {MAX_PREVIEW_CHARS} characters of the text.")
    ]
    hidden: bool
    deleted: bool

    @classmethod
    def of(cls, content: ReportedContent) -> ReportedContentPreview:
        """Returns ``content`` as the API sends it."""
        return cls(
            author_id=str(content.author_id),
            title=content.title,
            body=content.preview,
            hidden=content.hidden,
            deleted=content.deleted,
        )


class OpenReport(ReportResponse):
    """A report in the operators' queue."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _REPORT_EXAMPLE
                | {
                    "reporter_id": "31",
                    "content": {
                        "author_id": "7",
                        "title": "Hello",
                        "body": "First post",
                        "hidden": False,
                        "deleted": False,
                    },
                    "url": None,
                }
            ]
        }
    )

    reporter_id: str
    content: Annotated[
        ReportedContentPreview | None,
        Field(description="Null for a report of a user, or of a target of the app."),
    ]
    url: Annotated[
        str | None, Field(description="Where a target of the app is shown; null for others.")
    ]

    @classmethod
    def at(cls, report: Report, content: ReportedContent | None) -> OpenReport:
        """Returns ``report`` as the API sends it to operators."""
        return cls(
            **dict(ReportResponse.of(report)),
            reporter_id=str(report.reporter_id),
            content=ReportedContentPreview.of(content) if content else None,
            url=report.url,
        )


class OutcomeRequest(RequestModel):
    """How a report is resolved."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"outcome": "upheld"}]})

    outcome: ReportOutcome


class HiddenResponse(ResponseModel):
    """Whether content is hidden after the request."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"hidden": True}, {"hidden": False}]})

    hidden: bool
