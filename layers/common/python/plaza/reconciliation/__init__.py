"""Reconciliation: Redis, MySQL's counters and the rows they count are held against each other.

A run walks through all targets and users in bounded steps, leaves alone what is on its way, and has
what differs put right through a queue.
"""

from plaza.reconciliation.queues import COMPARISONS, REPAIRS
from plaza.reconciliation.reconciliation import PartAsked, RepairsAsked, Report
from plaza.reconciliation.repairing import repair
from plaza.reconciliation.running import (
    read_report,
    read_reports,
    start,
    take_parts,
)

__all__ = [
    "COMPARISONS",
    "REPAIRS",
    "PartAsked",
    "RepairsAsked",
    "Report",
    "read_report",
    "read_reports",
    "repair",
    "start",
    "take_parts",
]
