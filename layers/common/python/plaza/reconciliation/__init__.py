"""Reconciliation: Redis, MySQL's counters and the rows they count are held against each other.

A run walks through all targets and users in bounded steps, leaves alone what is on its way, and has
what differs put right through a queue.
"""

from plaza.reconciliation.model import ComparePart, RepairFindings, RunReport

__all__ = [
    "ComparePart",
    "RepairFindings",
    "RunReport",
]
