"""The vote log gets partitions for the days to come; days that are over go to S3."""

from plaza.vote_log.maintaining import MOST_MOVED, maintain_log


def handler(event: dict[str, object], context: object) -> dict[str, int]:
    """Work for ten minutes at most. An operator may say ``{"most_moved": rows}``."""
    most_moved = event.get("most_moved", MOST_MOVED)
    return maintain_log(int(str(most_moved))).to_dict()
