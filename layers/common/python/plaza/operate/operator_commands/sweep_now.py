"""Sweep the outboxes now, for an operator who does not wait for the next minute."""

from __future__ import annotations

from plaza.infra.contexts import offers
from plaza.infra.runtime.observability import record


def sweep_now(everything: bool, operator_id: str) -> dict[str, int]:
    """Send entries of outboxes again, for about 6 s; return outbox -> number of entries.
    ``everything``: also those that were swept a moment ago, and while the backlog is long. Raises
    RedisDown, QueueDown."""
    swept = {
        sweep.outbox: sweep.run(everything=everything, max_s=sweep.max_now_s)
        for _, sweep in offers("sweeps")
    }
    record("sweep_requested", operator_id=operator_id, everything=everything, **swept)
    return swept
