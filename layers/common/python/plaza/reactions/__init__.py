"""Likes, collects and follows: decided in Redis, recorded in MySQL, counted once.

Other contexts use ``react`` and ``queries`` for reactions, ``rankings`` for posts by likes,
``reaction_log`` for the end of the log, ``erasure`` and ``export`` for accounts, ``inspection`` to
compare Redis with MySQL, ``queues`` for messages, ``model`` for the other types.
"""

from plaza.reactions.model import COLLECT, FOLLOW, KINDS, LIKE, Kind, Outcome, Target

__all__ = [
    "COLLECT",
    "FOLLOW",
    "KINDS",
    "LIKE",
    "Kind",
    "Outcome",
    "Target",
    "erasure",
    "export",
    "inspection",
    "model",
    "queries",
    "queues",
    "rankings",
    "react",
    "reaction_log",
]
