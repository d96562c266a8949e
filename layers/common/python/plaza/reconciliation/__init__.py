"""Reconciliation: Redis, MySQL's counters and the rows they count are held against each other.

A run walks through all targets and users in bounded steps, leaves alone what is on its way, and has
what differs put right through a queue.
"""

from plaza.reconciliation.reconciliation import PartAsked, RepairsAsked, Report

__all__ = [
    "PartAsked",
    "RepairsAsked",
    "Report",
]
