"""The end of the reaction log, for those who read it as it grows."""

from plaza.reactions.mysql_reactions import read_log_head, wait_for_log_writers

__all__ = ["read_log_head", "wait_for_log_writers"]
