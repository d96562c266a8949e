"""Signing in: a code to the phone, a session for the code. The first time makes the user.

Nothing here tells whether a phone has a user. Codes and limits are in Redis only: while it is
away, nobody can sign in anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from plaza.auth import open_session, redis_codes, sms
from plaza.auth.codes import (
    ASKING,
    CODE_TTL_S,
    TRYING_BY_NETWORK,
    TRYING_BY_PHONE,
    CodeRefused,
    Seal,
    TooSoon,
    make_code,
)
from plaza.auth.phones import read_phone
from plaza.infra import limits, secrets
from plaza.infra.limits import Attempt, Window
from plaza.infra.observability import record
from plaza.infra.redis import RedisDown
from plaza.infra.settings import BadSettings, settings
from plaza.users import User, sign_up


class SignedIn(NamedTuple):
    """A session's token, how long it works unless it is used, and whose it is."""

    token: str
    expires_in_s: int
    user: User


def send_code(written_phone: str, address: str) -> int:
    """Send a new code to a phone, for a request from ``address``; how many seconds it works.

    Raises BadInput, TooSoon, RedisDown, SmsDown.
    """
    phone, seal = read_phone(written_phone), _seal()
    who = seal.of_phone(phone)
    _admit(
        (Attempt("codes-from", seal.of_network(address)), ASKING),
        (Attempt("codes-to", who), ASKING),
    )
    code = make_code()
    redis_codes.keep(who, seal.of_code(phone, code))
    sms.sender().send(phone, f"{code} is your Plaza code. It works for {CODE_TTL_S // 60} minutes.")
    record("code_sent", {"codes_sent": 1})
    return CODE_TTL_S


def sign_in(written_phone: str, code: str, address: str) -> SignedIn:
    """A session for the code that was sent to a phone. The code works once.

    Raises BadInput, TooSoon, CodeRefused; RedisDown and MysqlDown, after which it still works.
    """
    phone, seal = read_phone(written_phone), _seal()
    who, mac = seal.of_phone(phone), seal.of_code(phone, code)
    _admit(
        (Attempt("tries-from", seal.of_network(address)), TRYING_BY_NETWORK),
        (Attempt("tries-at", who), TRYING_BY_PHONE),
    )
    used = redis_codes.check(who, mac)
    if used is None:
        record("code_refused", {"codes_refused": 1})
        raise CodeRefused("It is wrong, was used, or is too old: ask for another")
    try:
        user = sign_up(phone)
        token = open_session(user.id, user.role)
    except BaseException:
        with suppress(RedisDown):
            redis_codes.put_back(who, mac, used)
        raise
    record("signed_in", {"signed_in": 1}, user_id=user.id)
    return SignedIn(token, settings().session_ttl_s, user)


def _admit(*tries: tuple[Attempt, Sequence[Window]]) -> None:
    """Let them all happen or none: what is refused counts nowhere. Raises TooSoon, RedisDown."""
    for place, (attempt, windows) in enumerate(tries):
        wait_ms = limits.admit(attempt, windows)
        if wait_ms:
            with suppress(RedisDown):
                for earlier, _ in tries[:place]:
                    limits.take_back(earlier)
            record("attempt_limited", {"attempts_limited": 1}, what=attempt.what)
            wait_s = math.ceil(wait_ms / 1000)
            raise TooSoon(f"Too often: again in {wait_s} s", retry_after_s=wait_s)


def _seal() -> Seal:
    secret_id = settings().auth_secret_id
    if secret_id is None:
        raise BadSettings("PLAZA_AUTH_SECRET_ID is not set")
    return Seal(secrets.read(secret_id))
