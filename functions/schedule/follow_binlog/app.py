"""Project changes that bypassed the API, read from the binlog of MySQL, to Redis."""

from plaza.changes import follow_changes


def handler(event: object, context: object) -> dict[str, int]:
    """Continue at the position of the last run."""
    followed = follow_changes()
    return {"rows": followed.rows, "lost": int(followed.lost)}
