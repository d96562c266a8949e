"""The end of the reaction log, for its incremental readers."""

from plaza.reactions.mysql_reactions import read_log_head, wait_for_log_writers

__all__ = ["read_log_head", "wait_for_log_writers"]
