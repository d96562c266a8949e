"""Sessions and challenges: one key each."""

import hashlib
import time

from bench.scripts.cases import Case, prepare_nothing
from plaza.people.auth import redis_challenges, redis_sessions
from plaza.people.auth.sessions import Session

_CHALLENGE = hashlib.sha256(b"challenge").hexdigest()
_TOKEN = hashlib.sha256(b"token").digest()
_MAC = "0" * 64
_WRONG_MAC = "1" * 64


def _store_challenge() -> None:
    redis_challenges.store(_CHALLENGE, _MAC, "x" * 200)


def _store_session(run: int) -> None:
    now_s = int(time.time())
    session = Session(10**18, "user", now_s + 86_400, now_s + 86_400, now_s)
    redis_sessions.store(_TOKEN, session)


CASES = [
    Case("a challenge", redis_challenges._STORE, prepare_nothing, lambda run: _store_challenge()),
    Case(
        "a wrong code",
        redis_challenges._CHECK,
        lambda harness: _store_challenge(),
        lambda run: redis_challenges.check(_CHALLENGE, _WRONG_MAC),
    ),
    Case("a session", redis_sessions._STORE, prepare_nothing, _store_session),
]
