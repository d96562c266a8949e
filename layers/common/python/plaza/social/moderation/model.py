"""Reports and their rules. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from plaza.core.reactions import Target
from plaza.infra.runtime.errors import Conflict, NotFound

Reason = Literal["spam", "abuse", "nudity", "violence", "illegal", "other"]
ReportOutcome = Literal["upheld", "dismissed"]
MAX_PREVIEW_CHARS = 500


class ReportMissing(NotFound):
    """The report does not exist, or it is another user's."""


class AlreadyReported(Conflict):
    """The user has an open report of the target."""

    slug = "already-reported"
    title = "Already reported"
    example = "You have an open report of post 1."


class ReportResolved(Conflict):
    """The report was resolved with another outcome."""

    slug = "report-resolved"
    title = "Report resolved"
    example = "Report 1 was resolved as upheld."


@dataclass(frozen=True, slots=True)
class ReportDraft:
    """A report before it is stored."""

    reporter_id: int
    target: Target
    reason: str
    details: str | None


class Report(NamedTuple):
    """A stored report. ``outcome`` is None while it is open; times are microseconds since 1970.
    ``external_id``, ``url``: of a target of the app."""

    id: int
    reporter_id: int
    target: Target
    reason: str
    details: str | None
    outcome: str | None
    created_us: int
    resolved_us: int | None
    external_id: str | None = None
    url: str | None = None


class ReportedContent(NamedTuple):
    """What a report of content is about, as it is now; ``preview`` is the beginning of its text."""

    author_id: int
    title: str | None
    preview: str
    hidden: bool
    deleted: bool
