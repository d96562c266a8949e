"""Add partitions for the coming days to the reaction log; archive closed days, events and orders in
S3."""

from functools import partial

from plaza.infra.contexts import offers
from plaza.infra.jobs.scheduled_jobs import run_jobs, scheduled
from plaza.infra.runtime import clock

_JOBS = tuple(offers("maintains"))


@scheduled("maintain_log")
def handler(event: dict[str, object], context: object) -> dict[str, int]:
    """Run for twelve minutes at most. An operator may limit the rows of the log that are moved,
    ``{"max_moved": rows}``, and archive few orders: ``{"min_orders": 1}``."""
    results = run_jobs(
        {context_name: partial(run, event) for context_name, run in _JOBS},
        run=int(clock.now_s() // 3600),
    )
    return {name: number for result in results.values() for name, number in result.items()}
