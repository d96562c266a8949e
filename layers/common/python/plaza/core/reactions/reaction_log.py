"""The end of the reaction log, for its incremental readers, and how far each has come; its hottest
targets; the epoch of its versions, which an operator raises after MySQL was restored to an earlier
moment."""

from plaza.core.reactions.mysql_log import (
    find_log_page_end,
    raise_epoch,
    read_hottest_targets,
    read_log_head,
    read_watermarks,
    wait_for_log_writers,
)
from plaza.core.reactions.mysql_rows import EPOCH_NOW

__all__ = [
    "EPOCH_NOW",
    "find_log_page_end",
    "raise_epoch",
    "read_hottest_targets",
    "read_log_head",
    "read_watermarks",
    "wait_for_log_writers",
]
