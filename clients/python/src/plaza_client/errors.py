"""The errors of this package.

    PlazaError
    ├── ProblemError    the API refused the request: an RFC 9457 problem
    │   └── problems    one class for each kind: SoldOut, NotFound, ...
    ├── NetworkError    there is no usable response: connection, timeout, not JSON
    └── WebhookVerificationError    a request is not the webhook that it claims to be

A PlazaError that is none of them is a mistake of the caller. No request was sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from plaza_client.models import FieldProblem


class PlazaError(Exception):
    """Base of all errors of this package."""

    def __init__(self, message: str, request_id: str | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id
        """Id of the request in the logs of the API; None when it is unknown."""


class NetworkError(PlazaError):
    """There is no usable response. The API may have carried out the request."""


class WebhookVerificationError(PlazaError):
    """A signature is missing or wrong, or the time of a webhook is too old or too new."""


class ProblemError(PlazaError):
    """The API refused the request."""

    kinds: ClassVar[dict[str, type[ProblemError]]] = {}
    """Slug -> the class of its problems."""

    def __init_subclass__(cls, *, slug: str | None = None) -> None:
        if slug is not None:
            ProblemError.kinds[slug] = cls

    def __init__(
        self,
        status: int,
        body: object,
        headers: Mapping[str, str],
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        problem: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
        self.title = str(problem.get("title") or f"HTTP {status}")
        self.detail = str(problem.get("detail") or self.title)
        super().__init__(self.detail, request_id)
        self.type = str(problem.get("type") or "about:blank")
        """URI of the kind of problem, in the documentation; ``about:blank`` if there is none."""
        self.slug = slug_of(problem)
        """The kind of problem: ``not-found``, ``sold-out``. A newer API may send others."""
        self.status = status
        self.errors: Sequence[FieldProblem] = problem.get("errors") or ()
        """The invalid fields of a 400; otherwise empty."""
        self.headers = headers
        self.retry_after_s = retry_after_s
        """Seconds to wait before the request is sent again; None without a ``Retry-After``."""

    def field(self, name: str) -> str | None:
        """Return what is wrong with a field of the request's body, or None."""
        details = (e["detail"] for e in self.errors if e["field"] == f"body.{name}")
        return next(details, None)


_OF_GATEWAY = {
    403: "forbidden",
    404: "not-found",
    429: "too-many-requests",
    500: "internal",
    503: "unavailable",
}
"""Status -> the kind of a refusal of API Gateway itself, whose body is ``{"message": ...}``."""


def slug_of(problem: Mapping[str, Any]) -> str:
    """Return the kind of a problem. An older API sends no ``slug``; ``type`` ends with it."""
    slug = problem.get("slug") or re.split("[/#]", str(problem.get("type") or "about:blank"))[-1]
    return str(slug)


def make_problem(
    status: int,
    body: object,
    headers: Mapping[str, str],
    request_id: str | None,
    retry_after_s: float | None,
) -> ProblemError:
    """Return the error of a response, of the class of its slug if there is one."""
    if isinstance(body, Mapping) and set(body) == {"message"}:
        body = {"slug": _OF_GATEWAY.get(status), "detail": body["message"]}
    slug = slug_of(body) if isinstance(body, Mapping) else ""
    made = ProblemError.kinds.get(slug, ProblemError)
    return made(status, body, headers, request_id, retry_after_s)
