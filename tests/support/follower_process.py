"""An actor that follows many users, in a process of its own.

The arguments are the ids of the actor and of the users to follow. The process prints ``ready``,
waits for the line ``go`` and follows the users in order. Then it prints the number of allowed
follows and the messages that it sent, one a line.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from plaza import follows
from plaza.follows import FollowLimit
from plaza.infra import mysql, redis, sqs


def main() -> None:
    actor_id, *user_ids = map(int, sys.argv[1:])
    sent: list[str] = []
    sqs.send = lambda queue, body, delay_s=0: sent.append(body)
    redis.execute("PING")
    mysql.fetch_all("SELECT 1")
    print("ready", flush=True)
    sys.stdin.readline()
    allowed = 0
    for user_id in user_ids:
        with suppress(FollowLimit):
            allowed += follows.follow(user_id, actor_id).on
    print(allowed, *sent, sep="\n", flush=True)


if __name__ == "__main__":
    main()
