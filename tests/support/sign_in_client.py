"""A client of the API in this process, with real sessions and rate limits; sign-in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cli.paths import ROOT
from local.stack.functions import CONTEXT, load_function
from plaza.infra.redis import connections, redis
from plaza.people.auth import sms
from plaza.people.auth.caller_identity import identify
from plaza.people.auth.codes import KeyedHasher
from plaza.people.auth.hashers import current_hasher
from tests.support.keyspace import find_keys
from tests.support.routes import find_folder, match

PHONE, OTHER = "+8613800138000", "+12025550123"
HOME = "203.0.113.7"
_challenges: dict[str, str] = {}
_EVENT = json.loads((ROOT / "events" / "auth.send_code.json").read_text())


@cache
def _handler(folder: str) -> Callable[[dict[str, Any], object], Any]:
    handler: Callable[[dict[str, Any], object], Any] = load_function(folder).handler
    return handler


@dataclass(frozen=True)
class Reply:
    """A response with its parsed body."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def problem(self) -> str:
        assert self.headers["content-type"] == "application/problem+json"
        return str(self.body["type"]).rpartition("/")[2]


def send(
    method: str,
    path: str,
    body: Any = None,
    *,
    token: str | None = None,
    source: str = HOME,
    headers: Mapping[str, str] | None = None,
    folder: str | None = None,
) -> Reply:
    """Send a request as the event of API Gateway, to the function that has the route unless
    ``folder`` names one. ``body`` is sent as JSON, text unchanged."""
    path, _, query = path.partition("?")
    context = {"requestId": "r", "stage": "$default"}
    context["http"] = {"method": method, "path": path, "sourceIp": source}  # type: ignore[assignment]
    sent = {"host": "plaza.example", **(headers or {})}
    if token is not None:
        sent["authorization"] = f"Bearer {token}"
    event = _EVENT | {
        "rawPath": path,
        "rawQueryString": query,
        "queryStringParameters": dict(part.split("=") for part in query.split("&") if part),
        "headers": sent,
        "requestContext": context,
        "body": body if body is None or isinstance(body, str) else json.dumps(body),
        **match(method, path),
    }
    response = _handler(folder or find_folder(method, path))(event, CONTEXT)
    parsed = json.loads(response["body"]) if response.get("body") else None
    results = {name.lower(): value for name, value in response.get("headers", {}).items()}
    return Reply(response["statusCode"], results, parsed)


def request_code(phone: Any = PHONE, **options: Any) -> Reply:
    reply = send("POST", "/auth/codes", {"phone": phone}, **options)
    if reply.status == 202:
        _challenges[phone] = reply.body["challenge"]
    return reply


def challenge_of(phone: str = PHONE) -> str:
    """Return the newest challenge of a phone, an invented one if it has none."""
    return _challenges.get(phone, "A" * 43)


def sign_in(code: Any, phone: str = PHONE, *, challenge: Any = None, **options: Any) -> Reply:
    """Sign in with ``challenge``, by default the newest challenge of the phone."""
    body = {"challenge": challenge or challenge_of(phone), "code": code}
    return send("POST", "/auth/sessions", body, **options)


def is_accepted(token: str) -> bool:
    """Return whether a token has a session."""
    return identify(f"Bearer {token}", HOME, "GET /users/me").user_id is not None


def read_code(phone: str = PHONE) -> str:
    """Return the code in the newest text to a phone."""
    result = re.search("[0-9]{6}", sms.read_echo(phone) or "")
    assert result, "no text was sent"
    return result[0]


def signed_in(phone: str = PHONE, source: str = HOME) -> str:
    """Sign in with a new code; return the token."""
    assert request_code(phone, source=source).status == 202
    completed = sign_in(read_code(phone), phone, source=source)
    assert completed.status == 201
    let_a_minute_pass()
    return str(completed.body["token"])


def hasher() -> KeyedHasher:
    return current_hasher()


def wrong(code: str, offset: int = 1) -> str:
    return f"{(int(code) + offset) % 1_000_000:06}"


def let_pass(ms: int) -> None:
    """Move all counted attempts ``ms`` milliseconds into the past."""
    for key in find_keys("*:limit:*"):
        for name, at_ms in connections.client().zrange(key, 0, -1, withscores=True):
            redis.execute("ZADD", key, int(at_ms) - ms, name)


def let_a_minute_pass() -> None:
    let_pass(60_000)


def forget_limits() -> None:
    for key in find_keys("*:limit:*"):
        redis.execute("DEL", key)
