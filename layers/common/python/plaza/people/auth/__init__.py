"""Sessions with opaque tokens, in MySQL and cached in Redis; sign-in with a code sent by SMS.

Operators sign in with passkeys. Owns the tables session, passkey and passkey_code, and the Redis
keys listed in ``redis_sessions``, ``redis_challenges``, ``redis_passkeys`` and ``sms``. Each API
function passes ``caller_identity.identify`` to ``http.Api``.
"""

from plaza.people.auth.sessions import Session, parse_bearer

__all__ = [
    "Session",
    "export",
    "new_session",
    "operate_passkeys",
    "operate_server_keys",
    "own_sessions",
    "parse_bearer",
    "request_erasure",
    "server_keys",
    "session_end",
]
