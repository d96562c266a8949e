"""Errors that clients get as problem+json. Contexts derive their own errors from these.

    PlazaError 500
    +-- BadInput 400          +-- Conflict 409
    +-- Unauthenticated 401   +-- Gone 410
    +-- Forbidden 403         +-- TooManyRequests 429
    +-- NotFound 404          +-- Unavailable 503
    +-- MethodNotAllowed 405      +-- UnknownProtocol, Busy, SwitchedOff

``slug`` is the end of the problem's ``type`` and never changes; the text is for people.
"""

from __future__ import annotations

from typing import Any, ClassVar


class PlazaError(Exception):
    """Base of all errors that are returned to a client."""

    status: ClassVar[int] = 500
    slug: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"
    example: ClassVar[str] = "The server failed; the error was logged."
    """The ``detail`` in the contract, and of an error that is raised without one."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.example)


class BadInput(PlazaError):
    """The request is invalid; ``field`` names the invalid part.

    ``errors`` are the invalid fields as clients get them: the path of each (``body.<field>`` unless
    ``path`` says otherwise), a code that never changes, and a text for people. docs/problems.md has
    the codes.
    """

    status = 400
    slug = "invalid-request"
    title = "Invalid request"

    def __init__(
        self, field: str, detail: str, *, code: str = "invalid", path: str | None = None
    ) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.errors: list[dict[str, Any]] = [
            {"field": path or f"body.{field}", "code": code, "detail": detail}
        ]


class Unauthenticated(PlazaError):
    """The request has no valid session."""

    status = 401
    slug = "unauthenticated"
    title = "Authentication required"
    example = "Send the header `Authorization: Bearer <token>`."
    challenge: ClassVar[str] = "Bearer"
    """The header WWW-Authenticate (RFC 9110, 15.5.2; RFC 6750, 3)."""


class InvalidToken(Unauthenticated):
    """The token has no session, or is no key."""

    challenge = 'Bearer error="invalid_token"'


class NotFound(PlazaError):
    """The resource does not exist."""

    status = 404
    slug = "not-found"
    title = "Not found"


class Gone(PlazaError):
    """The resource was deleted."""

    status = 410
    slug = "gone"
    title = "Deleted"


class Unavailable(PlazaError):
    """A dependency is unavailable; a retry after ``retry_after_s`` seconds may succeed.

    ``step``: of a batch of messages, the step that failed; those before it are done
    (infra.queues.retries).
    """

    step: str | None = None

    status = 503
    slug = "unavailable"
    title = "Temporarily unavailable"
    example = "MySQL is unavailable; try again."

    def __init__(self, detail: str, retry_after_s: int = 2) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class UnknownProtocol(Unavailable):
    """A message or a key has a protocol version that this version of Plaza cannot read."""


class Busy(Unavailable):
    """The dependency works, but a row or table is locked; a retry in a moment may succeed."""


class SwitchedOff(Unavailable):
    """An operator switched off what the request needs."""

    slug = "switched-off"
    title = "Switched off"
    example = "Plaza is in read-only mode."

    def __init__(self, detail: str, retry_after_s: int = 30) -> None:
        super().__init__(detail, retry_after_s)


class MethodNotAllowed(PlazaError):
    """The path exists, but not with this method. ``allow`` names its methods."""

    status = 405
    slug = "method-not-allowed"
    title = "Method not allowed"

    def __init__(self, detail: str, *, allow: str) -> None:
        super().__init__(detail)
        self.allow = allow


class Forbidden(PlazaError):
    """The caller has a session but lacks the permission."""

    status = 403
    slug = "forbidden"
    title = "Forbidden"
    example = "This request requires the role admin."


class SignInTooOld(Forbidden):
    """The session has the permission, but its sign-in is too long ago for this request."""

    slug = "sign-in-too-old"
    title = "Sign-in too old"
    example = "Sign in again: this request needs a sign-in of the last 300 s."


class Conflict(PlazaError):
    """The request conflicts with the state of the resource; each rule has its own ``slug``."""

    status = 409
    slug = "conflict"
    title = "Conflict"


class ChangedMeanwhile(PlazaError):
    """The resource has none of the versions that ``If-Match`` names."""

    status = 412
    slug = "changed-meanwhile"
    title = "Changed meanwhile"
    example = "The post was changed since you read it. Read it again."


class TooManyRequests(PlazaError):
    """The caller exceeded a rate limit; retry after ``retry_after_s`` seconds."""

    status = 429
    slug = "too-many-requests"
    title = "Too many requests"
    example = "The rate limit is exceeded; retry after 2 s."

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
