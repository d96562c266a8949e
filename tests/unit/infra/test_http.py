"""HTTP of all API functions: cursors, ids, bodies, problems."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

import pytest
from aws_lambda_powertools.event_handler import Response
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, Field

from plaza.infra.http.callers import Caller
from plaza.infra.http.cursors import pack_cursor, unpack_cursor
from plaza.infra.http.limits import Quota
from plaza.infra.http.requests import MAX_BODY_BYTES, MAX_ID, Id, check_body, read_id
from plaza.infra.http.resolver import PlazaResolver, find_caller, require_caller
from plaza.infra.http.responses import PROBLEM_TYPES, problem, problem_settings, render
from plaza.infra.http.routes import BEARER, OPTIONAL, PUBLIC, Compressed, CreatesAt
from plaza.infra.http.schemas import RequestModel
from plaza.infra.http.texts import check_line
from plaza.infra.runtime.errors import (
    BadInput,
    Gone,
    MethodNotAllowed,
    NotFound,
    PlazaError,
    Unauthenticated,
    Unavailable,
)
from plaza.infra.runtime.settings import BadSettings
from tests.support.failures import failing
from tests.support.logs import read_log

ids = st.integers(-MAX_ID, MAX_ID)

pytestmark = pytest.mark.usefixtures("configured")


# ---------------------------------------------------------------- cursors


@given(ids, st.text(st.characters(codec="ascii"), max_size=20), ids)
def test_a_cursor_is_decoded_to_its_parts(version: int, name: str, number: int) -> None:
    cursor = pack_cursor(version, name, number)
    assert unpack_cursor(cursor, (int, str, int)) == [version, name, number]
    assert cursor.isascii()
    assert "=" not in cursor


def test_a_cursor_fits_the_maximum_length_of_the_contract() -> None:
    assert len(pack_cursor(2**53 - 1, "comment", MAX_ID)) <= 200


def forge(parts: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "?",
        "a",
        "é",
        "\x00",
        "=",
        "====",
        "bm8gSlNPTg",
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        forge(None),
        forge(7),
        forge([]),
        forge([1]),
        forge([1, 2, 3]),
        forge({"0": 1, "1": 2}),
        forge([1, "2"]),
        forge([1.0, 2]),
        forge([True, 2]),
        forge([1, None]),
        forge([1, [2]]),
        forge([1, MAX_ID + 1]),
        forge([1, -MAX_ID - 1]),
        forge([1, float("nan")]),
        base64.urlsafe_b64encode(b"[" * 100_000).decode(),
        base64.urlsafe_b64encode(b"[1," + b"1" * 5_000 + b"]").decode().rstrip("="),
    ],
    ids=lambda cursor: cursor[:16] or "empty",
)
def test_a_forged_cursor_is_bad_input(cursor: str) -> None:
    with pytest.raises(BadInput) as refusal:
        unpack_cursor(cursor, (int, int))
    assert refusal.value.field == "cursor"


@given(st.text(max_size=200))
def test_any_text_as_a_cursor_is_bad_input_or_decoded(cursor: str) -> None:
    try:
        parts = unpack_cursor(cursor, (int, int))
    except BadInput:
        return
    assert [type(part) for part in parts] == [int, int]


# ---------------------------------------------------------------- ids


@pytest.mark.parametrize("text", ["1", "9", "42", str(MAX_ID)])
def test_an_id_is_read(text: str) -> None:
    assert read_id(text, "post") == int(text)


@pytest.mark.parametrize(
    "text",
    ["", "0", "01", "-1", "+1", "1.0", " 1", "1 ", "1\n", "1_000", "0x1", "abc", "٣", "²", "１"],
)
def test_text_that_is_not_an_id_is_not_found(text: str) -> None:
    with pytest.raises(NotFound, match="is not the id of a post"):
        read_id(text, "post")


@pytest.mark.parametrize("number", [MAX_ID + 1, 10**30])
def test_a_number_beyond_63_bits_is_not_an_id(number: int) -> None:
    with pytest.raises(NotFound):
        read_id(str(number), "post")


# ---------------------------------------------------------------- bodies


@pytest.mark.parametrize("event", [{}, {"body": None}, {"body": ""}, {"body": "{}"}])
def test_a_small_body_or_no_body_is_accepted(event: dict[str, Any]) -> None:
    check_body(event)


def test_a_body_is_measured_in_bytes() -> None:
    check_body({"body": "a" * MAX_BODY_BYTES})
    with pytest.raises(BadInput) as refusal:
        check_body({"body": "a" * (MAX_BODY_BYTES + 1)})
    assert refusal.value.field == "body"
    with pytest.raises(BadInput):
        check_body({"body": "é" * (MAX_BODY_BYTES // 2 + 1)})


def test_a_base64_body_is_measured_decoded() -> None:
    def event(size: int) -> dict[str, Any]:
        return {"body": base64.b64encode(b"a" * size).decode(), "isBase64Encoded": True}

    check_body(event(MAX_BODY_BYTES - 2))
    with pytest.raises(BadInput):
        check_body(event(MAX_BODY_BYTES + 3))


@pytest.mark.parametrize(
    "content_type", ["application/json", "Application/JSON", "application/json; charset=utf-8"]
)
def test_the_content_type_json_is_accepted(content_type: str) -> None:
    check_body({"body": "{}", "headers": {"content-type": content_type}})


@pytest.mark.parametrize("content_type", ["text/plain", "", "application/jsonp", "json"])
def test_another_content_type_than_json_is_bad_input(content_type: str) -> None:
    with pytest.raises(BadInput) as refusal:
        check_body({"body": "{}", "headers": {"content-type": content_type}})
    assert refusal.value.field == "content-type"


def test_a_request_without_body_may_have_any_content_type() -> None:
    check_body({"headers": {"content-type": "text/plain"}})


# ---------------------------------------------------------------- problems


@pytest.mark.parametrize(
    ("error", "status", "slug"),
    [
        (BadInput("limit", "is 0"), 400, "invalid-request"),
        (Unauthenticated("no token"), 401, "unauthenticated"),
        (NotFound("no post 7"), 404, "not-found"),
        (MethodNotAllowed("PUT", allow="GET"), 405, "method-not-allowed"),
        (Gone("deleted"), 410, "gone"),
        (Unavailable("MySQL is unavailable"), 503, "unavailable"),
        (PlazaError("a bug"), 500, "internal"),
    ],
)
def test_a_problem_has_the_members_of_rfc_9457(error: PlazaError, status: int, slug: str) -> None:
    response = render(problem(error))
    body = json.loads(response["body"])
    assert response["statusCode"] == body["status"] == status
    assert response["headers"]["content-type"] == "application/problem+json"
    errors = {"errors": error.errors} if isinstance(error, BadInput) else {}
    assert body == errors | {
        "type": PROBLEM_TYPES + slug,
        "slug": slug,
        "title": error.title,
        "status": status,
        "detail": str(error),
    }


@pytest.mark.parametrize("url", ["https://docs.example/plaza", "https://docs.example/plaza/"])
def test_the_type_of_a_problem_leads_to_the_documentation_of_the_deployment(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAZA_DOCS_URL", url)
    problem_settings.cache_clear()
    body = json.loads(render(problem(Gone("deleted")))["body"])
    assert (body["type"], body["slug"]) == ("https://docs.example/plaza/problems#gone", "gone")
    monkeypatch.setenv("PLAZA_DOCS_URL", "docs.example")
    problem_settings.cache_clear()
    with pytest.raises(BadSettings, match="PLAZA_DOCS_URL"):
        problem(Gone("deleted"))
    problem_settings.cache_clear()


def test_an_unavailable_problem_has_a_retry_after_header() -> None:
    error = Unavailable("MySQL is unavailable", retry_after_s=7)
    assert problem(error).headers["retry-after"] == "7"
    assert "retry-after" not in problem(NotFound("no post 7")).headers


# ---------------------------------------------------------------- a small API

app = PlazaResolver(lambda *_: Caller())
ADA = Caller(9, "user")
LONG = "A long text. " * 200


def check_even(number: int) -> int:
    if number % 2:
        raise ValueError("is odd")
    return number


class ThingRequest(RequestModel):
    number: Annotated[int, Field(ge=0, lt=999)]
    names: (
        Annotated[
            list[Annotated[str, Field(min_length=1, pattern=r"^[^A-Z]*$")]], Field(max_length=3)
        ]
        | None
    ) = None
    even: Annotated[int, AfterValidator(check_even)] = 0
    kind: Literal["one", "two"] = "one"
    line: Annotated[str, AfterValidator(check_line)] = "line"


@app.put("/things/<thing_id>", security=BEARER)
def put_thing(thing_id: Id, thing: ThingRequest) -> dict[str, int]:
    return {"number": thing.number, "caller": require_caller(app)}


@app.get("/things/<thing_id>", security=OPTIONAL)
def get_thing(thing_id: Id) -> dict[str, int | None]:
    return {"caller": find_caller(app)}


@app.get("/long", security=OPTIONAL)
def get_long() -> dict[str, str | int | None]:
    return {"text": LONG, "caller": find_caller(app)}


@app.get("/shared", security=OPTIONAL)
def get_shared() -> Response[str]:
    return Response(200, "application/json", "{}", {"cache-control": "public, max-age=1"})


@app.get("/secret", security=OPTIONAL, middlewares=[Compressed(False)])
def export() -> dict[str, str]:
    return {"text": LONG}


@app.post("/long", security=OPTIONAL)
def post_long() -> dict[str, str]:
    return {"text": LONG}


@app.post("/things", security=PUBLIC)
def post_thing() -> tuple[dict[str, str], int]:
    return {"id": "7"}, 201


@app.post("/logins", security=PUBLIC, middlewares=[CreatesAt("/logins/current")])
def post_login() -> tuple[dict[str, str], int]:
    return {"token": "t"}, 201


@app.post("/things/<thing_id>/parts", security=PUBLIC)
def post_part(thing_id: Id) -> tuple[dict[str, str], int]:
    return {"id": "7"}, 201


@app.get("/broken", security=PUBLIC)
def get_broken() -> dict[str, int]:
    raise RuntimeError("an internal secret")


@app.get("/unavailable", security=PUBLIC)
def get_unavailable() -> dict[str, int]:
    raise Unavailable("MySQL is unavailable", retry_after_s=9)


def request(
    method: str,
    path: str,
    body: str | None = None,
    caller: Caller = ADA,
    tags: str = "",
    encodings: str = "",
    **context: Any,
) -> tuple[int, Any, dict[str, str]]:
    app.identify = lambda *_: caller
    path, _, query = path.partition("?")
    thing = re.match("/things/([^/]+)", path)
    event = {
        "version": "2.0",
        "routeKey": f"{method} {re.sub('/things/[^/]+', '/things/{thing_id}', path)}",
        "pathParameters": {"thing_id": thing[1]} if thing else {},
        "rawPath": path,
        "rawQueryString": query,
        "queryStringParameters": dict(parse_qsl(query)) or None,
        "headers": {
            "content-type": "application/json",
            "if-none-match": tags,
            "accept-encoding": encodings,
        },
        "requestContext": {
            "http": {"method": method, "path": path, "sourceIp": "203.0.113.7"},
            "requestId": "r1",
            "stage": "$default",
            **context,
        },
        "body": body,
        "isBase64Encoded": False,
    }
    response = app.resolve(event, None)
    headers = {k.lower(): v for k, v in response.get("headers", {}).items()}
    headers |= {k.lower(): v[0] for k, v in response.get("multiValueHeaders", {}).items()}
    content = response["body"]
    if response.get("isBase64Encoded"):
        assert headers["content-encoding"] == "gzip"
        content = gzip.decompress(base64.b64decode(content)).decode()
    return response["statusCode"], json.loads(content or "null"), headers


def test_a_valid_request_gets_its_response() -> None:
    status, body, _ = request("PUT", "/things/7", '{"number": 3}')
    assert (status, body) == (200, {"number": 3, "caller": 9})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (None, "body"),
        ("", "body"),
        ("{", "body"),
        ("[]", "body"),
        ("{}", "body.number"),
        ('{"number": "3"}', "body.number"),
        ('{"number": true}', "body.number"),
        ('{"number": 3, "more": 1}', "body.more"),
        ('{"number": 3, "names": ["a", "\\ud800"]}', "body"),
        ('{"number": 3, "names": ["\\udc00\\ud83d"]}', "body"),
        ('{"number": 3, "\\ud800": 1}', "body"),
        ('{"number": 3, "names": ' + "[" * 900 + "]" * 900 + "}", "body.names"),
    ],
)
def test_an_invalid_body_is_a_400_that_names_the_field(body: str | None, field: str) -> None:
    status, response, headers = request("PUT", "/things/7", body)
    assert status == 400
    assert headers["content-type"] == "application/problem+json"
    assert response["type"] == PROBLEM_TYPES + "invalid-request"
    assert any(error["field"].startswith(field) for error in response["errors"])


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("{}", ("body.number", "missing", None)),
        ('{"number": 3, "more": 1}', ("body.more", "unknown", None)),
        ('{"number": "3"}', ("body.number", "wrong-type", None)),
        ('{"number": 3.5}', ("body.number", "wrong-type", None)),
        ('{"number": 3, "names": {}}', ("body.names", "wrong-type", None)),
        ('{"number": 3, "names": ["a", "b", "c", "d"]}', ("body.names", "too-long", 3)),
        ('{"number": 3, "names": [""]}', ("body.names.0", "too-short", 1)),
        ('{"number": 3, "names": ["A"]}', ("body.names.0", "wrong-form", None)),
        ('{"number": 1000}', ("body.number", "too-large", 999)),
        ('{"number": -1}', ("body.number", "too-small", 0)),
        ('{"number": 3, "kind": "x"}', ("body.kind", "not-listed", None)),
        ('{"number": 3, "line": " "}', ("body.line", "too-short", None)),
        ('{"number": 3, "line": "a\\nb"}', ("body.line", "control-character", None)),
        ('{"number": 3, "names": ["\\ud800"]}', ("body", "control-character", None)),
        ('{"number": 3, "even": 5}', ("body.even", "invalid", None)),
        ('{"number": ', ("body.11", "invalid-json", None)),
        ("[1", ("body.2", "invalid-json", None)),
    ],
)
def test_an_invalid_field_has_a_code(body: str, error: tuple[str, str, int | None]) -> None:
    _, response, _ = request("PUT", "/things/7", body)
    field, code, limit = error
    [refused] = response["errors"]
    assert (refused["field"], refused["code"], refused.get("limit")) == (field, code, limit)
    assert response["detail"] == f"{refused['field']}: {refused['detail']}"


def test_a_parameter_and_a_cursor_have_codes() -> None:
    _, response, _ = request("GET", "/things/7?verbose=1")
    assert [(e["field"], e["code"]) for e in response["errors"]] == [("query.verbose", "unknown")]
    with pytest.raises(BadInput) as refusal:
        unpack_cursor("x", (int,), "after")
    [error] = refusal.value.errors
    assert (error["field"], error["code"]) == ("query.after", "invalid-cursor")


def test_the_text_of_a_validator_is_returned_unchanged() -> None:
    _, response, _ = request("PUT", "/things/7", '{"number": 3, "even": 5}')
    assert response["errors"] == [{"field": "body.even", "code": "invalid", "detail": "is odd"}]
    assert response["detail"] == "body.even: is odd"


def test_a_number_of_thousands_of_digits_is_a_400() -> None:
    status, response, _ = request("PUT", "/things/7", '{"number": ' + "1" * 5_000 + "}")
    assert (status, response["type"]) == (400, PROBLEM_TYPES + "invalid-request")


@pytest.mark.parametrize("depth", [990, 30_000])
def test_a_body_that_is_nested_too_deeply_is_a_400(depth: int) -> None:
    body = '{"number": 3, "names": ' + "[" * depth + "]" * depth + "}"
    status, response, _ = request("PUT", "/things/7", body)
    assert (status, response["type"]) == (400, PROBLEM_TYPES + "invalid-request")


def test_a_surrogate_pair_is_accepted() -> None:
    body = '{"number": 3, "names": ["\\ud83d\\ude00"]}'
    assert request("PUT", "/things/7", body)[0] == 200


@pytest.mark.parametrize("path", ["/things/abc", "/things/0", "/things/07", "/nowhere"])
def test_unknown_ids_and_paths_are_a_404(path: str) -> None:
    status, response, _ = request("GET", path)
    assert (status, response["type"]) == (404, PROBLEM_TYPES + "not-found")


def test_an_unexpected_error_is_a_500_without_its_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, response, _ = request("GET", "/broken")
    assert (status, response["type"]) == (500, PROBLEM_TYPES + "internal")
    assert "secret" not in json.dumps(response)
    line = json.loads(capsys.readouterr().out)
    assert line["event"] == "request_served"
    assert (line["error"], line["detail"]) == ("RuntimeError", "an internal secret")
    assert "get_broken" in line["trace"]


def test_an_unavailable_dependency_is_a_503_with_retry_after(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, response, headers = request("GET", "/unavailable")
    assert (status, response["detail"], headers["retry-after"]) == (
        503,
        "MySQL is unavailable",
        "9",
    )
    assert json.loads(capsys.readouterr().out)["error"] == "Unavailable"


def test_a_private_response_is_not_stored() -> None:
    for method, path, caller in (
        ("GET", "/things/7", ADA),
        ("PUT", "/things/7", ADA),
        ("POST", "/things", Caller()),
        ("GET", "/broken", Caller()),
        ("GET", "/unavailable", Caller()),
    ):
        _, _, headers = request(method, path, '{"number": 3}', caller)
        assert headers["cache-control"] == "no-store", path
        assert "etag" not in headers


def test_a_public_response_has_a_tag_and_is_not_sent_twice() -> None:
    status, _, headers = request("GET", "/things/7", caller=Caller())
    etag = headers["etag"]
    assert (status, headers["cache-control"]) == (200, "no-cache")
    assert headers["vary"] == "authorization, accept-encoding"
    assert etag.startswith('W/"')
    for sent in (etag, etag.removeprefix("W/"), f'"other", {etag}'):
        status, body, headers = request("GET", "/things/7", caller=Caller(), tags=sent)
        assert (status, body, headers["etag"]) == (304, None, etag)
    assert request("GET", "/things/7", caller=Caller(), tags='"other"')[0] == 200
    assert request("GET", "/things/7", caller=ADA, tags=etag)[0] == 200


@pytest.mark.parametrize(
    ("encodings", "is_compressed"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5, *", True),
        ("deflate,gzip;q=0.001", True),
        ("", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("xgzip", False),
        (",;,", False),
    ],
)
def test_a_long_response_is_compressed_for_a_client_that_accepts_it(
    encodings: str, is_compressed: bool
) -> None:
    for caller in (ADA, Caller(), Caller()):  # the second public one is from the cache
        status, body, headers = request("GET", "/long", caller=caller, encodings=encodings)
        assert (status, body) == (200, {"text": LONG, "caller": caller.user_id})
        assert ("content-encoding" in headers) is is_compressed


def test_a_compressed_response_has_the_tag_of_the_plain_one() -> None:
    _, _, plain = request("GET", "/long", caller=Caller())
    _, _, packed = request("GET", "/long", caller=Caller(), encodings="gzip")
    assert packed["etag"] == plain["etag"]
    reply = request("GET", "/long", caller=Caller(), encodings="gzip", tags=plain["etag"])
    assert reply[:2] == (304, None)
    assert "content-encoding" not in reply[2]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/things/7"), ("POST", "/long"), ("GET", "/secret")]
)
def test_short_responses_and_those_that_may_have_secrets_are_not_compressed(
    method: str, path: str
) -> None:
    _, _, headers = request(method, path, encodings="gzip")
    assert "content-encoding" not in headers


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/things", "/things/7"),
        ("/things/3/parts", "/parts/7"),
        ("/logins", "/logins/current"),
    ],
)
def test_a_created_resource_has_a_location(path: str, location: str) -> None:
    status, _, headers = request("POST", path)
    assert (status, headers["location"]) == (201, location)


def test_each_request_is_one_line_without_fields_of_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    request("GET", "/broken")
    request("GET", "/things/7")
    _, second = read_log(capsys)
    assert second["status"] == 200
    assert "error" not in second


def test_the_line_of_a_request_has_no_address_body_query_or_header(
    capsys: pytest.CaptureFixture[str],
) -> None:
    statuses = [
        request("PUT", f"/things/7{query}", body, tags="private", encodings="private")[0]
        for query, body in (
            ("", '{"number": 3, "line": "private"}'),
            ("?more=private", '{"number": 3}'),
            ("", '{"number": "private"}'),
            ("", '{"number": private'),
        )
    ]
    assert statuses == [200, 400, 400, 400]
    lines = read_log(capsys)
    assert len(lines) == 4
    assert not re.search(r"private|203\.0\.113", json.dumps(lines))


@pytest.mark.parametrize(
    ("caller", "status"),
    [
        (Caller(), 200),
        (Caller(7, "user"), 200),
        (Caller(refusal="unknown"), 401),
        (Caller(refusal="malformed"), 401),
        (Caller(refusal="unavailable"), 503),
    ],
)
def test_no_token_is_anonymous_and_an_invalid_token_is_an_error(
    caller: Caller, status: int
) -> None:
    assert request("GET", "/things/7", caller=caller)[0] == status


def test_a_route_with_a_session_refuses_anonymous_callers() -> None:
    status, response, _ = request("PUT", "/things/7", '{"number": 3}', Caller())
    assert (status, response["type"]) == (401, PROBLEM_TYPES + "unauthenticated")


def test_the_event_names_no_caller() -> None:
    """Given a context that an authorizer could have added: it is not believed."""
    forged = {"lambda": {"user_id": "1", "role": "admin"}}
    assert request("PUT", "/things/7", '{"number": 3}', Caller(), authorizer=forged)[0] == 401


def test_a_route_declares_its_security() -> None:
    with pytest.raises(TypeError, match="security"):
        app.get("/undeclared")(get_long)
    assert request("GET", "/undeclared", caller=Caller())[0] == 404


def test_a_path_with_other_methods_is_a_405_that_names_them() -> None:
    status, response, headers = request("PATCH", "/things/7", caller=Caller())
    assert (status, response["type"]) == (405, PROBLEM_TYPES + "method-not-allowed")
    assert response["detail"] == "/things/7 allows GET, HEAD, PUT, not PATCH."
    assert headers["allow"] == "GET, HEAD, PUT"


def test_a_limited_caller_is_refused_before_its_session_and_body(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, response, headers = request("PUT", "/things/7", "x" * 99_000, Caller(wait_ms=6_001))
    assert (status, response["type"]) == (429, PROBLEM_TYPES + "too-many-requests")
    assert headers["retry-after"] == "7"
    line = json.loads(capsys.readouterr().out)
    assert (line["status"], line["requests_limited"]) == (429, 1)


def test_a_response_that_shared_caches_may_keep_has_no_rate_limit_of_its_caller() -> None:
    ada, visitor = (caller._replace(quota=Quota(9, 1, 10, 2)) for caller in (ADA, Caller()))
    limits = {"ratelimit", "ratelimit-policy"}
    assert limits & set(request("GET", "/shared", caller=visitor)[2]) == set()
    assert limits <= set(request("GET", "/shared", caller=ada)[2]), "it is not shared"
    assert limits <= set(request("GET", "/things/7", caller=visitor)[2])


@pytest.mark.parametrize(
    ("error", "status"),
    [(RuntimeError("a secret"), 500), (Unavailable("MySQL is unavailable"), 503)],
)
def test_a_caller_that_cannot_be_identified_is_a_problem(
    error: Exception, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    request("GET", "/things/7")
    app.identify = failing(error)
    event = {"routeKey": "GET /things/{thing_id}", "rawPath": "/things/7", "headers": {}}
    response = app.resolve(event | {"requestContext": {"http": {"sourceIp": "::1"}}}, None)
    assert (response["statusCode"], app.caller) == (status, Caller())
    assert "secret" not in response["body"]
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["detail"] == str(error)


def test_a_too_large_body_is_refused_before_it_is_decoded() -> None:
    status, response, _ = request("PUT", "/things/7", "x" * (MAX_BODY_BYTES + 1))
    assert (status, response["detail"]) == (400, f"body: is larger than {MAX_BODY_BYTES} bytes")
