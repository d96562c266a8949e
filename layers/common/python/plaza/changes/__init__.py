"""Changes made past the API: read from MySQL's binlog, and told to Redis."""

from plaza.changes.following import Followed, follow_changes

__all__ = ["Followed", "follow_changes"]
