"""Somebody who follows many, in a process of its own.

Takes the actor's id and the users to follow as arguments. It says ``ready``, waits for the line
``go``, and follows them one after the other; then it says how many it may follow, and after that
the facts that it sent, one a line.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from plaza import follows
from plaza.follows import FollowLimit
from plaza.infra import mysql, redis, sqs


def main() -> None:
    """Follow as many as one may."""
    actor_id, *user_ids = map(int, sys.argv[1:])
    sent: list[str] = []
    sqs.send = lambda queue, body, delay_s=0: sent.append(body)
    redis.execute("PING")
    mysql.fetch_all("SELECT 1")
    print("ready", flush=True)
    sys.stdin.readline()
    may = 0
    for user_id in user_ids:
        with suppress(FollowLimit):
            may += follows.follow(user_id, actor_id).on
    print(may, *sent, sep="\n", flush=True)


if __name__ == "__main__":
    main()
