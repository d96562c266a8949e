"""Sales that are over are compared, Redis with MySQL, and leave Redis; every minute."""

from plaza.flash_sales.finalize_vouchers import finalize_vouchers


def handler(event: object, context: object) -> dict[str, int]:
    """Finalize what has closed."""
    return {"finalized": finalize_vouchers()}
