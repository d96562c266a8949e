"""Sessions with opaque tokens, in MySQL and cached in Redis; sign-in with a code sent by SMS.

Owns the table session and the Redis keys listed in ``redis_sessions``, ``redis_challenges`` and
``sms``. Each API function passes ``caller_identity.identify`` to ``http.Api``.
"""

from plaza.auth.sessions import Session, parse_bearer

__all__ = [
    "Session",
    "export",
    "new_session",
    "operate_server_keys",
    "parse_bearer",
    "server_keys",
    "session_end",
]
