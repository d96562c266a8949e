"""Changes to MySQL that bypass the API: read from the binlog and projected to Redis.

Owns the table binlog_offset. Handlers use ``follow_binlog``, operators ``offset``.
"""

__all__ = ["follow_binlog", "offset"]
