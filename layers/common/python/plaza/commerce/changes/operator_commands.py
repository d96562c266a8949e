"""What operators do with the binlog."""

from __future__ import annotations

from plaza.commerce.changes import offset
from plaza.infra.jobs.operator_commands import Result, command


@command
def show_binlog() -> Result:
    """Show the binlogs that MySQL has, and the offset of FollowBinlog."""
    return {"logs": offset.list_logs(), "offsets": offset.list_offsets()}


@command
def clear_binlog_offset() -> Result:
    """Skip the binlog: it is read from its end on, and all shops are written to Redis again."""
    return {"cleared": offset.forget_offsets()}
