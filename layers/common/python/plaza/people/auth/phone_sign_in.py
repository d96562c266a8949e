"""Sign in with a code that is sent to a phone. The first sign-in creates the user.

The client that requests a code gets a challenge, without which the code cannot be tried: other
clients cannot burn a phone's codes. No response discloses whether a phone has a user. Challenges
and limits are in Redis only: while it is unavailable, sign-in fails with 503.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from plaza.infra.http import limits
from plaza.infra.http.limits import Attempt, Window
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.observability import record
from plaza.people.auth import redis_challenges, sms
from plaza.people.auth.codes import (
    CODE_TTL_S,
    SENDS_PER_PHONE,
    SENDS_PER_PHONE_AND_NETWORK,
    CodeBudgetExhausted,
    CodeRefused,
    KeyedHasher,
    TooSoon,
    hash_challenge,
    make_code,
)
from plaza.people.auth.hashers import all_hashers, current_hasher, describe_source, find_hasher
from plaza.people.auth.new_session import SignedIn, sign_in_user
from plaza.people.auth.phones import parse_phone, require_destination
from plaza.people.auth.sessions import Opening
from plaza.people.auth.settings import auth_settings
from plaza.people.users.sign_up import link_phone, sign_up


class IssuedChallenge(NamedTuple):
    """A challenge, and how long its code is valid."""

    challenge: str
    expires_in_s: int


def send_code(phone_input: str, address: str) -> IssuedChallenge:
    """Send a code to a phone. Raises BadInput, TooSoon, CodeBudgetExhausted, RedisDown, SmsDown."""
    phone, hasher = parse_phone(phone_input), current_hasher()
    require_destination(phone, auth_settings().sms_countries, auth_settings().sms_number_types)
    _admit_send(phone, address, hasher)
    challenge, code = hasher.make_challenge(), make_code()
    redis_challenges.store(
        hash_challenge(challenge),
        hasher.hash_code(challenge, code),
        hasher.encrypt_phone(challenge, phone),
    )
    sms.sender().send(phone, f"{code} is your Plaza code. It works for {CODE_TTL_S // 60} minutes.")
    record("code_sent", {"codes_sent": 1})
    return IssuedChallenge(challenge, CODE_TTL_S)


def sign_in(challenge: str, code: str, address: str, user_agent: str | None = None) -> SignedIn:
    """Exchange a challenge and its code for a session. The code works once.

    Raises CodeRefused; RedisDown, MysqlDown and SwitchedOff, after which the code still works.
    """
    with _used_code(challenge, code, address) as phone:
        signed_in = sign_in_user(sign_up(phone), Opening.by("code", user_agent))
    with suppress(RedisDown):  # the next code then counts as one to a new phone
        hasher = find_hasher(challenge)
        redis_challenges.mark_sign_in(hasher.hash_phone_and_network(phone, address))
    record("signed_in", {"signed_in": 1}, user_id=signed_in.user.id, method="code")
    return signed_in


def link(user_id: int, challenge: str, code: str, address: str) -> None:
    """Give a signed-in user the phone of a challenge. The code works once.

    Raises CodeRefused, PhoneTaken, UserMissing; RedisDown and MysqlDown, after which the code still
    works.
    """
    with _used_code(challenge, code, address) as phone:
        link_phone(user_id, phone)
    record("phone_linked", user_id=user_id)


@contextmanager
def _used_code(challenge: str, code: str, address: str) -> Iterator[str]:
    """Use up a code for the block, which gets its phone; after an error the code works again.
    Raises CodeRefused, TooSoon, RedisDown."""
    hasher, sha = find_hasher(challenge), hash_challenge(challenge)
    attempt = _admit_try(address)
    checked = redis_challenges.check(sha, hasher.hash_code(challenge, code))
    encrypted, phone = checked.encrypted_phone, None
    if checked.is_right or encrypted is None:  # no guess
        with suppress(RedisDown):
            limits.withdraw(attempt)
    if encrypted is not None and hasher.made(challenge):  # else the secret was rotated twice
        phone = hasher.decrypt_phone(challenge, encrypted)
    if not checked.is_right or phone is None:
        record("code_refused", {"codes_refused": 1}, **describe_source(address, phone))
        raise CodeRefused
    try:
        yield phone
    except BaseException:
        with suppress(RedisDown):
            redis_challenges.release(sha)
        raise


def _admit_try(address: str) -> Attempt:
    """Count a try of a code against the wrong ones of its network; return the attempt, which is
    withdrawn if the code is right. Each code has five tries, so without this a network could guess
    five times as often as it may request codes. Raises TooSoon, RedisDown."""
    attempt = Attempt("wrong-codes-from", current_hasher().hash_network(address))
    max_wrong = max(1, auth_settings().max_codes_per_network_per_hour // 2)
    wait_ms = limits.admit(attempt, (Window(3600, max_wrong),))
    if wait_ms:
        record(
            "attempt_limited",
            {"attempts_limited": 1},
            what=attempt.action,
            **describe_source(address),
        )
        wait_s = math.ceil(wait_ms / 1000)
        raise TooSoon(
            f"Too many wrong codes were tried; retry after {wait_s} s.", retry_after_s=wait_s
        )
    return attempt


def _admit_send(phone: str, address: str, hasher: KeyedHasher) -> None:
    """Count a code against the limits, or raise TooSoon, CodeBudgetExhausted or RedisDown.

    A phone that signed in from this network before has separate limits, which requests from other
    networks and for other phones cannot exhaust.
    """
    pair = hasher.hash_phone_and_network(phone, address)
    sends: list[tuple[Attempt, Sequence[Window]]] = [
        (Attempt("codes-to-phone-at", pair), SENDS_PER_PHONE_AND_NETWORK)
    ]
    is_known = any(
        redis_challenges.has_signed_in(each.hash_phone_and_network(phone, address))
        for each in all_hashers()
    )
    if not is_known:
        per_network = (Window(3600, auth_settings().max_codes_per_network_per_hour),)
        sends.append((Attempt("codes-from", hasher.hash_network(address)), per_network))
        sends.append((Attempt("codes-to", hasher.hash_phone(phone)), SENDS_PER_PHONE))
    budget = Attempt("codes", "known" if is_known else "new")
    sends.append((budget, (Window(3600, auth_settings().max_codes_per_hour),)))
    for index, (attempt, windows) in enumerate(sends):
        wait_ms = limits.admit(attempt, windows)
        if not wait_ms:
            continue
        with suppress(RedisDown):  # a refused attempt does not count
            for earlier, _ in sends[:index]:
                limits.withdraw(earlier)
        wait_s = math.ceil(wait_ms / 1000)
        if attempt is budget:
            record("code_budget_exhausted", {"code_budget_refusals": 1}, what=budget.subject)
            raise CodeBudgetExhausted(
                f"No more codes can be sent now; retry after {wait_s} s.", retry_after_s=wait_s
            )
        source = describe_source(address, phone)
        record("attempt_limited", {"attempts_limited": 1}, what=attempt.action, **source)
        raise TooSoon(
            f"Too many codes were requested; retry after {wait_s} s.", retry_after_s=wait_s
        )
