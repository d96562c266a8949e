"""Likes, collects and follows: decided in Redis, recorded in MySQL, counted once.

Other contexts use ``react`` and ``queries`` for reactions, ``hydration`` for targets in Redis,
``rankings`` for posts by likes, ``reaction_log`` for the end of the log and the epoch,
``gauges`` for outboxes, ``sorted_lists`` for the lists of large targets, ``erasure`` for
accounts, ``inspection`` to compare Redis with MySQL, ``queues`` for messages,
``declared_kinds`` for the kinds that MySQL counts, ``kinds`` and ``model`` for the other types.
"""

from plaza.core.reactions.kinds import COLLECT, FOLLOW, KINDS, LIKE, Kind
from plaza.core.reactions.model import Target

__all__ = [
    "COLLECT",
    "FOLLOW",
    "KINDS",
    "LIKE",
    "Kind",
    "Target",
    "declared_kinds",
    "erasure",
    "gauges",
    "hydration",
    "inspection",
    "kinds",
    "model",
    "queries",
    "queues",
    "rankings",
    "react",
    "reaction_log",
    "sorted_lists",
]
