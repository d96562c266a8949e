"""The caller of a request, and how a function identifies it.

``plaza.people.auth`` has the implementation; each API function passes it to ``http.Api``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from plaza.infra.http.limits import Bucket, Quota


class Caller(NamedTuple):
    """A user, or why the token has no session (``malformed``, ``unknown``, ``unavailable``; ``no
    key``: it is a session's, and Plaza-User needs a key).

    Both are None for an anonymous caller. ``wait_ms`` above 0: rate limited for that time.
    ``quota`` is the rate limit's after the request; None if it was not limited. ``bucket``: from
    which it took its token. ``key_id``: the key of a server that sent the request for the user;
    with a role but without a user it reads what is no user's. ``signed_in_at_s``: when the session
    was opened by a sign-in, in s since 1970; 0 if that is not known.
    """

    user_id: int | None = None
    role: str | None = None
    refusal: str | None = None
    wait_ms: int = 0
    quota: Quota | None = None
    bucket: Bucket | None = None
    key_id: str | None = None
    signed_in_at_s: int = 0


Charge = Callable[[int], None]
"""Takes tokens of the caller's rate limit for work that costs more than a request. Raises
TooManyRequests before the work is done."""


def no_charge(_: int) -> None:
    """Charge nothing: for work that no request asked for."""


Identify = Callable[..., Caller]
"""Returns the caller that sends this Authorization header (None: none) from this IP address to this
route (``PUT /posts/{post_id}/likes/me``), and takes a token of its rate limit. The header
Plaza-User is a fourth argument of a request that has it."""
