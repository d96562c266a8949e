"""Open sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from plaza.infra.runtime import clock
from plaza.people.auth import mysql_store
from plaza.people.auth.sessions import (
    MAX_PASSKEY_SESSION_S,
    OPERATE,
    Opening,
    hash_token,
    make_token,
)
from plaza.people.auth.settings import auth_settings

if TYPE_CHECKING:
    from plaza.infra.mysql.mysql import Cursor
    from plaza.people.users import User


class SignedIn(NamedTuple):
    """A new session: its token, the seconds without use after which it ends, and its user."""

    token: str
    expires_in_s: int
    user: User


def sign_in_user(user: User, opening: Opening, cursor: Cursor | None = None) -> SignedIn:
    """Open a session for a user who signs in, in the transaction of ``cursor``, if there is one.
    One that a passkey opens ends after 12 hours, used or not. One statement. Raises MysqlDown."""
    config = auth_settings()
    max_s = config.session_max_age_s
    if opening.method == "passkey":
        max_s = min(max_s, MAX_PASSKEY_SESSION_S)
    [token] = open_sessions([user.id], max_s, opening, cursor)
    return SignedIn(token, min(config.session_ttl_s, max_s), user)


def open_session(user_id: int, max_s: int | None = None, opening: Opening = OPERATE) -> str:
    """Open a session; return its token. ``max_s``: it ends after so many seconds, used or not.
    One statement. Raises MysqlDown."""
    return open_sessions([user_id], max_s, opening)[0]


def open_sessions(
    user_ids: Sequence[int],
    max_s: int | None = None,
    opening: Opening = OPERATE,
    cursor: Cursor | None = None,
) -> list[str]:
    """Open a session for each user, as ``open_session``; return the tokens in order.
    One statement. Raises MysqlDown."""
    max_age_s = auth_settings().session_max_age_s
    max_s = max_age_s if max_s is None else min(max_s, max_age_s)
    ttl_s = min(auth_settings().session_ttl_s, max_s)
    expires_at_s = int(clock.now_s()) + ttl_s
    tokens = [make_token() for _ in user_ids]
    mysql_store.insert(
        [
            (hash_token(token), user_id, expires_at_s)
            for token, user_id in zip(tokens, user_ids, strict=True)
        ],
        opening,
        age_s=max_age_s - max_s,
        cursor=cursor,
    )
    return tokens
