"""What people react to: posts, comments, reviews and each other. Is it there, and whose is it?

Whether something is there is known first by this process's memory, then by a marker in Redis, then
by MySQL. Other contexts use ``finding``, ``marking`` for what was made or deleted, ``announcing``
for what will be, ``queues``.
"""

from plaza.targets.targets import There

__all__ = ["There", "announcing", "finding", "marking", "queues"]
