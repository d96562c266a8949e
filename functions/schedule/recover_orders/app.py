"""Send overdue pending orders again; rebuild the filter of vouchers. Every minute."""

from functools import partial

from plaza.commerce.flash_sales.filter_build import build_filter
from plaza.commerce.flash_sales.recover_orders import recover_orders
from plaza.infra.jobs.scheduled_jobs import run_jobs, scheduled
from plaza.infra.runtime import clock


@scheduled("recover_orders")
def handler(event: dict[str, object], context: object) -> dict[str, int]:
    """Run once over all sales that are not finalized. An operator who is going to empty Redis
    decides all pending orders: ``{"everything": true}``."""
    after_s = 0 if event.get("everything") is True else None
    return run_jobs(
        {
            "recovered": partial(recover_orders, after_s, after_s),
            "vouchers_filtered": build_filter,
        },
        run=int(clock.now_s() // 60),
    )
