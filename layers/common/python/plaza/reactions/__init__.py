"""Likes, collects and follows: decided in Redis, recorded in MySQL, counted once.

Other contexts use: ``reacting`` and ``reading`` for reactions themselves, ``rankings`` for posts by
likes, ``log`` for the end of the reaction log, ``inspecting`` for what Redis and MySQL hold of a
target, ``queues`` for messages, ``reactions`` for the other types.
"""

from plaza.reactions.reactions import COLLECT, FOLLOW, KINDS, LIKE, Kind, Outcome, Target

__all__ = [
    "COLLECT",
    "FOLLOW",
    "KINDS",
    "LIKE",
    "Kind",
    "Outcome",
    "Target",
    "inspecting",
    "log",
    "queues",
    "rankings",
    "reacting",
    "reactions",
    "reading",
]
