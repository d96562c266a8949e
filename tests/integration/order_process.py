"""Something that decides orders, in a process of its own: ``order_process save`` or ``give_up``.

Reservations come on standard input, one a line; an empty line ends a batch. It says ``ready``,
waits for the line ``go``, decides, and says ``done``.
"""

from __future__ import annotations

import sys

from plaza import flash_sales
from plaza.flash_sales import OrderReserved
from plaza.infra import mysql, redis


def main() -> None:
    """Decide each batch."""
    decide = {"save": flash_sales.save, "give_up": flash_sales.give_up}[sys.argv[1]]
    batches: list[list[OrderReserved]] = [[]]
    redis.execute("PING")
    mysql.fetch_all("SELECT 1")
    for line in sys.stdin:
        if line == "go\n":
            break
        if line == "ready?\n":
            print("ready", flush=True)
        elif line.strip():
            batches[-1].append(OrderReserved.from_json(line))
        else:
            batches.append([])
    for batch in filter(None, batches):
        decide(batch)
    print("done", flush=True)


if __name__ == "__main__":
    main()
