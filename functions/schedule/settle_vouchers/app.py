"""Sales that are over are compared, Redis with MySQL, and leave Redis; every minute."""

from plaza.flash_sales.settling import settle_vouchers


def handler(event: object, context: object) -> dict[str, int]:
    """Settle what has closed."""
    return {"settled": settle_vouchers()}
