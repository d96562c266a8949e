"""One call: its request, its attempts, and the delays between them, without any I/O.

A call is a generator. It yields a request, or a number of seconds to wait; the client sends the
one, waits for the other, and resumes the generator with the response or the error. So both
clients, synchronous and asynchronous, have the same rules.
"""

from __future__ import annotations

import json
import math
import random
import re
import secrets
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx
from typing_extensions import TypedDict

from plaza_client import problems  # it registers the kinds of problems
from plaza_client.errors import NetworkError, PlazaError, ProblemError, make_problem
from plaza_client.version import __version__

TIMEOUT_S = 15.0
ORDER_POLL_S = 1.0
ORDERS = "/vouchers/{voucher_id}/orders"
_RETRIED = frozenset({429, 502, 503, 504})
_IDEMPOTENT = frozenset({"GET", "PUT", "DELETE"})
# POSTs without a key that can be repeated: a query, and an order that a buyer has once.
_REPEATABLE_POSTS = frozenset({"/reactions/query", ORDERS})
_KEY = re.compile(r"[!-~]{1,128}")
_MAX_AGE = re.compile(r"max-age=(\d+)")


@dataclass(frozen=True, slots=True)
class Retry:
    """When a request that can be repeated is sent again."""

    attempts: int = 4
    """Maximum number of attempts, the first one included."""
    base_s: float = 0.2
    """Upper bound of the delay before the second attempt; it doubles with each attempt."""
    max_delay_s: float = 20.0
    """Upper bound of each delay. A longer ``Retry-After`` ends the retries."""

    def __post_init__(self) -> None:
        _check_number("attempts", self.attempts, 1)
        _check_number("base_s", self.base_s, 0)
        _check_number("max_delay_s", self.max_delay_s, 0)


class Options(TypedDict, total=False):
    """What each method takes besides its parameters."""

    timeout_s: float
    """Seconds that an attempt waits for the connection, and for each part of the response."""
    retry: Retry
    """Replaces the retries of the client; ``Retry(attempts=1)`` for none."""


class KeyedOptions(Options, total=False):
    """``Options`` of creations."""

    idempotency_key: str
    """Key of the creation; without one the client makes one for each call."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: its body, and what its headers say."""

    status: int
    body: Any
    """Decoded JSON; None for 204."""
    headers: httpx.Headers
    request_id: str | None
    retry_after_s: float | None
    max_age_s: int | None


class _Tagged(dict[str, Any]):
    """The body of a response with an ``ETag``."""

    etag: str


def tag_of(body: Mapping[str, Any]) -> str | None:
    """Return the tag of a post, profile, shop or voucher that a read with a session or a change
    returned, for ``if_match`` of the next change; None for others, such as items of lists."""
    return body.etag if isinstance(body, _Tagged) else None


Steps: TypeAlias = Generator["httpx.Request | float", "httpx.Response | None", Reply]


@dataclass(frozen=True, slots=True)
class Caller:
    """Where requests go, and for whom."""

    base_url: str
    token: str | None
    user: str | None
    timeout_s: float
    retry: Retry


def check_base_url(url: str) -> str:
    """Return the URL of a deployment without its last slash. Raises PlazaError."""
    if not re.fullmatch(r"https?://[^/?#\s]+[^?#\s]*", url, re.IGNORECASE) or not _is_url(url):
        raise PlazaError(f"The URL of Plaza is {url!r}; it has to begin with https:// or http://.")
    return url.rstrip("/")


def _is_url(text: str) -> bool:
    try:
        return bool(httpx.URL(text).host)
    except httpx.InvalidURL:
        return False


def check_header(name: str, value: str) -> str:
    """Return ``value``. Raises PlazaError, without the value, if no header can have it."""
    if not re.fullmatch(r"[!-~]([ -~]*[!-~])?", value):
        raise PlazaError(f"{name} has to be visible ASCII characters.")
    return value


def check_timeout(timeout_s: float) -> float:
    """Return ``timeout_s``. Raises PlazaError if no timer has it."""
    _check_number("timeout_s", timeout_s, 0.001)
    return timeout_s


def _check_number(name: str, value: float, least: float) -> None:
    if not (least <= value < math.inf):
        raise PlazaError(f"{name} is {value!r}; it has to be a number from {least}.")


def send_call(
    caller: Caller,
    http: httpx.Client | httpx.AsyncClient,
    method: str,
    path: str,
    *,
    parameters: Mapping[str, str] | None = None,
    query: Mapping[str, object] | None = None,
    body: object = None,
    headers: Mapping[str, str | None] | None = None,
    options: Mapping[str, Any] | None = None,
    keyed: bool = False,
) -> Steps:
    """Send a request until it has a final response, and return it.

    ``path``: of the contract, with ``parameters`` in braces. ``keyed``: it takes an
    ``Idempotency-Key``. Raises ProblemError, NetworkError; PlazaError if nothing can be sent.
    """
    given = options or {}
    sent = {name: value for name, value in (headers or {}).items() if value is not None}
    if keyed:
        key = given.get("idempotency_key") or secrets.token_hex(16)
        if not _KEY.fullmatch(key):
            raise PlazaError("idempotency_key has to be 1 to 128 visible ASCII characters.")
        sent["idempotency-key"] = key
    if body is not None:
        sent["content-type"] = "application/json"
    target = caller.base_url + _expand(method, path, parameters or {}, query or {})
    request = build_request(caller, http, method, target, sent, _serialize(body), given)
    retry: Retry = given.get("retry") or caller.retry
    can_repeat = method in _IDEMPOTENT or keyed or path in _REPEATABLE_POSTS
    attempts = retry.attempts if can_repeat else 1
    for attempt in range(1, attempts + 1):
        try:
            return _read_reply(request, (yield request))
        except httpx.RequestError as error:
            request_id = request.headers["x-request-id"]
            failure: PlazaError = NetworkError(_describe(error), request_id)
            failure.__cause__ = error
        except (ProblemError, NetworkError) as error:
            failure = error
        delay_s = _delay_after(failure, attempt, retry) if attempt < attempts else None
        if delay_s is None:
            raise failure
        yield delay_s
    raise AssertionError("unreachable")


def buy(
    caller: Caller,
    http: httpx.Client | httpx.AsyncClient,
    voucher_id: str,
    options: Mapping[str, Any],
) -> Steps:
    """Order one unit, and return the order when it is decided."""
    parameters = {"voucher_id": voucher_id}
    reply = yield from send_call(
        caller, http, "POST", ORDERS, parameters=parameters, options=options
    )
    if reply.body["status"] != "pending":
        return reply
    yield _pause_of(reply)
    return (yield from wait_for_order(caller, http, reply.body["order_id"], options))


def wait_for_order(
    caller: Caller,
    http: httpx.Client | httpx.AsyncClient,
    order_id: str,
    options: Mapping[str, Any],
) -> Steps:
    """Ask for an order, at the pace of ``Retry-After``, until it is decided, and return it."""
    while True:
        parameters = {"order_id": order_id}
        reply = yield from send_call(
            caller, http, "GET", "/orders/{order_id}", parameters=parameters, options=options
        )
        if reply.body["status"] != "pending":
            return reply
        yield _pause_of(reply)


def build_request(
    caller: Caller,
    http: httpx.Client | httpx.AsyncClient,
    method: str,
    url: str,
    headers: Mapping[str, str] | Mapping[str, bytes],
    content: bytes | None,
    options: Mapping[str, Any],
) -> httpx.Request:
    """Return a request with what each request of ``caller`` has. ``headers`` replace it."""
    merged: dict[str, str | bytes] = {
        "accept": "application/json",
        "user-agent": f"plaza-client-python/{__version__}",
        "x-request-id": f"c{secrets.token_hex(16)}",
    }
    if caller.token is not None:
        merged["authorization"] = f"Bearer {caller.token}"
    if caller.user is not None:
        merged["plaza-user"] = caller.user
    timeout_s = check_timeout(options.get("timeout_s", caller.timeout_s))
    merged.update({name.lower(): value for name, value in headers.items()})
    try:
        encoded = {
            name.encode("ascii"): value if isinstance(value, bytes) else value.encode("ascii")
            for name, value in merged.items()
        }
        return http.build_request(method, url, headers=encoded, content=content, timeout=timeout_s)
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise PlazaError(f"The request cannot be sent: {error}") from error


def _pause_of(reply: Reply) -> float:
    return ORDER_POLL_S if reply.retry_after_s is None else reply.retry_after_s


def _expand(
    method: str, path: str, parameters: Mapping[str, str], query: Mapping[str, object]
) -> str:
    """Return a path of the contract with its parameters, encoded. None is no query."""

    def replace(match: re.Match[str]) -> str:
        value = str(parameters.get(match[1], ""))
        if value in ("", ".", ".."):
            raise PlazaError(f"{method} {path} needs {match[1]}, which is {value!r}.")
        return _encode(value)

    expanded = re.sub(r"\{(\w+)\}", replace, path)
    pairs = [f"{name}={_encode(_text_of(v))}" for name, v in query.items() if v is not None]
    return f"{expanded}?{'&'.join(pairs)}" if pairs else expanded


def _text_of(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(map(str, value))
    return str(value)


def _encode(text: str) -> str:
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise PlazaError("A parameter has half of a character.") from error


def _serialize(body: object) -> bytes | None:
    if body is None:
        return None
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise PlazaError("The body cannot be written as JSON.") from error


def _read_reply(request: httpx.Request, response: httpx.Response | None) -> Reply:
    """Return a response. Raises ProblemError, and NetworkError if its body is not JSON."""
    assert response is not None  # noqa: S101 - the client resumes with what was asked for
    headers = response.headers
    request_id = headers.get("x-request-id") or request.headers["x-request-id"]
    retry_after_s = _read_seconds(headers.get("retry-after", ""))
    max_age = _MAX_AGE.search(headers.get("cache-control", ""))
    body: Any = None
    try:
        body = json.loads(response.content) if response.content else None
    except ValueError as error:
        if response.is_success:
            raise NetworkError("The response is not JSON.", request_id) from error
    if not response.is_success:
        raise make_problem(response.status_code, body, headers, request_id, retry_after_s)
    max_age_s = int(max_age[1]) if max_age else None
    tag = headers.get("etag", "")
    if isinstance(body, dict) and tag.startswith('"'):  # a change never matches a weak tag
        body = _Tagged(body)
        body.etag = tag
    return Reply(response.status_code, body, headers, request_id, retry_after_s, max_age_s)


def _read_seconds(text: str) -> float | None:
    """Return the seconds of a ``Retry-After``; None for a date, which Plaza never sends."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _delay_after(failure: PlazaError, attempt: int, retry: Retry) -> float | None:
    """Return the seconds before the next attempt; None when the failure is final."""
    least_s = 0.0
    if isinstance(failure, ProblemError):
        if failure.status not in _RETRIED:
            return None
        least_s = failure.retry_after_s or 0.0
    if least_s > retry.max_delay_s:
        return None
    longest_s = min(retry.max_delay_s, retry.base_s * 2.0 ** (attempt - 1))
    return least_s + random.random() * longest_s


def _describe(error: httpx.RequestError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "There was no response in time."
    return f"The connection failed: {error}" if str(error) else "The connection failed."


__all__ = ["KeyedOptions", "Options", "Reply", "Retry", "problems"]
