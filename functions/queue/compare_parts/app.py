"""Redis, counters and rows are compared in the background, a part of a run at a time."""

from plaza.reconciliation.orchestrator import COMPARISONS

handler = COMPARISONS.handler
