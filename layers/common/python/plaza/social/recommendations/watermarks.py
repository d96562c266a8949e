"""The cursors of the readers of the reaction log, for an operator."""

from plaza.social.recommendations.mysql_roll_up import read_watermarks

__all__ = ["read_watermarks"]
