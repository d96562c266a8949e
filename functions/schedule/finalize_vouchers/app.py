"""Compare finished sales, Redis with MySQL, and remove them from Redis, every minute."""

from plaza.commerce.flash_sales.finalize_vouchers import finalize_vouchers
from plaza.infra.jobs.scheduled_jobs import scheduled


@scheduled("finalize_vouchers")
def handler(event: object, context: object) -> dict[str, int]:
    """Finalize the sales that have closed."""
    return {"finalized": finalize_vouchers()}
