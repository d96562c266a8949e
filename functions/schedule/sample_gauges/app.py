"""Sample the gauges of all contexts for plots, every minute."""

from plaza.infra.contexts import offers
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.queues import spill
from plaza.operate.operations import gauges

_METERS = [spill.read_gauges, *(meter for _, meter in (*offers("lag"), *offers("gauges")))]


@scheduled("sample_gauges")
def handler(event: object, context: object) -> dict[str, int]:
    """Store one sample."""
    return {"gauges": gauges.take_sample(_METERS)}
