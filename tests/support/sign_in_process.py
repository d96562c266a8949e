"""A process that signs in.

Its arguments are ``CHALLENGE CODE COUNT``. It prints ``ready``, waits for a line, signs in
``COUNT`` times and prints each result: the id of the user or the name of the error. With the code
``-`` the first argument is a phone number, and each attempt signs up with another one like it.
"""

from __future__ import annotations

import io
import os
import sys

from plaza.infra.aws import secrets
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.errors import PlazaError
from plaza.people.auth import phone_sign_in
from plaza.people.users.sign_up import sign_up


def main() -> None:
    challenge, code, count = sys.argv[1:]
    secrets._fetch = lambda secret_id: f"the secret {secret_id}"
    redis.execute("PING")
    mysql.fetch_all("SELECT 1")
    out, sys.stdout = sys.stdout, io.StringIO()  # no log lines
    print("ready", file=out, flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        if code == "-":
            print(sign_up(f"{challenge[:-2]}{number:02}").id, file=out, flush=True)
            continue
        try:
            completed = phone_sign_in.sign_in(
                challenge, code, f"198.51.100.{os.getpid() % 200 + number}"
            )
            print(completed.user.id, file=out, flush=True)
        except PlazaError as error:
            print(type(error).__name__, file=out, flush=True)


if __name__ == "__main__":
    main()
