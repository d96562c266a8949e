"""A consumer in a process of its own.

Facts come on standard input, one a line; an empty line ends a batch. It says ``ready`` when it is
asked, waits for the line ``go`` before it saves, and then says ``done``.
"""

from __future__ import annotations

import sys

from plaza import reactions
from plaza.infra import mysql, queues, redis
from plaza.reactions import ReactionChanged


def main() -> None:
    """Save each batch. What a consumer tells others is not sent."""
    queues.send = lambda queue, body, delay_s=0: None
    batches: list[list[ReactionChanged]] = [[]]
    redis.execute("PING")
    mysql.fetch_all("SELECT 1")
    for line in sys.stdin:
        if line == "go\n":
            break
        if line == "ready?\n":
            print("ready", flush=True)
        elif line.strip():
            batches[-1].append(ReactionChanged.from_json(line))
        else:
            batches.append([])
    for batch in filter(None, batches):
        reactions.save(batch)
    print("done", flush=True)


if __name__ == "__main__":
    main()
