"""Send outbox entries that are not acknowledged in time again, every minute."""

from functools import partial

from plaza.infra.contexts import offers
from plaza.infra.jobs.scheduled_jobs import run_jobs, scheduled
from plaza.infra.runtime import clock

_SWEEPS = [sweep for _, sweep in offers("sweeps")]
_RECOVERIES = {recovery.result: recovery.run for _, recovery in offers("recovers")}


@scheduled("sweep_outbox")
def handler(event: dict[str, object], context: object) -> dict[str, int]:
    """Run once; return how many entries of each kind were sent. An operator who is going to empty
    Redis sends all entries of outboxes: ``{"everything": true}``."""
    everything = event.get("everything") is True
    sweeps = {sweep.result: partial(sweep.run, everything=everything) for sweep in _SWEEPS}
    return run_jobs(sweeps | _RECOVERIES, run=int(clock.now_s() // 60))
