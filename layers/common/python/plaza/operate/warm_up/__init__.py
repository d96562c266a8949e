"""WarmUp: loads what readers will ask for into a Redis that is empty or new.

Owns the queue ``warm_ups`` and the Redis keys listed in ``redis_store``. An operator, a deploy and
a failover of Redis start a run; readers can be held until it ends (the level ``warming``).
"""

__all__ = ["start_warm_up"]
