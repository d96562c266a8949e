"""The queues of reconciliation: parts of runs, and findings."""

from __future__ import annotations

from plaza.infra.queues.messages import message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.retries import RetryPolicy
from plaza.operate.reconciliation.model import ComparePart, RepairFindings

COMPARISONS: Queue[ComparePart] = Queue(
    message_codec("comparisons", ComparePart),
    batch_size=1,
    visibility_s=541,
    retention_days=4,
    retry=RetryPolicy(max_wait_s=4 * 3_600),  # the next night resumes the run
)
"""Parts of runs to process."""

REPAIRS: Queue[RepairFindings] = Queue(
    message_codec("repairs", RepairFindings), batch_size=1, visibility_s=361, max_concurrency=2
)
"""Findings to repair."""
