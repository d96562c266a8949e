"""The vote log gets partitions for the days to come; days that are over go to S3."""

from plaza.vote_log.maintenance import MAX_MOVED, maintain_log


def handler(event: dict[str, object], context: object) -> dict[str, int]:
    """Work for ten minutes at most. An operator may say ``{"max_moved": rows}``."""
    max_moved = event.get("max_moved", MAX_MOVED)
    return maintain_log(int(str(max_moved))).to_dict()
