"""The end of the reaction log, for its incremental readers; the epoch of its versions, which an
operator raises after MySQL was restored to an earlier moment."""

from plaza.reactions.mysql_reactions import raise_epoch, read_log_head, wait_for_log_writers

__all__ = ["raise_epoch", "read_log_head", "wait_for_log_writers"]
