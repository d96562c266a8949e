"""Sign in with an ID token of an issuer that the deployment names. The first sign-in of a subject
creates the user.

A token works once: what a browser's history, a log or a proxy keeps of it opens no session. Used
tokens are in Redis only: while it is unavailable, sign-in fails with 503.
"""

from __future__ import annotations

from contextlib import suppress

from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.observability import record
from plaza.people.auth import id_tokens, redis_id_tokens
from plaza.people.auth.issuers import IdTokenRefused
from plaza.people.auth.new_session import SignedIn, sign_in_user
from plaza.people.auth.sessions import Opening
from plaza.people.users.sign_up import sign_up_identity


def sign_in(token: str, nonce: str | None, user_agent: str | None = None) -> SignedIn:
    """Exchange an ID token for a session. The token works once.

    Raises IdTokenRefused; RedisDown, MysqlDown, SecretsDown and SwitchedOff, after which the token
    still works.
    """
    try:
        verified = id_tokens.verify(token, nonce)
        if not redis_id_tokens.use(verified.name, verified.expires_in_s):
            raise IdTokenRefused("The ID token was used before; get a new one from its issuer.")
    except IdTokenRefused as error:
        record("id_token_refused", {"id_tokens_refused": 1}, reason=str(error))
        raise
    try:
        user = sign_up_identity(verified.issuer, verified.subject)
        signed_in = sign_in_user(user, Opening.by("id_token", user_agent))
    except BaseException:
        with suppress(RedisDown):
            redis_id_tokens.release(verified.name)
        raise
    signed = {"user_id": signed_in.user.id, "method": "id_token", "issuer": verified.issuer}
    record("signed_in", {"signed_in": 1}, **signed)
    return signed_in
