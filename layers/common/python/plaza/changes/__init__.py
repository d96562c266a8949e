"""Changes to MySQL that bypass the API: read from the binlog and projected to Redis."""

from plaza.changes.follow_binlog import BinlogProgress, follow_changes

__all__ = ["BinlogProgress", "follow_changes"]
