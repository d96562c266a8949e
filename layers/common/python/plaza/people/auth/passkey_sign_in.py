"""Sign in with a passkey, and enroll one.

The first passkey of a user is enrolled with a code that an operator makes with the command
``make-passkey-code``, further ones in a session of a role. Challenges are in Redis only: while it
is unavailable, both fail with 503. A challenge works once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import record
from plaza.people.auth import mysql_passkeys, passkey_checks, redis_passkeys
from plaza.people.auth.hashers import describe_source
from plaza.people.auth.new_session import SignedIn, sign_in_user
from plaza.people.auth.passkey_checks import VerifiedPasskey
from plaza.people.auth.passkeys import (
    CHALLENGE_TTL_S,
    Assertion,
    NewPasskey,
    Passkey,
    PasskeyRefused,
    PasskeysAreOff,
    TooManyPasskeys,
    decode,
    hash_code,
    hash_credential,
    make_challenge,
    make_user_handle,
    read_challenge,
)
from plaza.people.auth.sessions import Opening, hash_token
from plaza.people.auth.settings import PasskeySettings, passkey_settings
from plaza.people.users import Card, User, cards, closed_users


class PasskeyChallenge(NamedTuple):
    """A challenge, the host that signs it, and the user to whom a new passkey will belong."""

    challenge: str
    rp_id: str
    expires_in_s: int
    user: Card | None


class EnrollingCaller(NamedTuple):
    """A user who enrolls a further passkey, and the token of the session."""

    user_id: int
    token: str


def issue_challenge(code: str | None, caller_id: int | None, address: str) -> PasskeyChallenge:
    """Return a new challenge. Of a new passkey the user is the one of ``code``, which is not used
    up, or else the caller. Raises PasskeysAreOff, PasskeyRefused, RedisDown, MysqlDown."""
    config = _require_settings()
    user_id = caller_id
    if code is not None:
        user_id = mysql_passkeys.find_user_of_code(hash_code(code))
        if user_id is None:
            raise _refuse(address, "code")
    challenge = make_challenge()
    redis_passkeys.store(challenge)
    user = None if user_id is None else cards.read_cards([user_id]).get(user_id)
    return PasskeyChallenge(challenge, config.rp_id, CHALLENGE_TTL_S, user)


def enroll(made: NewPasskey, name: str, by: str | EnrollingCaller, address: str) -> Passkey:
    """Store a new passkey of the user of a code, or of the caller; return it. The code works once;
    a repeat by the same device returns the stored passkey. Raises PasskeysAreOff, PasskeyRefused,
    TooManyPasskeys; RedisDown and MysqlDown, after which the challenge works again."""
    config = _require_settings()
    with _used_challenge(made.client_data, address) as challenge:
        verified = _verify_new(made, challenge, config, address)
        stored = mysql_passkeys.read(hash_credential(verified.credential_id))
        if stored is not None and stored.public_key == verified.public_key:
            return stored
        if isinstance(by, str):
            code_sha256, session_sha256 = hash_code(by), None
            user_id = mysql_passkeys.find_user_of_code(code_sha256)
        else:
            code_sha256, session_sha256 = None, hash_token(by.token)
            user_id = by.user_id
        if user_id is None:
            raise _refuse(address, "code")
        passkey = Passkey(
            verified.credential_id,
            user_id,
            verified.public_key,
            verified.sign_count,
            name,
            sql.from_us(clock.now_us()),
            None,
            verified.may_be_synced,
        )
        is_stored = mysql_passkeys.insert(
            passkey, code_sha256=code_sha256, session_sha256=session_sha256
        )
        if is_stored is None:
            raise _refuse(address, "code" if code_sha256 else "session", user_id)
        if not is_stored:
            raise TooManyPasskeys
    record("passkey_enrolled", user_id=user_id, passkey_id=passkey.passkey_id)
    return passkey


def sign_in(assertion: Assertion, address: str, user_agent: str | None) -> SignedIn:
    """Exchange the signature of a challenge for a session of 12 hours. Raises PasskeysAreOff,
    PasskeyRefused; RedisDown and MysqlDown, after which the challenge works again."""
    config = _require_settings()
    with _used_challenge(assertion.client_data, address) as challenge:
        passkey = mysql_passkeys.read(hash_credential(decode(assertion.credential_id)))
        if passkey is None:
            raise _refuse(address, "unknown")
        handle = assertion.user_handle
        if handle is not None and decode(handle) != make_user_handle(passkey.user_id):
            raise _refuse(address, "user", passkey.user_id)
        try:
            sign_count = passkey_checks.verify_assertion(assertion, passkey, challenge, config)
        except PasskeyRefused as error:
            raise _refuse(address, "signature", passkey.user_id) from error
        card = cards.read_cards([passkey.user_id]).get(passkey.user_id)
        if card is not None:
            user: User | None = User(card.id, card.nickname, card.avatar)
        else:
            user = closed_users.reopen("id", passkey.user_id)
        if user is None:
            raise _refuse(address, "erased", passkey.user_id)
        opening = Opening.by("passkey", user_agent)

        def work(cursor: Cursor) -> SignedIn | None:
            counts = passkey.sign_count, sign_count
            if not mysql_passkeys.mark_used(cursor, passkey.sha256, *counts):
                return None
            return sign_in_user(user, opening, cursor)

        signed_in = mysql.run_in_transaction(work)
        if signed_in is None:
            raise _refuse(address, "used", passkey.user_id)
    record("signed_in", {"signed_in": 1}, user_id=user.id, method="passkey")
    return signed_in


def _verify_new(
    made: NewPasskey, challenge: str, config: PasskeySettings, address: str
) -> VerifiedPasskey:
    try:
        return passkey_checks.verify_new(made, challenge, config)
    except PasskeyRefused as error:
        raise _refuse(address, "attestation") from error


def _require_settings() -> PasskeySettings:
    config = passkey_settings()
    if not config.is_on:
        raise PasskeysAreOff("This deployment has no console origin; see docs/console.md.")
    return config


@contextmanager
def _used_challenge(client_data: str, address: str) -> Iterator[str]:
    """Use up the challenge that a device signed for the block, which gets it; after an outage it
    works again. Raises PasskeyRefused, RedisDown."""
    challenge = read_challenge(client_data)
    if not redis_passkeys.use(challenge):
        raise _refuse(address, "challenge")
    try:
        yield challenge
    except PasskeyRefused:
        raise
    except BaseException:
        with suppress(RedisDown):
            redis_passkeys.release(challenge)
        raise


def _refuse(address: str, reason: str, user_id: int | None = None) -> PasskeyRefused:
    """Record a refusal; return the error to raise."""
    record(
        "passkey_refused",
        {"passkeys_refused": 1},
        reason=reason,
        user_id=user_id,
        **describe_source(address),
    )
    return PasskeyRefused()
