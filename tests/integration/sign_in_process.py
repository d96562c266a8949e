"""Somebody who signs in, in a process of their own.

``PHONE CODE COUNT``; says ``ready``, waits for a line, tries ``COUNT`` times and prints each
outcome: the id of the user, or the name of the error. Without a code (``-``) it is taken for right,
and each time for another phone.
"""

from __future__ import annotations

import io
import os
import sys

from plaza.auth import signing_in
from plaza.infra import mysql, redis, secrets
from plaza.infra.errors import PlazaError
from plaza.infra.limits import Window
from plaza.users import sign_up


def main() -> None:
    """Try."""
    phone, code, count = sys.argv[1:]
    secrets.read = lambda secret_id: f"the secret {secret_id}"
    signing_in.TRYING_BY_PHONE = (Window(600, 1_000),)  # limits are not what is tested
    redis.execute("PING")
    mysql.fetch_all("SELECT 1")
    out, sys.stdout = sys.stdout, io.StringIO()  # no log lines
    print("ready", file=out, flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        if code == "-":
            print(sign_up(f"{phone[:-2]}{number:02}").id, file=out, flush=True)
            continue
        try:
            done = signing_in.sign_in(phone, code, f"198.51.100.{os.getpid() % 200 + number}")
            print(done.user.id, file=out, flush=True)
        except PlazaError as error:
            print(type(error).__name__, file=out, flush=True)


if __name__ == "__main__":
    main()
