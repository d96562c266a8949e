"""Compare Redis, counters and rows, one part of a reconciliation run at a time."""

from plaza.reconciliation.orchestrator import COMPARISONS

handler = COMPARISONS.handler
