"""Hooks of schemathesis: who sends a case, values that only the server can check, and counts of
responses.

The test of the contract imports them; ``tests.e2e.fuzz`` names them to the program, which gets the
directory of the stack in the environment.
"""

from __future__ import annotations

import atexit
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import schemathesis
from pydantic import TypeAdapter, ValidationError

from local.stack.stack import Stack, use_stack
from local.stack.tokens import create_users, open_sessions
from plaza.commerce.flash_sales.schemas import RequestedTime
from plaza.core.targets.schemas import REFERENCE
from plaza.core.targets.target_ids import TargetId, TypeName
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.http.requests import ID_PATTERN, MAX_ID
from plaza.infra.http.texts import LINE_RULE, TEXT_RULE, VISIBLE, check_line, check_text
from plaza.people.auth.phones import PHONE_PATTERN
from tests.e2e.client import Client
from tests.e2e.fuzz_ids import ADMIN, BYSTANDERS, OWN
from tests.support.routes import contract

STACK, ROLE, IDS, COUNTS = "FUZZ_STACK", "FUZZ_ROLE", "FUZZ_IDS", "FUZZ_COUNTS"
SERVER, ANONYMOUS, MERCHANT = "server", "anonymous", "merchant"
ROLES = ("user", "moderator", "sales", "operator", "admin", SERVER, ANONYMOUS, MERCHANT)
USER, FIRST_WITH_ROLE = 70, 72
CALLERS = {str(user_id) for user_id in range(USER, FIRST_WITH_ROLE + len(ROLES))}
KEY_NAME = "fuzz"
_leaving_users = count(69_000_001)
_REFERENCE = REFERENCE.removeprefix("^").removesuffix("$")
REFERENCES = rf"{_REFERENCE}(,{_REFERENCE})*"
TARGET_TYPES = ("post", "comment", "review", "user", "article", "clip")
TYPES_OF = {
    "/reactions/query": ("post", "comment", "review", "article", "clip"),
    "/targets": ("article", "clip"),
}
"""The types of targets that the stack of the tests has, and of paths that take some of them."""
ENDPOINT = r"https?://[!-~]+"
CURSOR = r"[A-Za-z0-9_-]{1,200}"
TIME_ZONE = r"[A-Za-z][A-Za-z0-9_+/-]{0,63}"
LINES, TEXTS = (
    {
        name
        for schema in contract()["components"]["schemas"].values()
        for name, field in schema.get("properties", {}).items()
        if rule in json.dumps(field)
    }
    for rule in (LINE_RULE, TEXT_RULE)
)
"""Fields with one line of text, and fields with lines: their rule is a sentence of the contract."""
REFERRING = {"order_id", "shop_id", "type_id"}
TIMES = {
    "opens_at": "2098-01-01T00:00:00Z",
    "closes_at": "2098-02-01T00:00:00Z",
    "expires_at": "2098-03-01T00:00:00Z",
}
"""Times of a voucher, which have an order."""
ENDS_SESSIONS = {"/users/{user_id}", "/users/{user_id}/sessions", "/users/me/sessions/{session_id}"}
"""Their ids may be the caller's."""
BOUND_CURSORS = {"/posts", "/shops", "/users"}
"""Lists whose cursor is valid for one query only."""
CURSORS: dict[str, tuple[int | str, ...]] = {
    "/users/me/likes": (10**15, "post", 7),
    "/users/me/collects": (10**15, "post", 7),
    "/users/me/reactions/{kind}": (10**15, "post", 7),
    "/users/me/export": ("profile",),
    "/users/{user_id}/export": ("profile",),
    "/users/me/orders": (7,),
    "/users/me/waitlists": (7,),
    "/shops/{shop_id}/sales": (7,),
    "/shops/{shop_id}/vouchers": (7,),
    "/users/me/notifications": (10**15, "like", "post", 7),
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


@cache
def _make_key() -> str:
    """Return a key of a server with all scopes, in place of keys of earlier runs."""
    with use_stack(_stack()):
        from plaza.people.auth import operate_server_keys as keys
        from plaza.people.auth.server_keys import MAX_REQUESTS_PER_S, SCOPES

        for made in keys.list_server_keys():
            if made["name"] == KEY_NAME and made["ended_at"] is None:
                keys.end_server_key(made["key_id"], operator_id=KEY_NAME)
        return keys.make_server_key(KEY_NAME, SCOPES, MAX_REQUESTS_PER_S, operator_id=KEY_NAME)[1]


def _ends_its_session(case: schemathesis.Case[Any]) -> bool:
    path = case.operation.path
    is_route = path.startswith("/auth/") or (path, case.method) == ("/users/me", "DELETE")
    return is_route or path in ENDS_SESSIONS


def identify(role: str) -> tuple[int, str]:
    """Return the user of a run with ``role``, and the role of the user: ``user`` for none. An
    anonymous run has a user whose resources it names; a merchant is a user who owns shops."""
    return (FIRST_WITH_ROLE + ROLES.index(role), role) if role else (USER, "user")


def role_of_user(role: str) -> str:
    """Return the role that the user of a run has in the API."""
    return "user" if role in ("", SERVER, ANONYMOUS, MERCHANT) else role


_callers: set[str] = set()
"""Headers of callers whose sessions no case ends."""


@schemathesis.auth(refresh_interval=None)
class SignedIn:
    """Signs each case in; schemathesis itself tries requests without a token.

    Schemathesis caches no token: the first operation's would serve all. A case that ends its
    session is sent by a user of its own.
    """

    open_session: Callable[[int, str], str] = staticmethod(cache(_open_session))

    def get(self, case: schemathesis.Case[Any], context: object) -> Mapping[str, str]:
        user_id, role = identify(os.environ.get(ROLE, ""))
        if role == ANONYMOUS:
            return {}
        if _ends_its_session(case):
            user_id = next(_leaving_users)
        elif not os.environ.get(ROLE) and case.operation.path.startswith("/ops/"):
            user_id, role = (ADMIN, "admin") if case.method == "GET" else (user_id, role)
        if role == SERVER:
            create_users(_stack().mysql_url, [user_id])
            headers = {"Authorization": f"Bearer {_make_key()}", "Plaza-User": str(user_id)}
        else:
            headers = {
                "Authorization": f"Bearer {SignedIn.open_session(user_id, role_of_user(role))}"
            }
        if str(user_id) in CALLERS:
            _callers.add(headers["Authorization"])
        return headers

    def set(self, case: schemathesis.Case[Any], data: Mapping[str, str], context: object) -> None:
        case.headers.update(data)


def _is(form: str, value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(form, value) is not None


def _is_time(value: object) -> bool:
    try:
        return bool(TypeAdapter(RequestedTime).validate_python(value))
    except ValidationError:
        return False


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
    for name in ("of", "target"):
        if _is(REFERENCES, query.get(name)):
            query[name] = _choose_references(query[name])
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
        for name in case.body.keys() & REFERRING:
            if _is(ID_PATTERN, case.body[name]):
                case.body[name] = _choose_id(name, _limit_id(case.body[name]))
        for name in case.body.keys() & TIMES.keys():
            if _is_time(case.body[name]):
                case.body[name] = TIMES[name]
        for target in _find_targets(case.body):
            if _has_form(target):
                names = TYPES_OF.get(case.operation.path, TARGET_TYPES)
                given = str(target["type"]), str(target["id"])
                target["type"], target["id"] = _choose_target(names, *given)
                if case.operation.path == "/reports" and target["id"] in _own:
                    target["id"] = str(BYSTANDERS[0])
    for name, value in (case.path_parameters or {}).items():
        if _is(ID_PATTERN, value):
            case.path_parameters[name] = _choose_id(name, value)
        if case.path_parameters[name] in CALLERS:  # whom an admin would erase
            case.path_parameters[name] = str(BYSTANDERS[0])


_statuses: Counter[int] = Counter()
_wrong: Counter[str] = Counter()
"""Responses that the contract does not have, of outages, and to a caller whose session
ended, because a run without one shows nothing."""


@schemathesis.hook
def after_call(context: object, case: schemathesis.Case[Any], response: Any) -> None:
    """Count the response. Methods that a path does not have are answered 405, preflights 204."""
    status, declared = response.status_code, case.operation.definition.raw["responses"]
    _statuses[status] += 1
    if status == 201:  # schemathesis sends ids of responses in later requests
        _own.add(response.json().get("id", ""))
    has_method = case.method.upper() == case.operation.method.upper()
    expected = declared if has_method else {"204" if case.method.upper() == "OPTIONS" else "405"}
    is_lost = status == 401 and b'"unauthenticated"' in response.content and _is_signed_in(case)
    is_outage = status == 503 and b'"switched-off"' not in response.content
    if str(status) not in expected or is_lost or is_outage:
        _wrong[f"{case.method} {case.operation.path}: {status}"] += 1
    has_switched = case.operation.path.startswith("/ops/switches") and case.method == "PUT"
    if has_switched and status == 200 and STACK in os.environ:
        _restore_switches()


def _restore_switches() -> None:
    """Switch everything on, or what follows would be answered 503."""
    admin = Client(_stack().base_url, SignedIn.open_session(ADMIN, "admin"))
    path, reason = "/ops/switches", "Restored after a request of the fuzz."
    version = admin("GET", path).json["version"]
    level = {"version": version, "level": "normal", "reason": reason}
    normal = admin("PUT", f"{path}/level", level).json
    switches = {**normal["switches"], "stopped_sales": []}
    admin("PUT", path, {"version": normal["version"], "switches": switches, "reason": reason})


def _is_signed_in(case: schemathesis.Case[Any]) -> bool:
    """Return whether a case has the session or the key of the caller of all cases; a key has no
    session to end."""
    is_caller = bool(case.headers) and case.headers.get("Authorization") in _callers
    return is_caller and not case.operation.path.startswith("/auth/")


@atexit.register
def _write_counts() -> None:
    if COUNTS in os.environ:
        Path(os.environ[COUNTS]).write_text(json.dumps([_statuses, _wrong]))


def _choose_way_in(body: dict[str, Any]) -> dict[str, Any]:
    """Return ``body`` if it has one way to sign in; the contract says in words that it has."""
    given = {name for name, value in body.items() if value is not None}
    ways = {"challenge", "code"}, {"id_token"}, {"id_token", "nonce"}, {"passkey"}
    if given in ways or not given <= {"challenge", "code", "id_token", "nonce", "passkey"}:
        return body
    return {"challenge": "c" * 43, "code": "123456"}


@cache
def _read_ids() -> dict[str, list[str]]:
    ids: dict[str, list[str]] = json.loads(os.environ.get(IDS, "{}"))
    return ids


_own = {*CALLERS, *_read_ids().get(OWN, ())}
"""Ids of the callers and of what they made: a report of them is refused."""


def _choose_id(name: str, text: str) -> str:
    """Return ``text``, or for two of three the id of a resource that exists."""
    ids = _read_ids().get(name)
    return ids[int(text) % len(ids)] if ids and int(text) % 3 else text


def _limit_id(text: Any) -> str:
    """Return an id of at most 63 bits: the pattern allows a few more."""
    return str(min(int(text), MAX_ID))


def _find_targets(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what has a type and an id of a target in a body."""
    groups, targets = body.get("groups"), body.get("targets", [body.get("target")])
    listed = [*targets] if isinstance(targets, list) else []
    if isinstance(groups, list):
        listed += [group.get("subject") for group in groups if isinstance(group, dict)]
    return [target for target in listed if isinstance(target, dict)]


def _has_form(target: Mapping[str, Any]) -> bool:
    return _is(TypeName.PATTERN, target.get("type")) and _is(TargetId.PATTERN, target.get("id"))


def _choose_target(names: Sequence[str], target_type: str, target_id: str) -> tuple[str, str]:
    """Return a type that exists and an id of its form: the contract allows types of any app."""
    if target_type not in names:
        target_type = names[len(target_type) % len(names)]
    digits = re.sub(r"\D", "", target_id).lstrip("0")[:19] or str(len(target_id))
    if target_type == "clip":
        return target_type, digits
    if target_type in ("post", "comment", "review", "user"):
        return target_type, _choose_id(f"{target_type}_id", _limit_id(digits))
    return target_type, target_id


def _choose_references(text: str) -> str:
    """Return references like ``post:7,user:8`` that can be, each as often as one of ``text``."""
    given = text.split(",")
    pairs = (reference.split(":", 1) for reference in given)
    chosen = [":".join(_choose_target(TARGET_TYPES, *pair)) for pair in pairs]
    return ",".join(chosen if len({*given}) < len(given) else dict.fromkeys(chosen))


# Python takes more characters for spaces than the patterns of JSON Schema do.
_SEEN = rf"{VISIBLE}|[\x1c-\x1f\x85]"


def _make_visible(name: str, value: Any) -> Any:
    """Return ``value``, or letters if it is a text that the server refuses."""
    check = check_line if name in LINES else check_text if name in TEXTS else None
    if check is None or not isinstance(value, str) or not re.search(_SEEN, value):
        return value
    try:
        return check(value)
    except ValueError:
        return "a" * len(value)
