"""Add partitions for the coming days to the vote log; archive closed days, and orders, in S3."""

from plaza.flash_sales.archive_orders import archive_orders
from plaza.vote_log.maintenance import MAX_MOVED, maintain_log


def handler(event: dict[str, object], context: object) -> dict[str, int]:
    """Run for twelve minutes at most. An operator may limit a run: ``{"max_moved": rows}``."""
    max_moved = event.get("max_moved", MAX_MOVED)
    result = maintain_log(int(str(max_moved))).to_dict()
    return result | {"orders_archived": archive_orders()}
