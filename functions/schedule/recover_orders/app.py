"""Orders that stay pending are sent again, every minute; the filter of vouchers is built anew."""

from plaza.flash_sales.filter_build import build_filter
from plaza.flash_sales.recover_orders import recover_orders
from plaza.infra import clock
from plaza.infra.scheduled_jobs import run_jobs


def handler(event: object, context: object) -> dict[str, int]:
    """Look at all sales once."""
    return run_jobs(
        {"recovered": recover_orders, "vouchers_filtered": build_filter},
        run=int(clock.now_s() // 60),
    )
