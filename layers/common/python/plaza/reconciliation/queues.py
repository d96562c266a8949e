"""The queues of reconciliation: parts of runs, and findings."""

from __future__ import annotations

from plaza.infra.queues import Queue
from plaza.infra.retries import RetryPolicy
from plaza.reconciliation.model import ComparePart, RepairFindings

COMPARISONS = Queue(
    "comparisons",
    ComparePart.to_json,
    ComparePart.from_json,
    batch_size=1,
    visibility_s=541,
    retry=RetryPolicy(max_wait_s=4 * 3_600),  # the next night resumes the run
)
"""Parts of runs to process."""

REPAIRS = Queue(
    "repairs", RepairFindings.to_json, RepairFindings.from_json, batch_size=1, visibility_s=361
)
"""Findings to repair."""
