"""The position in the binlog, and the logs that MySQL has, for an operator."""

from plaza.changes.mysql_store import forget_positions, list_logs, list_positions

__all__ = ["forget_positions", "list_logs", "list_positions"]
