"""Repair findings, each by the comparison that its subject belongs to.

A finding only names its subject. The right values are counted while the counters are locked, so a
late or repeated repair changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from plaza.infra.runtime.observability import record
from plaza.operate.reconciliation import declared, mysql_runs
from plaza.operate.reconciliation.model import RepairFindings
from plaza.operate.reconciliation.queues import REPAIRS

__all__ = ["REPAIRS", "repair"]


@REPAIRS.consumer
def repair(messages: Sequence[RepairFindings]) -> None:
    """Repair findings that still differ.

    Per message three transactions of twelve statements at most, and for sorted lists one and what
    ``sort_list`` runs. Raises MysqlDown, RedisDown.
    """
    for message in messages:
        _repair(message.finding_ids)


def _repair(finding_ids: Collection[int]) -> None:
    findings = mysql_runs.read_findings(finding_ids)
    if not findings:
        return
    corrected, handled = 0, set[int]()
    for of in declared.list_repairs():
        chosen = {
            finding_id: f
            for finding_id, f in findings.items()
            if f.subject.what in of.subjects or f.subject[:2] == of.copied_from
        }
        corrected += of.repair([*chosen.values()]) if chosen else 0
        handled |= chosen.keys()
    repaired = mysql_runs.mark_repaired(handled) if handled else 0
    record(
        "drift_repaired",
        {"drift_repaired": repaired, "counters_corrected": corrected},
        findings=len(findings),
    )
