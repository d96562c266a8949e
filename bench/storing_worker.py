"""A consumer of a checkout: it saves batches of likes when a line arrives, and prints the seconds
and the seconds of CPU of each. It imports nothing but the layer, of which ``PYTHONPATH`` has one.

A line is JSON: ``[first actor, events a batch, batches, [post, ...]]``; batches take the posts in
turn.
"""

import contextlib
import io
import json
import sys
import time

from plaza.core.reactions import persist
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.infra.runtime.process import paused_collection


def save(first: int, size: int, batches: int, posts: list[int]) -> list[tuple[float, float]]:
    """Return the seconds that each batch took, and the CPU seconds."""
    took_s = []
    at_us = time.time_ns() // 1000
    for batch in range(batches):
        actors = range(first + batch * size, first + (batch + 1) * size)
        spread = len(posts) if size >= len(posts) > 4 else 1  # many posts are in each batch
        events = [
            ReactionEvent(
                ReactionKey("post", posts[(batch + actor % spread) % len(posts)], "like", actor),
                True,
                at_us + actor,
                f"JKJaXm{actor:010}=",
            )
            for actor in actors
        ]
        with paused_collection(), contextlib.redirect_stdout(io.StringIO()):
            began_s, cpu_s = time.perf_counter(), time.process_time()
            persist.save(events)
            took_s.append((time.perf_counter() - began_s, time.process_time() - cpu_s))
    return took_s


for line in sys.stdin:
    print(json.dumps(save(*json.loads(line))), flush=True)
