"""The state of targets in Redis and MySQL, for the audit and the reconciliation."""

from plaza.reactions.mysql_reactions import EPOCH_NOW, read_actors, read_counters, read_epoch
from plaza.reactions.redis_hydration import evict_all
from plaza.reactions.redis_inspection import find_denied, inspect_all, read_recent, target_of_key

__all__ = [
    "EPOCH_NOW",
    "evict_all",
    "find_denied",
    "inspect_all",
    "read_actors",
    "read_counters",
    "read_epoch",
    "read_recent",
    "target_of_key",
]
