"""What was changed past the API is read from MySQL's binlog and told to Redis."""

from plaza.changes import follow_changes


def handler(event: object, context: object) -> dict[str, int]:
    """Go on from where the last run stopped."""
    followed = follow_changes()
    return {"rows": followed.rows, "lost": int(followed.lost)}
