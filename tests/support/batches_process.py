"""A consumer in a process of its own: ``batches_process reactions``.

It reads messages from standard input, one a line; an empty line ends a batch. It prints ``ready``
for the line ``ready?``, begins at the line ``go``, and prints ``done`` at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from plaza.commerce.flash_sales import persist as flash_sales_persist
from plaza.commerce.flash_sales.queues import ORDERS
from plaza.core.reactions import persist as reactions_saving
from plaza.core.reactions.queues import REACTIONS
from plaza.infra.mysql import mysql
from plaza.infra.queues import sqs
from plaza.infra.redis import redis

WORK: dict[str, tuple[Callable[[str], Any], Callable[[list[Any]], None]]] = {
    "reactions": (REACTIONS.decode, reactions_saving.save),
    "orders": (ORDERS.decode, flash_sales_persist.persist_orders),
    "orders given up": (ORDERS.decode, flash_sales_persist.decide_dead_letters),
}


def main() -> None:
    """Handle all batches, without sending messages."""
    read, work = WORK[sys.argv[1]]
    sqs.send = lambda queue, body, delay_s=0: None
    batches: list[list[Any]] = [[]]
    redis.execute("PING")
    mysql.fetch_all("SELECT 1")
    for line in sys.stdin:
        if line == "go\n":
            break
        if line == "ready?\n":
            print("ready", flush=True)
        elif line.strip():
            batches[-1].append(read(line))
        else:
            batches.append([])
    for batch in filter(None, batches):
        work(batch)
    print("done", flush=True)


if __name__ == "__main__":
    main()
