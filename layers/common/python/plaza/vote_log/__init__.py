"""The vote log: kept in MySQL by day, archived to S3 when a day is over, counted from again."""

from plaza.vote_log.vote_log import Counted, Scope

__all__ = [
    "Counted",
    "Scope",
]
