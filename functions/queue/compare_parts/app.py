"""Compare Redis, counters and rows, one part of a reconciliation run at a time."""

from plaza.operate.reconciliation.orchestrator import COMPARISONS, process_parts

handler = COMPARISONS.processor(process_parts).lambda_handler()
