"""The deployed API conforms to the contract, by all checks of schemathesis."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import unsupported_method

from local.stack.openapi import CONTRACT
from local.stack.stack import Stack
from plaza.auth.phones import PHONE_PATTERN
from plaza.infra.http import ID_PATTERN, MAX_ID, pack_cursor
from plaza.infra.texts import VISIBLE, check_line, check_text
from tests.e2e.client import Client

CURSOR = r"[A-Za-z0-9_-]{1,200}"
TIME_ZONE = r"[A-Za-z][A-Za-z0-9_+/-]{0,63}"
# Fields with one line of text, and fields with lines: their rule is a sentence of the contract.
LINES = {"title", "nickname", "name", "area", "address", "open_hours"}
TEXTS = {"body"}
CURSORS: dict[str, tuple[int | str, ...]] = {
    "/users/me/likes": (10**15, "post", 7),
    "/users/me/collects": (10**15, "post", 7),
    "/users/me/orders": (7,),
    "/shops/{shop_id}/vouchers": (7,),
    "/shops/{shop_id}/reviews/recommended": (7,),
}

contract = schemathesis.openapi.from_dict(json.loads(CONTRACT.read_text()))


@contract.auth()
class SignedIn:
    """Signs each case in; schemathesis itself tries requests without a token.

    Operations of /auth use another user, because sign-out ends the session.
    """

    token = ""
    leaving = ""

    def get(self, case: schemathesis.Case[Any], context: object) -> str:
        return self.leaving if case.operation.path.startswith("/auth/") else self.token

    def set(self, case: schemathesis.Case[Any], data: str, context: object) -> None:
        case.headers["Authorization"] = f"Bearer {data}"


def _is(form: str, value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(form, value) is not None


@schemathesis.hook
def before_call(context: object, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Replace values that only the server can check: cursors, phones, time zones, texts, ids.

    Values that the contract refuses are not replaced.
    """
    query = dict(case.query or {})
    cursor = query.get("cursor")
    if _is(CURSOR, cursor):
        if case.operation.path == "/shops":
            del query["cursor"]  # it is signed for its query
        else:
            query["cursor"] = pack_cursor(*CURSORS.get(case.operation.path, (10**15, 7)))
        case.query = query
    if _is(ID_PATTERN, query.get("type")):
        case.query = {**query, "type": _limit_id(query["type"])}
    if isinstance(case.body, dict) and _is(TIME_ZONE, case.body.get("time_zone")):
        case.body = {**case.body, "time_zone": "Asia/Shanghai"}
    if isinstance(case.body, dict) and _is(PHONE_PATTERN, case.body.get("phone")):
        case.body = {**case.body, "phone": "+12025550123"}
    if isinstance(case.body, dict):
        case.body = {name: _make_visible(name, value) for name, value in case.body.items()}
        targets = case.body.get("targets")
        for target in targets if isinstance(targets, list) else ():
            if isinstance(target, dict) and _is(ID_PATTERN, target.get("id")):
                target["id"] = _limit_id(target["id"])


def _limit_id(text: Any) -> str:
    """Return an id of at most 63 bits: the pattern allows a few more."""
    return str(min(int(text), MAX_ID))


def _make_visible(name: str, value: Any) -> Any:
    """Return ``value``, or letters if it is a text that the server refuses."""
    check = check_line if name in LINES else check_text if name in TEXTS else None
    if check is None or not isinstance(value, str) or not re.search(VISIBLE, value):
        return value
    try:
        return check(value)
    except ValueError:
        return "a" * len(value)


@pytest.fixture(scope="session", autouse=True)
def token(sign_in: Callable[..., str], stack: Stack) -> None:
    """Sign the users of the cases in, and build the rankings, which a new stack does not have."""
    stack.invoke("RefreshRankings", {})
    SignedIn.token, SignedIn.leaving = sign_in(70), sign_in(69)


def test_the_contract_is_served(base_url: str) -> None:
    assert Client(base_url)("GET", "/openapi.json").json == json.loads(CONTRACT.read_text())


@contract.parametrize()
@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_response_conforms_to_the_contract(
    case: schemathesis.Case[Any], base_url: str
) -> None:
    # DELETE /posts/ranking matches /posts/{post_id}, so the response is 404, not 405.
    shared = [unsupported_method] if case.operation.path == "/posts/ranking" else []
    # The first start of a function is slow on a busy machine.
    case.call_and_validate(base_url=base_url, excluded_checks=shared, timeout=60)
