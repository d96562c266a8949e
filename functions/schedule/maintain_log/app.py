"""Add partitions for the coming days to the vote log; archive closed days in S3."""

from plaza.infra.scheduled_jobs import scheduled
from plaza.vote_log.maintenance import MAX_MOVED, maintain_log


@scheduled("maintain_log")
def handler(event: dict[str, object], context: object) -> dict[str, int]:
    """Run for ten minutes at most. An operator may limit a run: ``{"max_moved": rows}``."""
    max_moved = event.get("max_moved", MAX_MOVED)
    return maintain_log(int(str(max_moved))).to_dict()
