"""The caller of a request, and how a function identifies it.

``plaza.auth`` has the implementation; each API function passes it to ``http.Api``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from plaza.infra.http.limits import Quota


class Caller(NamedTuple):
    """A user, or why the token has no session (``malformed``, ``unknown``, ``unavailable``).

    Both are None for an anonymous caller. ``wait_ms`` above 0: rate limited for that time.
    ``quota`` is the rate limit's after the request; None if it was not limited.
    """

    user_id: int | None = None
    role: str | None = None
    refusal: str | None = None
    wait_ms: int = 0
    quota: Quota | None = None


Identify = Callable[[str | None, str, str], Caller]
"""Returns the caller that sends this Authorization header (None: none) from this IP address to this
route (``PUT /posts/{post_id}/likes/me``), and takes a token of its rate limit."""
