"""Targets of reactions: posts, comments, reviews and users; their existence and their owners.

Existence is looked up in this process's cache, then in a marker in Redis, then in MySQL. Other
contexts use ``lookup``, ``descriptions``, ``external_targets``, ``target_ids``, ``types``,
``markers`` after a creation or deletion, ``announce`` before a write, and ``queues``.
"""

from plaza.core.targets.model import Description, Existence, TargetHidden, Visibility

__all__ = [
    "Description",
    "Existence",
    "TargetHidden",
    "Visibility",
    "announce",
    "descriptions",
    "export",
    "external_targets",
    "lookup",
    "markers",
    "queues",
    "target_ids",
    "types",
]
