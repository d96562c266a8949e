"""Open sessions."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.auth import mysql_store
from plaza.auth.sessions import hash_token, make_token
from plaza.auth.settings import auth_settings
from plaza.infra.runtime import clock


def open_session(user_id: int) -> str:
    """Open a session; return its token. One statement. Raises MysqlDown."""
    return open_sessions([user_id])[0]


def open_sessions(user_ids: Sequence[int]) -> list[str]:
    """Open a session for each user; return the tokens in order. One statement. Raises MysqlDown."""
    ttl_s = min(auth_settings().session_ttl_s, auth_settings().session_max_age_s)
    expires_at_s = int(clock.now_s()) + ttl_s
    tokens = [make_token() for _ in user_ids]
    mysql_store.insert(
        [
            (hash_token(token), user_id, expires_at_s)
            for token, user_id in zip(tokens, user_ids, strict=True)
        ]
    )
    return tokens
