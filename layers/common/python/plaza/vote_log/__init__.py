"""The vote log: kept in MySQL by day, archived to S3 when a day is over, counted from again."""

from plaza.vote_log.model import CounterKey, Scope

__all__ = [
    "CounterKey",
    "Scope",
]
