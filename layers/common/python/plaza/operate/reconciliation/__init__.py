"""Reconciliation: compare Redis, MySQL's counters and the rows that they count; repair drift.

A run compares in bounded steps what contexts declare (``compare`` in the manifests), skips what is
still in transit, and sends findings to a queue for repair. Owns the tables ``reconciliation*`` and
the queues ``comparisons`` and ``repairs``. Started by a schedule; reported by
``functions/api/reconciliation``.
"""

from plaza.operate.reconciliation.model import ComparePart, RepairFindings, RunReport

__all__ = [
    "ComparePart",
    "RepairFindings",
    "RunReport",
]
