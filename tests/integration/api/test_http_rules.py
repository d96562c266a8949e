"""What the RFCs of HTTP ask for: challenges, conditions, charsets, numbers, methods of paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plaza.core.reactions import Target
from plaza.people.auth import new_session
from plaza.people.auth.operate_server_keys import make_server_key
from tests.support.functions import event, handler
from tests.support.plaza import World
from tests.support.sign_in_client import send
from tests.support.stores import add_users

USER = 700_001
POST = Target("post", 11)


def raw(name: str, folder: str, **changes: Any) -> dict[str, Any]:
    """Return the response to a sample event with other headers, path or body."""
    request = event(name)
    request["headers"] |= changes.pop("headers", {})
    request.update(changes)
    answer: dict[str, Any] = handler(folder)(request, None)
    return answer


# ---------------------------------------------------------------- 401


def test_a_401_names_its_challenge(plaza: World) -> None:
    route = ("GET", "/users/me/sessions")
    without = send(*route, folder="api/users")
    assert (without.status, without.headers["www-authenticate"]) == (401, "Bearer")
    for token in ("A" * 43, f"sk_{'A' * 16}_{'A' * 43}"):
        unknown = send(*route, token=token, folder="api/users")
        expected = 'Bearer error="invalid_token"'
        assert (unknown.status, unknown.headers["www-authenticate"]) == (401, expected)
    body = {"challenge": "A" * 43, "code": "123456"}
    refused = send("POST", "/auth/sessions", body)
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert "www-authenticate" not in send("GET", "/posts/4711", folder="api/content").headers


def test_a_session_with_plaza_user_is_told_that_it_needs_a_key(plaza: World) -> None:
    token = new_session.open_session(USER)
    refused = send(
        "GET", "/users/me/sessions", token=token, headers={"plaza-user": "7"}, folder="api/users"
    )
    assert refused.status == 401
    assert "needs the key of a server" in refused.body["detail"]


# ---------------------------------------------------------------- paths and methods


@pytest.mark.parametrize(
    ("path", "status"), [("/posts/12/", 404), ("/posts/", 404), ("/posts//", 404), ("//", 404)]
)
def test_a_path_with_a_slash_at_its_end_is_404(plaza: World, path: str, status: int) -> None:
    request = event("system.wrong_method")
    request["rawPath"] = path
    request["requestContext"]["http"]["method"] = "GET"
    assert handler("api/system")(request, None)["statusCode"] == status


def test_a_405_never_allows_the_method_that_it_refuses(plaza: World) -> None:
    paths = json.loads(raw("system.get_contract", "api/system")["body"])["paths"]
    for path in paths:
        for method in ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"):
            for end in ("", "/"):
                request = event("system.wrong_method")
                request["rawPath"] = path.replace("{", "").replace("}", "") + end
                request["requestContext"]["http"]["method"] = method
                answer = handler("api/system")(request, None)
                allowed = answer["headers"].get("allow", "").split(", ")
                if end:
                    assert answer["statusCode"] == 404, (method, path)
                elif method.lower() not in paths[path] and method != "HEAD":
                    assert method not in allowed


def test_health_has_the_id_of_the_request(plaza: World) -> None:
    answer = raw("system.get_health", "api/system", headers={"x-request-id": "my-request-1"})
    assert answer["headers"]["x-request-id"] == "my-request-1"
    assert raw("system.get_health", "api/system")["headers"]["x-request-id"]


# ---------------------------------------------------------------- caches


def test_if_none_match_with_a_star_is_a_304(plaza: World) -> None:
    seen = {"if-none-match": "*"}
    assert send("GET", "/openapi.json", headers=seen, folder="api/system").status == 304
    missing = send("GET", "/posts/4711", headers=seen, folder="api/content")
    assert missing.status == 404


def test_no_answer_to_a_key_is_stored(plaza: World) -> None:
    plaza.add(POST)
    key = make_server_key("web", ["read"], 100, operator_id="test")[1]
    answer = send("GET", "/posts/11/likers", token=key)
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    assert "etag" not in answer.headers


# ---------------------------------------------------------------- bodies and numbers


@pytest.mark.parametrize(
    ("content_type", "is_accepted"),
    [
        ("application/json", True),
        ("application/json; charset=utf-8", True),
        ('Application/JSON ;charset="UTF-8"', True),
        ("application/json; charset=latin-1", False),
        ("application/json; charset=utf-16", False),
        ("application/json; charset=utf-8; charset=latin-1", False),
    ],
)
def test_a_body_is_in_utf_8(plaza: World, content_type: str, is_accepted: bool) -> None:
    answer = raw("auth.send_code", "api/auth", headers={"content-type": content_type})
    assert (answer["statusCode"] == 202) == is_accepted, answer["body"]
    if not is_accepted:
        [error] = json.loads(answer["body"])["errors"]
        assert (error["field"], error["code"]) == ("header.content-type", "not-listed")


@pytest.mark.parametrize(
    "body",
    [
        '{"phone": "+12025550123", "phone": "+12025550124"}',
        '{"phone": {"a": 1, "a": 1}}',
        '{"phone": [{"b": {"a": 1, "\\u0061": 2}}]}',
    ],
)
def test_a_key_twice_in_an_object_is_refused(plaza: World, body: str) -> None:
    answer = raw("auth.send_code", "api/auth", body=body)
    assert answer["statusCode"] == 400
    [error] = json.loads(answer["body"])["errors"]
    assert (error["field"], error["code"]) == ("body", "invalid-json")
    assert "more than once" in error["detail"]


@pytest.mark.parametrize(
    "text", ["1_0", "+5", "%205", "5%20", "5.0", "0x5", "1e1", "", "\u0665", "5,5"]
)
def test_a_number_of_a_query_is_digits(plaza: World, text: str) -> None:
    plaza.add(POST)
    answer = send("GET", f"/posts/11/likers?limit={text}")
    assert (answer.status, answer.body["errors"][0]["code"]) == (400, "wrong-type")
    assert answer.body["errors"][0]["detail"] == "is a whole number"


@pytest.mark.parametrize("text", ["1_3.4", "+13.4", "%2013.4", "inf", "nan", ".5", "1."])
def test_a_coordinate_of_a_query_is_a_number_of_json(plaza: World, text: str) -> None:
    answer = send("GET", f"/shops?x={text}&y=52.5", folder="api/shops")
    assert (answer.status, answer.body["errors"][0]["code"]) == (400, "wrong-type")


def test_field_errors_are_in_plain_words(plaza: World) -> None:
    add_users(USER)
    token = new_session.open_session(USER)
    body = {"kind": "note", "title": "", "body": 7, "colour": "red"}
    refused = send("POST", "/posts", body, token=token, folder="api/content")
    assert {error["field"]: error["detail"] for error in refused.body["errors"]} == {
        "body.title": "has a length of at least 1",
        "body.body": "is a text",
        "body.colour": "is unknown",
    }
