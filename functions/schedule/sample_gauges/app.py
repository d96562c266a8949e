"""Sample the gauges of all contexts for plots, every minute."""

from plaza.commerce.changes.gauges import read_binlog_lag
from plaza.commerce.checkins.gauges import read_checkin_outboxes
from plaza.commerce.flash_sales.gauges import read_orders
from plaza.core.live.polls import read_screens
from plaza.core.reactions.gauges import read_outboxes, read_saved
from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.infra.queues import spill
from plaza.operate.operations import gauges
from plaza.operate.operations.queue_admin import read_depth_gauges
from plaza.operate.reconciliation.cycles import read_progress
from plaza.operate.reconciliation.gauges import audit_active, read_newest_run

_METERS = (
    read_depth_gauges,
    read_outboxes,
    read_checkin_outboxes,
    spill.read_gauges,
    read_binlog_lag,
    read_saved,
    read_orders,
    read_screens,
    audit_active,
    read_newest_run,
    read_progress,
)


@scheduled("sample_gauges")
def handler(event: object, context: object) -> dict[str, int]:
    """Store one sample."""
    return {"gauges": gauges.take_sample(_METERS)}
