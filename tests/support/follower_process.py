"""A process that follows many users.

Its arguments are the actor's id and the users to follow. It prints ``ready``, waits for the line
``go``, follows the users in sequence, and prints the number of accepted follows and then the events
that it sent, one a line.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from plaza.infra.mysql import mysql
from plaza.infra.queues import sqs
from plaza.infra.redis import redis
from plaza.people import follows
from plaza.people.follows import FollowLimit


def main() -> None:
    """Follow up to the limit."""
    actor_id, *user_ids = map(int, sys.argv[1:])
    sent: list[str] = []
    sqs.send = lambda queue, body, delay_s=0: sent.append(body)
    redis.execute("PING")
    mysql.fetch_all("SELECT 1")
    print("ready", flush=True)
    sys.stdin.readline()
    accepted = 0
    for user_id in user_ids:
        with suppress(FollowLimit):
            accepted += follows.follow(user_id, actor_id).on
    print(accepted, *sent, sep="\n", flush=True)


if __name__ == "__main__":
    main()
