"""Hooks of schemathesis: who sends a case, and values that only the server can check.

The test of the contract imports them; ``tests.e2e.fuzz`` names them to the program, which gets the
directory of the stack in the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import schemathesis

from local.stack.stack import Stack
from local.stack.tokens import open_sessions
from plaza.auth.phones import PHONE_PATTERN
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.http.requests import ID_PATTERN, MAX_ID
from plaza.infra.http.texts import VISIBLE, check_line, check_text

STACK, ROLE = "FUZZ_STACK", "FUZZ_ROLE"
ROLES = ("user", "moderator", "sales", "operator", "admin")
USER, ADMIN, FIRST_WITH_ROLE = 70, 71, 72
_leaving_users = count(69_000_001)
REFERENCES = r"((post|comment|review|user):[1-9][0-9]{0,18}(,|$))+"
ENDPOINT = r"https?://[!-~]+"
CURSOR = r"[A-Za-z0-9_-]{1,200}"
TIME_ZONE = r"[A-Za-z][A-Za-z0-9_+/-]{0,63}"
# Fields with one line of text, and fields with lines: their rule is a sentence of the contract.
LINES = {"title", "nickname", "name", "area", "address", "open_hours"}
TEXTS = {"body", "details"}
IDS = {"order_id", "shop_id", "type_id"}
ENDS_SESSIONS = {"/users/{user_id}", "/users/{user_id}/sessions", "/users/me/sessions/{session_id}"}
"""Their ids may be the caller's."""
BOUND_CURSORS = {"/posts", "/shops", "/users"}
"""Lists whose cursor is valid for one query only."""
CURSORS: dict[str, tuple[int | str, ...]] = {
    "/users/me/likes": (10**15, "post", 7),
    "/users/me/collects": (10**15, "post", 7),
    "/users/me/export": (0, 7, 0),
    "/users/{user_id}/export": (0, 7, 0),
    "/users/me/orders": (7,),
    "/users/me/waitlists": (7,),
    "/shops/{shop_id}/sales": (7,),
    "/shops/{shop_id}/vouchers": (7,),
    "/users/me/bell/groups": (10**15, "like", "post", 7),
    "/users/me/shops": (7,),
    "/shops/{shop_id}/reviews/recommended": (7, 0),
    "/shop-types/{type_id}/shops": (7,),
    "/ops/reconciliations": (7,),
    "/ops/reports": (7,),
    "/ops/switches/changes": (7,),
}


@cache
def _stack() -> Stack:
    return Stack.load(Path(os.environ[STACK]))


def _open_session(user_id: int, role: str) -> str:
    if STACK not in os.environ:
        return ""  # pytest collects the cases before there is a stack
    [token] = open_sessions(_stack(), [user_id], role)
    return token


def _ends_its_session(case: schemathesis.Case[Any]) -> bool:
    path = case.operation.path
    is_route = path.startswith("/auth/") or (path, case.method) == ("/users/me", "DELETE")
    return is_route or path in ENDS_SESSIONS


@schemathesis.auth(refresh_interval=None)
class SignedIn:
    """Signs each case in; schemathesis itself tries requests without a token.

    Schemathesis caches no token: the first operation's would serve all. A case that ends its
    session is sent by a user of its own.
    """

    open_session: Callable[[int, str], str] = staticmethod(cache(_open_session))

    def get(self, case: schemathesis.Case[Any], context: object) -> str:
        role = os.environ.get(ROLE)
        if _ends_its_session(case):
            return SignedIn.open_session(next(_leaving_users), role or "user")
        if role:
            return SignedIn.open_session(FIRST_WITH_ROLE + ROLES.index(role), role)
        reads_operations = case.operation.path.startswith("/ops/") and case.method == "GET"
        return SignedIn.open_session(*((ADMIN, "admin") if reads_operations else (USER, "user")))

    def set(self, case: schemathesis.Case[Any], data: str, context: object) -> None:
        case.headers["Authorization"] = f"Bearer {data}"


def _is(form: str, value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(form, value) is not None


@schemathesis.hook
def before_call(context: object, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Replace values that only the server can check: cursors, phones, time zones, texts, ids,
    hosts of push services.

    Values that the contract refuses are not replaced.
    """
    query = dict(case.query or {})
    cursor = query.get("cursor")
    if _is(CURSOR, cursor):
        if case.operation.path in BOUND_CURSORS:
            del query["cursor"]
        else:
            query["cursor"] = pack_cursor(*CURSORS.get(case.operation.path, (10**15, 7)))
    if _is(CURSOR, query.get("after")):
        del query["after"]  # one that can be made up is too old
    if _is(ID_PATTERN, query.get("type")):
        query["type"] = _limit_id(query["type"])
    if _is(REFERENCES, query.get("of")):
        query["of"] = _limit_references(query["of"])
    if case.query:
        case.query = {name: _make_visible(name, value) for name, value in query.items()}
    if isinstance(case.body, dict) and _is(TIME_ZONE, case.body.get("time_zone")):
        case.body = {**case.body, "time_zone": "Asia/Shanghai"}
    if isinstance(case.body, dict) and _is(ID_PATTERN, case.body.get("type_id")):
        case.body = {**case.body, "type_id": None}  # a type that exists
    if isinstance(case.body, dict) and case.operation.path == "/auth/sessions":
        case.body = _choose_way_in(case.body)
    if isinstance(case.body, dict) and _is(ENDPOINT, case.body.get("endpoint")):
        case.body = {**case.body, "endpoint": "https://fcm.googleapis.com/fcm/send/d1"}
    if isinstance(case.body, dict) and _is(PHONE_PATTERN, case.body.get("phone")):
        case.body = {**case.body, "phone": "+12025550123"}
    if isinstance(case.body, dict):
        case.body = {name: _make_visible(name, value) for name, value in case.body.items()}
        for name in case.body.keys() & IDS:
            if _is(ID_PATTERN, case.body[name]):
                case.body[name] = _limit_id(case.body[name])
        targets = case.body.get("targets")
        for target in targets if isinstance(targets, list) else ():
            if isinstance(target, dict) and _is(ID_PATTERN, target.get("id")):
                target["id"] = _limit_id(target["id"])


def _choose_way_in(body: dict[str, Any]) -> dict[str, Any]:
    """Return ``body`` if it has one way to sign in; the contract says in words that it has."""
    given = {name for name, value in body.items() if value is not None}
    ways = {"challenge", "code"}, {"id_token"}, {"id_token", "nonce"}, {"passkey"}
    if given in ways or not given <= {"challenge", "code", "id_token", "nonce", "passkey"}:
        return body
    return {"challenge": "c" * 43, "code": "123456"}


def _limit_id(text: Any) -> str:
    """Return an id of at most 63 bits: the pattern allows a few more."""
    return str(min(int(text), MAX_ID))


def _limit_references(text: str) -> str:
    """Return references like ``post:7,user:8`` with ids of at most 63 bits, each as often as one of
    ``text``."""
    given = text.split(",")
    limited = [":".join((kind, _limit_id(of_id))) for kind, of_id in (r.split(":") for r in given)]
    return ",".join(limited if len({*given}) < len(given) else dict.fromkeys(limited))


def _make_visible(name: str, value: Any) -> Any:
    """Return ``value``, or letters if it is a text that the server refuses."""
    check = check_line if name in LINES else check_text if name in TEXTS else None
    if check is None or not isinstance(value, str) or not re.search(VISIBLE, value):
        return value
    try:
        return check(value)
    except ValueError:
        return "a" * len(value)
