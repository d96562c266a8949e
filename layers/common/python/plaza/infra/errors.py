"""What can be wrong, by what a client may do about it. Contexts derive their own nouns from these.

``slug`` becomes the problem's ``type`` and never changes; the message is for people.
"""

from __future__ import annotations

from typing import ClassVar


class PlazaError(Exception):
    """Base of all that is told to a client."""

    status: ClassVar[int] = 500
    slug: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"


class BadInput(PlazaError):
    """The request can't be meant like this; ``field`` names what is wrong."""

    status = 400
    slug = "invalid-request"
    title = "Invalid request"

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field


class Unauthenticated(PlazaError):
    """No session, or one that ended."""

    status = 401
    slug = "unauthenticated"
    title = "Authentication required"


class NotFound(PlazaError):
    """It isn't there, and never was as far as anybody can tell."""

    status = 404
    slug = "not-found"
    title = "Not found"


class Gone(PlazaError):
    """It was there and was deleted."""

    status = 410
    slug = "gone"
    title = "Deleted"


class Unavailable(PlazaError):
    """It would work later: try again after ``retry_after_s`` seconds."""

    status = 503
    slug = "unavailable"
    title = "Temporarily unavailable"

    def __init__(self, detail: str, retry_after_s: int = 2) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class UnknownProtocol(Unavailable):
    """A message or a key was written by a version of Plaza that this one does not know."""


class Busy(Unavailable):
    """It works, and others are using it: try again in a moment."""


class MethodNotAllowed(PlazaError):
    """The path is right and the method isn't."""

    status = 405
    slug = "method-not-allowed"
    title = "Method not allowed"


class Forbidden(PlazaError):
    """The caller is known, and this is not theirs to do."""

    status = 403
    slug = "forbidden"
    title = "Forbidden"


class Conflict(PlazaError):
    """A rule says no; each rule has its own ``slug``."""

    status = 409
    slug = "conflict"
    title = "Conflict"


class TooManyRequests(PlazaError):
    """Too often: again after ``retry_after_s`` seconds."""

    status = 429
    slug = "too-many-requests"
    title = "Too many requests"

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s
