"""Add partitions for the coming days to the reaction log; archive closed days, events and orders in
S3."""

from plaza.commerce.flash_sales.archive_orders import MIN_ORDERS, archive_orders
from plaza.core.event_log.archive_events import archive_events
from plaza.core.reaction_log.maintenance import MAX_MOVED, maintain_log
from plaza.infra.jobs.scheduled_jobs import run_jobs, scheduled
from plaza.infra.runtime import clock


@scheduled("maintain_log")
def handler(event: dict[str, object], context: object) -> dict[str, int]:
    """Run for twelve minutes at most. An operator may limit the rows of the log that are moved,
    ``{"max_moved": rows}``, and archive few orders: ``{"min_orders": 1}``."""
    max_moved = int(str(event.get("max_moved", MAX_MOVED)))
    min_orders = int(str(event.get("min_orders", MIN_ORDERS)))
    results = run_jobs(
        {
            "log": lambda: maintain_log(max_moved).to_dict(),
            "events": lambda: {"events_archived": archive_events()},
            "orders": lambda: {"orders_archived": archive_orders(min_orders)},
        },
        run=int(clock.now_s() // 3600),
    )
    return results["log"] | results["events"] | results["orders"]
