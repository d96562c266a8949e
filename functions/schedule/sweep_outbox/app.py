"""Send outbox entries that are not acknowledged in time again, every minute."""

from functools import partial

from plaza.commerce.checkins.sweep import sweep_checkins
from plaza.core.reactions.failover_recovery import acknowledge_after_failover
from plaza.core.reactions.sweep import sweep_outbox
from plaza.infra.jobs.scheduled_jobs import run_jobs, scheduled
from plaza.infra.runtime import clock
from plaza.operate.warm_up.start_warm_up import start_after_change


@scheduled("sweep_outbox")
def handler(event: dict[str, object], context: object) -> dict[str, int]:
    """Run once; return how many entries of each kind were sent. An operator who is going to empty
    Redis sends all reactions of outboxes: ``{"everything": true}``."""
    everything = event.get("everything") is True
    return run_jobs(
        {
            "republished": partial(sweep_outbox, everything=everything),
            "checkins_republished": sweep_checkins,
            "acknowledged_again": acknowledge_after_failover,
            "warm_ups_started": start_after_change,
        },
        run=int(clock.now_s() // 60),
    )
