"""Changes made past the API: read from MySQL's binlog, and told to Redis."""

from plaza.changes.follow_binlog import BinlogProgress, follow_changes

__all__ = ["BinlogProgress", "follow_changes"]
