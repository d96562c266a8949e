"""What people react to: posts, comments, reviews and each other. Is it there, and whose is it?

Whether something is there is known first by this process's memory, then by a marker in Redis, then
by MySQL. Other contexts use ``lookup``, ``markers`` for what was made or deleted, ``announce``
for what will be, ``queues``.
"""

from plaza.targets.model import Existence

__all__ = ["Existence", "announce", "lookup", "markers", "queues"]
