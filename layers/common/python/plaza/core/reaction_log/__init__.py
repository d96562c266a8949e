"""Reaction log: its partitions by day, their archive in S3, and recounts of counters from both."""

from plaza.core.reaction_log.model import CounterKey, Scope

__all__ = [
    "CounterKey",
    "Scope",
]
