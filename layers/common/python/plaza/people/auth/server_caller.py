"""Identify a request with a key of a server: which key, and for which user.

This process remembers keys and users for a minute (``MAX_KEY_AGE_S``). A request of both costs one
round trip, which takes from the rate limit of the key; one of a key or a user that it does not
remember costs a statement more each.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from plaza.core.switches import current as current_switches
from plaza.infra.http.callers import Caller
from plaza.infra.http.limits import Bucket, anonymous_bucket
from plaza.infra.http.requests import MAX_ID, is_id
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import BadInput, Forbidden, Unavailable
from plaza.infra.runtime.observability import error_fields, record
from plaza.infra.runtime.process import LocalCache
from plaza.people.auth import mysql_server_keys
from plaza.people.auth.server_keys import (
    BURST,
    FOR_NO_USER,
    MAX_KEY_AGE_S,
    MAX_KEY_AGE_WITHOUT_MYSQL_S,
    MODERATORS,
    PresentedKey,
    ServerKey,
    parse_server_key,
    scope_of,
)
from plaza.people.users import roles, sign_up
from plaza.people.users.identities import parse_identity

HEADER = "Plaza-User"
_PATH = f"header.{HEADER}"
Take = Callable[[Bucket, Caller], Caller]
"""Takes a token of a bucket; returns the caller limited by it. One round trip."""


class _Known(NamedTuple):
    key: ServerKey
    read_s: float  # monotonic


_keys: LocalCache[str, _Known] = LocalCache(max_entries=1_000)
_users: LocalCache[str, int] = LocalCache(max_entries=10_000, ttl_s=MAX_KEY_AGE_S)
_roles: LocalCache[int, str] = LocalCache(max_entries=1_000, ttl_s=MAX_KEY_AGE_S)


def identify(header: str, address: str, route: str, acts_for: str | None, take: Take) -> Caller:
    """Return the caller of a request with a key in its Authorization header, and the rate limit of
    the key. ``acts_for``: the header Plaza-User.

    Raises Forbidden if the key lacks the scope of the route, or moderates for a user without the
    role; BadInput for a user that does not exist; Unavailable.
    """
    presented = parse_server_key(header)
    if presented is None:
        return take(anonymous_bucket(address), Caller(refusal="malformed"))
    known = _keys.get(presented.key_id)
    if known is None:
        # The id may be invented, so its read of MySQL is limited for the network.
        limited = take(anonymous_bucket(address), Caller())
        if limited.wait_ms:
            return limited
    try:
        key = _find_key(presented, known)
    except Unavailable as error:
        record("session_unchecked", {"sessions_unchecked": 1}, **error_fields(error))
        return Caller(refusal="unavailable")
    if key is None or not key.admits(presented):
        # A wrong secret of a known key takes nothing from the rate of the key.
        refused = Caller(refusal="unknown")
        return refused if known is None else take(anonymous_bucket(address), refused)
    caller = take(_bucket_of(key), Caller(key_id=key.key_id))
    if caller.wait_ms:
        return caller
    scope = scope_of(route)
    if scope not in key.scopes:
        raise Forbidden(f"This key lacks the scope `{scope}`.")
    if scope == "events":
        return caller._replace(role="admin")
    if route in FOR_NO_USER:
        return caller._replace(role="server")
    if acts_for is None:
        return caller
    user_id = _find_user(acts_for, may_create=scope == "act")
    if scope != "moderate":
        return caller._replace(user_id=user_id, role="user")
    if user_id is None or _find_role(user_id) not in MODERATORS:
        raise Forbidden(f"{HEADER} names a user who is no moderator.")
    return caller._replace(user_id=user_id, role="moderator")


def _bucket_of(key: ServerKey) -> Bucket:
    switches = current_switches()
    bucket = Bucket("server-keys", key.key_id, key.requests_per_s, key.requests_per_s * BURST)
    return bucket.scaled(min(switches.reads_factor, switches.writes_factor))


def _find_key(presented: PresentedKey, known: _Known | None) -> ServerKey | None:
    """Return the key of an id, at most ``MAX_KEY_AGE_S`` old, older without MySQL. Its use is
    stored with each read. Raises MysqlDown without a key that may be used."""
    now_s = clock.monotonic_s()
    if known is not None and now_s - known.read_s < MAX_KEY_AGE_S:
        return known.key
    try:
        key = mysql_server_keys.read(presented.key_id)
    except MysqlDown:
        if known is not None and now_s - known.read_s < MAX_KEY_AGE_WITHOUT_MYSQL_S:
            return known.key
        raise
    if key is None:
        _keys.drop(presented.key_id)
        return None
    _keys.put(presented.key_id, _Known(key, now_s))
    if key.admits(presented):
        with suppress(Unavailable):
            mysql_server_keys.mark_used(key.key_id)
    return key


def _find_user(acts_for: str, *, may_create: bool) -> int | None:
    """Return the user that a header names: by id, or by issuer and subject. An identity that has no
    user gets one, or None if it may not. Raises BadInput, MysqlDown; for a new user RedisDown,
    SwitchedOff."""
    user_id = _users.get(acts_for)
    if user_id is not None:
        return user_id
    if is_id(acts_for):
        if int(acts_for) > MAX_ID or not sign_up.exists(int(acts_for)):
            raise BadInput(
                HEADER, "names a user that does not exist", code="unknown-id", path=_PATH
            )
        user_id = int(acts_for)
    else:
        try:
            identity = parse_identity(acts_for)
        except ValueError:
            detail = "is neither the id of a user nor an issuer, | and a subject"
            raise BadInput(HEADER, detail, code="wrong-form", path=_PATH) from None
        user = sign_up.find_identity(*identity)
        if user is None and not may_create:
            return None
        user_id = (user or sign_up.sign_up_identity(*identity)).id
    _users.put(acts_for, user_id)
    return user_id


def _find_role(user_id: int) -> str:
    """Return the role of a user, at most ``MAX_KEY_AGE_S`` old. Raises UserMissing, MysqlDown."""
    return _roles.get_or_load(user_id, lambda: roles.read_role(user_id))
