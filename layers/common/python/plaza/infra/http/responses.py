"""Responses of API Gateway: bodies, problem+json, headers of caches and limits, gzip."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple

from aws_lambda_powertools.event_handler.api_gateway import Response

from plaza.infra.http.callers import Caller
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.http.requests import JSON, Event
from plaza.infra.runtime.errors import (
    BadInput,
    MethodNotAllowed,
    PlazaError,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from plaza.infra.runtime.process import LocalCache
from plaza.infra.runtime.settings import BadSettings, declare

PROBLEM = "application/problem+json"
PROBLEM_TYPES = "https://plaza.example/problems/"
"""The types of problems of a deployment that names no documentation, before their slugs."""
SECURITY_HEADERS = {
    "strict-transport-security": "max-age=63072000; includeSubDomains",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of all responses. The edge sends the same (deploy/edge.yaml)."""
MIN_COMPRESSED_BYTES = 1_400  # less fits into one packet
# In Python 3.11 a name of an Enum is looked up by a function.
_LIMITED = HTTPStatus.TOO_MANY_REQUESTS.value
_GZIP_LEVEL = 1  # higher levels take several times as long for a tenth less
_GZIP_FORMAT = 31  # of zlib: the largest window, with the header of gzip
_ZERO_QUALITY = re.compile(r"q=0(\.0*)?")
_encode = json.JSONEncoder(separators=(",", ":")).encode

# Public responses, compressed, by tag.
_compressed: LocalCache[str, str] = LocalCache(max_entries=100, ttl_s=60)


class ProblemSettings(NamedTuple):
    """``types``: what the types of problems begin with, before their slugs."""

    types: str


def _read_types(env: Mapping[str, str]) -> str:
    """Return where the documentation describes problems. Raises BadSettings unless PLAZA_DOCS_URL
    is http or https."""
    url = env.get("PLAZA_DOCS_URL", "none")
    if url in ("", "none"):
        return PROBLEM_TYPES
    if not url.startswith(("https://", "http://")):
        raise BadSettings(f"PLAZA_DOCS_URL is {url!r}, not the URL of a site")
    return f"{url.rstrip('/')}/problems#"


problem_settings = declare(ProblemSettings, types=_read_types)


def render(result: Any) -> dict[str, Any]:
    """Return the response of API Gateway for a dict, a model, JSON or None, for a tuple of one of
    them, its status and maybe headers, or for a Response."""
    headers: dict[str, str] = {}
    status, content_type = 200, JSON
    if type(result) is tuple:
        result, status, *more = result
        headers = dict(*more)
    elif isinstance(result, Response):
        status, content_type = result.status_code, result.content_type or JSON
        headers = {name.lower(): str(value) for name, value in result.headers.items()}
        result = result.body or ""
    if type(result) is dict:
        body = _encode(result)
    elif result is None:
        body = ""
    else:
        body = result if type(result) is str else result.model_dump_json(by_alias=True)
    if body:
        headers = {"content-type": content_type, **headers}
    return {"statusCode": status, "headers": headers, "body": body}


def problem(error: PlazaError) -> Response[str]:
    """Return the problem+json response for ``error``."""
    body: dict[str, Any] = {
        "type": problem_settings().types + error.slug,
        "slug": error.slug,
        "title": error.title,
        "status": error.status,
        "detail": str(error),
    }
    if isinstance(error, BadInput):
        body["errors"] = error.errors
    headers: dict[str, str | list[str]] = {}
    if isinstance(error, TooManyRequests | Unavailable):
        headers["retry-after"] = str(error.retry_after_s)
    elif isinstance(error, MethodNotAllowed):
        headers["allow"] = error.allow
    elif isinstance(error, Unauthenticated):
        headers["www-authenticate"] = error.challenge
    return Response(error.status, PROBLEM, json.dumps(body), headers)


def format_time(at: datetime) -> str:
    """Return a time in UTC as RFC 3339, with six digits of a second."""
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def encode_page(items: Iterable[str], after: Iterable[int | str] | None = None) -> str:
    """Encode a ``Page`` of encoded items. ``after`` are the parts of its cursor ``next``."""
    following = "null" if after is None else f'"{pack_cursor(*after)}"'
    return f'{{"items":[{",".join(items)}],"next":{following}}}'


def drop_body(event: Event, response: dict[str, Any]) -> dict[str, Any]:
    """Return the response without its body if the request is a HEAD."""
    if event["requestContext"]["http"].get("method") != "HEAD":
        return response
    return {**response, "body": "", "isBase64Encoded": False}


def locate(path: str, created: dict[str, Any], without_id: str | None) -> dict[str, str]:
    """Return the header with the path of what a POST to ``path`` created: its id in the last
    collection of the path, or ``without_id``."""
    if "id" in created:
        return {"location": f"/{path.rstrip('/').rpartition('/')[2]}/{created['id']}"}
    return {} if without_id is None else {"location": without_id}


def add_cache_headers(event: Event, response: dict[str, Any], caller: Caller) -> None:
    """Forbid caches to store a private response. A public one, a 200 to a GET of an anonymous
    caller, gets an ``ETag``; it becomes a 304 without a body if ``If-None-Match`` has that tag, or
    is ``*``."""
    is_public = (
        event["routeKey"].startswith("GET ")
        and response["statusCode"] == HTTPStatus.OK
        and (caller.user_id, caller.key_id) == (None, None)
    )
    if not is_public:
        response["headers"]["cache-control"] = "no-store"
        return
    tag = f'"{hashlib.sha256(response["body"].encode()).hexdigest()[:32]}"'
    # A weak tag: it is valid for the compressed response, too.
    response["headers"] |= {"etag": f"W/{tag}", "vary": "authorization, accept-encoding"}
    response["headers"].setdefault("cache-control", "no-cache")
    sent = event["headers"].get("if-none-match", "").split(",")
    if {tag, "*"} & {sent_tag.strip().removeprefix("W/") for sent_tag in sent}:
        response.update(statusCode=HTTPStatus.NOT_MODIFIED.value, body="")


def add_limit_headers(response: dict[str, Any], caller: Caller) -> None:
    """Add what the rate limit of the caller admits after the request.

    Not to a response that shared caches may send to others, and not to the 429 of another limit,
    whose ``Retry-After`` would contradict it.
    """
    quota, headers = caller.quota, response["headers"]
    is_limited_otherwise = response["statusCode"] == _LIMITED and not caller.wait_ms
    if quota is None or is_limited_otherwise or headers["cache-control"].startswith("public"):
        return
    headers["ratelimit"] = f'"default";r={quota.remaining};t={quota.full_in_s}'
    headers["ratelimit-policy"] = f'"default";q={quota.burst};w={quota.window_s}'


def compress(event: Event, response: dict[str, Any]) -> None:
    """Compress a response that is longer than a packet, if the client accepts gzip."""
    body, accepted = response["body"], event["headers"].get("accept-encoding", "")
    if len(body) < MIN_COMPRESSED_BYTES or not _accepts_gzip(accepted):
        return
    etag = response["headers"].get("etag")
    encoded = etag and _compressed.get(etag)
    if not encoded:
        compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)
        content = compressor.compress(body.encode()) + compressor.flush()
        encoded = base64.b64encode(content).decode()
        if etag:
            _compressed.put(etag, encoded)
    response["headers"]["content-encoding"] = "gzip"
    response.update(body=encoded, isBase64Encoded=True)


def _accepts_gzip(accepted: str) -> bool:
    """Return whether a header Accept-Encoding has gzip, and not with the quality 0."""
    for coding in accepted.lower().split(","):
        name, _, quality = coding.partition(";")
        if name.strip() == "gzip":
            return _ZERO_QUALITY.fullmatch(quality.strip()) is None
    return False
