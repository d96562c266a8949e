"""What Redis and MySQL hold of a target, for those who compare and correct it."""

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
