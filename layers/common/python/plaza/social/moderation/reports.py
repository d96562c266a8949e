"""Create, read and resolve reports."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from plaza.core import idempotency
from plaza.core.event_log import append_events
from plaza.core.event_log.model import EventDraft
from plaza.core.idempotency import IdempotentRequest, KeyReused
from plaza.core.reactions import Target, react
from plaza.core.reactions.kinds import CONTENT_TYPES
from plaza.core.reactions.model import TargetDeleted, TargetMissing
from plaza.core.targets import external_targets
from plaza.core.targets.external_targets import StoredTarget
from plaza.core.targets.types import EXTERNAL
from plaza.infra.derived import ids
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.queues import announcements
from plaza.infra.queues.announcements import Notice, NoticeKind, NoticeText
from plaza.infra.runtime.errors import BadInput
from plaza.infra.runtime.observability import record
from plaza.social.content import queries
from plaza.social.moderation import mysql_store
from plaza.social.moderation.model import (
    MAX_PREVIEW_CHARS,
    AlreadyReported,
    Report,
    ReportDraft,
    ReportedContent,
    ReportMissing,
    ReportResolved,
)


def create(draft: ReportDraft, shown_id: str, attempt: IdempotentRequest | None = None) -> Report:
    """Store a report, or return the one that ``attempt``'s key already created; ``shown_id``: of
    the target, as views have it. Raises TargetMissing, TargetDeleted, AlreadyReported, KeyReused,
    MysqlDown; BadInput for what is the reporter's own."""
    if attempt and (created := idempotency.find(draft.reporter_id, attempt)):
        return _read_created(*created)
    if draft.target.type not in EXTERNAL:
        react.require_existing(draft.target)
    _require_others(draft, shown_id)
    report_id = ids.new_id()

    def work(cursor: Cursor) -> Report | None:
        append_events.pass_barrier(cursor)
        resource = ("report", report_id)
        if attempt and not idempotency.claim(cursor, draft.reporter_id, attempt, resource):
            return None
        if not mysql_store.insert(cursor, report_id, draft):
            raise AlreadyReported(f"You have an open report of {draft.target.type} {shown_id}.")
        event = EventDraft(
            "report.created", draft.reporter_id, draft.target, report_id, draft.reason
        )
        append_events.append(cursor, [event])
        return mysql_store.lock(cursor, report_id)

    report = mysql.run_in_transaction(work)
    if report is None:
        return create(draft, shown_id, attempt)
    record("report_created", {"reports_created": 1}, report_id=report_id, reason=draft.reason)
    return report._replace(external_id=shown_id)


def _require_others(draft: ReportDraft, shown_id: str) -> None:
    """Raise BadInput for a report of oneself, or of one's own text or target; for a target of the
    app also TargetMissing, TargetDeleted."""
    owner_id: int | None = draft.target.id
    if draft.target.type in EXTERNAL:
        owner_id = _read_external(draft.target, shown_id).owner_id
    elif draft.target.type != "user":
        owner_id = queries.read_stored(draft.target).text.author_id
    if owner_id == draft.reporter_id:
        raise BadInput("target", "is your own", code="not-listed", path="body.target")


def _read_external(target: Target, external_id: str) -> StoredTarget:
    stored = external_targets.read_all([target]).get(target)
    if stored is None or stored.external_id != external_id:
        raise TargetMissing(f"{target.type.capitalize()} {external_id} does not exist.")
    if stored.is_deleted:
        raise TargetDeleted(f"{target.type.capitalize()} {external_id} was deleted.")
    return stored


def _name_all(reports: Sequence[Report]) -> list[Report]:
    """Return ``reports`` with the ids and URLs of targets of the app. One statement, none without
    such a target. Raises MysqlDown."""
    stored = external_targets.read_all({r.target for r in reports if r.target.type in EXTERNAL})
    return [
        report._replace(external_id=row.external_id, url=row.url)
        if (row := stored.get(report.target))
        else report
        for report in reports
    ]


def read_own(report_id: int, reporter_id: int) -> Report:
    """Return a report of the reporter. One statement, two for a target of the app. Raises
    ReportMissing, MysqlDown."""
    report = mysql_store.read(report_id)
    if report is None or report.reporter_id != reporter_id:
        raise ReportMissing(f"Report {report_id} does not exist.")
    return _name_all([report])[0]


def list_open(
    after_id: int, limit: int
) -> tuple[list[tuple[Report, ReportedContent | None]], int | None]:
    """Return (a page of open reports with the content that they are about, oldest first; its last
    id, None on the last page). Three statements at most. Raises MysqlDown."""
    reports = mysql_store.read_open(after_id, limit + 1)
    page = _name_all(reports[:limit])
    texts = queries.read_all_stored({r.target for r in page if r.target.type in CONTENT_TYPES})
    contents = {
        target: ReportedContent(
            text.author_id, text.title, text.body[:MAX_PREVIEW_CHARS], text.hidden, deleted
        )
        for target, (text, deleted) in texts.items()
    }
    listed = [(report, contents.get(report.target)) for report in page]
    return listed, page[-1].id if len(reports) > limit else None


def resolve(report_id: int, outcome: str, operator_id: int, key_id: str | None = None) -> Report:
    """Resolve an open report and return it; a repeat with the same outcome changes nothing, and
    announces the outcome to the reporter again. ``key_id``: the key that acts for the operator.
    Raises ReportMissing, ReportResolved,
    MysqlDown."""

    def lock(cursor: Cursor) -> Report:
        report = mysql_store.lock(cursor, report_id)
        if report is None:
            raise ReportMissing(f"Report {report_id} does not exist.")
        return report

    def work(cursor: Cursor) -> Report:
        append_events.pass_barrier(cursor)
        report = lock(cursor)
        if report.outcome is None:
            mysql_store.resolve(cursor, report_id, outcome, operator_id, key_id)
            event = EventDraft(
                "report.resolved", operator_id, report.target, report_id, outcome, key_id
            )
            append_events.append(cursor, [event])
            report = lock(cursor)
        if report.outcome != outcome:
            raise ReportResolved(f"Report {report_id} was resolved as {report.outcome}.")
        return report

    report = mysql.run_in_transaction(work)
    announcements.announce_notices([Notice("report", report.reporter_id, report_id)])
    fields = {"outcome": outcome, "operator_id": operator_id, "key_id": key_id}
    record("report_resolved", report_id=report_id, **fields)
    return _name_all([report])[0]


def _read_outcomes(notices: Collection[Notice]) -> dict[Notice, NoticeText]:
    """Return the outcomes of resolved reports. One statement. Raises MysqlDown."""
    reports = mysql_store.read_all({notice.subject_id for notice in notices})
    outcome_of = {(report.reporter_id, report.id): report.outcome for report in reports}
    return {
        notice: NoticeText(outcome)
        for notice in notices
        if (outcome := outcome_of.get((notice.user_id, notice.subject_id))) is not None
    }


REPORTS = NoticeKind("report", "report", _read_outcomes)


def _read_created(created_type: str, created_id: int) -> Report:
    report = mysql_store.read(created_id) if created_type == "report" else None
    if report is None:
        raise KeyReused
    return _name_all([report])[0]
