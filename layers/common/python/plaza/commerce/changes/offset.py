"""The offset in the binlog, and the logs that MySQL has, for an operator."""

from plaza.commerce.changes.mysql_store import forget_offsets, list_logs, list_offsets

__all__ = ["forget_offsets", "list_logs", "list_offsets"]
