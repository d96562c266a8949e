"""The server enforces the constraints that the contract documents, and no others.

For each constraint of a parameter or a field there are values at its limit, which the server
accepts, and values beyond it, which it refuses. Accepted means any status but 400.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import jsonschema_rs
import pytest

from cli.paths import CONTRACT, ROOT
from plaza.core.reactions.model import Target
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.http.requests import MAX_ID
from plaza.infra.http.routes import SERVER
from tests.integration.api import test_balancer
from tests.integration.api.test_every_route import ROUTES, Route
from tests.support.content_api import Reply, ask
from tests.support.functions import handler
from tests.support.plaza import World
from tests.support.routes import fill_path
from tests.support.stores import POST

DOCUMENT = json.loads(CONTRACT.read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]


def operation_of(route: Route) -> dict[str, Any]:
    """The operation of a route, empty if the contract has none."""
    document: dict[str, Any] = DOCUMENT["paths"].get(route.path, {}).get(route.method.lower(), {})
    return document


def parameters_of(route: Route, source: str) -> list[dict[str, Any]]:
    """The parameters of a route that are in the ``query`` or in the ``header``."""
    return [
        parameter
        for parameter in operation_of(route).get("parameters", ())
        if parameter["in"] == source
    ]


WITH_BODY = [route for route in ROUTES if "requestBody" in operation_of(route)]
WITH_QUERY = [route for route in ROUTES if parameters_of(route, "query")]
WITH_KEY = [
    route
    for route in ROUTES
    if [p["name"] for p in parameters_of(route, "header")] == ["Idempotency-Key"]
]
# Formats that no pattern can describe: the contract names them, the server has a list.
OF_FORMAT: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "phone": (("+12025550123", "+1 (202) 555-0123"), ("+1000000000", "+999 123456")),
    "time-zone": (("UTC", "America/Argentina/Buenos_Aires"), ("Europe/Atlantis", "CEST")),
    "date-time": (
        ("2998-01-01T00:00:00Z", "2998-01-01T00:00:00.123456+05:30"),
        ("2998-02-30T00:00:00Z", "2998-01-01T24:00:00Z", "2998-01-01T00:00:00"),
    ),
}
QUOTED = "O'Neil\\\"';--"  # in a statement without parameters an error of MySQL
NOT_TEXT: tuple[Any, ...] = (7, True, [], {})
NOT_NUMBERS: tuple[Any, ...] = ("7", [], {})
NOT_OBJECTS: tuple[Any, ...] = ("a", 7, [])
CURSORS: dict[str, tuple[int | str, ...]] = {
    "/users/me/notifications": (7, "like", "post", 7),
    "/users/me/likes": (10**15, "post", 7),
    "/users/me/collects": (10**15, "post", 7),
    "/users/me/reactions/{kind}": (10**15, "post", 7),
    "/users/me/export": ("profile",),
    "/users/{user_id}/export": ("profile",),
    "/users/me/orders": (7,),
    "/users/me/waitlists": (7,),
    "/shops/{shop_id}/sales": (7,),
    "/shops/{shop_id}/vouchers": (7,),
    "/users/me/shops": (7,),
    "/shops/{shop_id}/reviews/recommended": (7, 0),
    "/ops/reconciliations": (7,),
    "/ops/vouchers": (1_795_348_800_000_000, 7),
    "/ops/reports": (7,),
    "/ops/switches/changes": (7,),
    "/posts": (0,),
    "/shop-types/{type_id}/shops": (7,),
}


class Case(NamedTuple):
    """A value, and whether the server accepts it."""

    value: Any
    is_valid: bool


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns ``schema``, or the one that it refers to."""
    if "$ref" in schema:
        document: dict[str, Any] = SCHEMAS[schema["$ref"].rpartition("/")[2]]
        return document
    return schema


def is_valid(schema: dict[str, Any], value: Any) -> bool:
    """Returns whether ``schema`` allows ``value``."""
    whole = {**schema, "components": {"schemas": SCHEMAS}}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True).is_valid(value)


def cases_of(schema: dict[str, Any], example: Any) -> Iterator[Case]:
    """Values at and beyond each constraint of ``schema``; ``example`` is a valid one."""
    schema = resolve(schema)
    if "anyOf" in schema:
        [inner] = [item for item in schema["anyOf"] if item != {"type": "null"}]
        yield Case(None, True)
        if example is not None:
            yield from (case for case in cases_of(inner, example) if case.value is not None)
        return
    yield Case(None, False)
    match schema["type"]:
        case "string":
            yield from cases_of_text(schema, example)
        case "integer" | "number":
            yield from cases_of_number(schema)
        case "array":
            yield from cases_of_list(schema, example)
        case "object":
            yield from cases_of_object(schema, example)


def cases_of_text(schema: dict[str, Any], example: str) -> Iterator[Case]:
    yield from (Case(value, False) for value in NOT_TEXT)
    if schema.keys() & {"enum", "const"}:
        values = schema.get("enum") or [schema["const"]]
        yield from (Case(value, True) for value in values)
        yield Case("none of these", False)
        return
    yield Case(example, True)
    nothing: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
    valid, invalid = OF_FORMAT.get(schema.get("format", ""), nothing)
    yield from (Case(value, True) for value in valid)
    yield from (Case(value, False) for value in invalid)
    texts = [
        "",
        " ",
        "a",
        "é",
        "0",
        "-1",
        "a b",
        "\n",
        example + "\n",
        example + "\x00",
        "http://a",
    ]
    if "maxLength" in schema:
        longest = example + "a" * (schema["maxLength"] - len(example))
        texts += [longest + "a"]
        if "format" not in schema:
            yield Case(longest, True)
    for text in texts:
        if not is_valid(schema, text):
            yield Case(text, False)
    if is_valid(schema, QUOTED):
        yield Case(QUOTED, True)
    if schema.get("pattern", "").startswith("^[1-9][0-9]{0,18}"):
        yield from (Case(str(MAX_ID), True), Case(str(MAX_ID + 1), False))


def cases_of_number(schema: dict[str, Any]) -> Iterator[Case]:
    low, high = schema["minimum"], schema["maximum"]
    yield from (Case(low, True), Case(high, True), Case(low - 1, False), Case(high + 1, False))
    yield from (Case(value, False) for value in NOT_NUMBERS)
    yield Case(low + 0.5, schema["type"] == "number")


def cases_of_list(schema: dict[str, Any], example: list[Any]) -> Iterator[Case]:
    yield Case(example, True)
    many = example[:1] * (schema["maxItems"] + 1)
    if schema.get("uniqueItems"):
        yield Case(example[:1] * 2, False)
        many = [f"{item}{number}" for number, item in enumerate(many)]  # each ends with an id
    yield from (Case(many[1:], True), Case("a", False), Case({}, False))
    yield Case(many, False)
    yield Case([], "minItems" not in schema)
    yield from (Case([case.value], case.is_valid) for case in cases_of(schema["items"], example[0]))


def cases_of_object(schema: dict[str, Any], example: dict[str, Any]) -> Iterator[Case]:
    yield Case(example, True)
    yield Case({**example, "unknown": 1}, False)
    if "minProperties" in schema:
        yield Case({}, False)
    yield from (Case(value, False) for value in NOT_OBJECTS)
    for name, inner in schema["properties"].items():
        without = {key: value for key, value in example.items() if key != name}
        yield Case(without, is_valid(schema, without))
        for case in cases_of(inner, example.get(name, SAMPLES.get(name))):
            value = {**example, name: case.value}
            yield Case(value, case.is_valid and keeps_conditions(schema, value))


def keeps_conditions(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    """Returns whether ``value`` has what ``schema`` requires for some values of other fields."""
    conditions: dict[str, Any] = {key: schema[key] for key in ("if", "then") if key in schema}
    return is_valid(conditions, value)


# Values of optional fields that the examples leave out.
SAMPLES: dict[str, Any] = {
    "avatar": "https://images.example/7.jpg",
    "expires_at": "2998-01-01T00:00:00Z",
    "ids": ["059f36b4"],
}
# Times in this order, whatever the others are: no schema can say that.
ORDERED = {"POST /vouchers": ("opens_at", "closes_at", "expires_at")}
OVERRIDES = {
    "POST /vouchers": {"closes_at": "2999-01-01T00:00:00Z", "expires_at": "2999-12-31T00:00:00Z"}
}


@pytest.fixture
def send(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Reply]:
    """Sends a request of an admin. Every shop type exists: whether one does is no constraint."""
    monkeypatch.setattr("plaza.commerce.shops.commands._require_type", lambda *_: None)

    def do(route: Route, query: str = "", body: Any = None, key: str | None = None) -> Reply:
        path = re.sub(r"\{queue\}", "reactions", route.path)
        path = fill_path(path) + (f"?{query}" if query else "")
        role = "server" if route.security == SERVER else "admin"
        return ask(route.method, path, body, role=role, key=key, folder=route.folder)

    return do


def has_valid_times(route: Route, body: dict[str, Any]) -> bool:
    """Whether the times of ``body`` are in the order of ORDERED."""
    times = [body[name] for name in ORDERED.get(route.name, ()) if body.get(name)]
    return times == sorted(times)


def has_one_way_in(route: Route, body: Any) -> bool:
    """Return whether a sign-in has either challenge and code, or an ID token. The contract says so
    in words, because generators of clients do not know ``oneOf`` of null."""
    if route.name != "POST /auth/sessions":
        return True
    given = {name for name, value in body.items() if value is not None}
    return given == {"challenge", "code"} or given in ({"id_token"}, {"id_token", "nonce"})


@pytest.mark.parametrize("route", WITH_BODY, ids=lambda route: route.name)
def test_a_body_is_accepted_if_the_contract_does(send: Callable[..., Reply], route: Route) -> None:
    content = operation_of(route)["requestBody"]["content"]["application/json"]
    example = content["example"] | OVERRIDES.get(route.name, {})
    wrong = []
    for value, is_accepted in cases_of(content["schema"], example):
        if is_accepted and not (has_valid_times(route, value) and has_one_way_in(route, value)):
            continue
        reply = send(route, body=json.dumps(value))
        if (reply.status != 400) != is_accepted or reply.status >= 500:
            wrong.append((copy.deepcopy(value), is_accepted, reply.status, reply.body))
    assert wrong == []


def queries_of(parameter: dict[str, Any], path: str) -> Iterator[Case]:
    """The texts of a parameter of the query, at and beyond its constraints."""
    schema, name = parameter["schema"], parameter["name"]
    if name in ("cursor", "after"):
        if path not in ("/shops", "/ops/events"):  # signed, or too old if made up
            yield Case(pack_cursor(*CURSORS.get(path, (10**15, 7))), True)
        for text in ("", "a b", "=", "é", "a" * 201, "WzFd" * 50, "a"):
            yield Case(text, False)
        return
    example = {
        "month": "2026-11",
        "type": "11",
        "ids": ["11"],
        "target": ["post:11"],
        "of": ["post:11"],
    }.get(name, "latest")
    for case in cases_of(schema, example):
        if isinstance(case.value, list) and all(isinstance(item, str) for item in case.value):
            if case.value and "" not in case.value:
                yield Case(",".join(case.value), case.is_valid)
            continue
        if isinstance(case.value, str | int | float) and not isinstance(case.value, bool):
            if schema["type"] == "string" and not isinstance(case.value, str):
                continue
            if not (schema["type"] != "string" and isinstance(case.value, str)):
                yield Case(str(case.value), case.is_valid)
    if schema["type"] != "string":
        yield from (Case(text, False) for text in ("", "a", "nan", "inf", "0x1"))


@pytest.mark.parametrize("route", WITH_QUERY, ids=lambda route: route.name)
def test_a_query_is_accepted_if_the_contract_does(send: Callable[..., Reply], route: Route) -> None:
    parameters = parameters_of(route, "query")
    needed = {"x": "13.4", "y": "52.5", "month": "2026-11", "ids": "11", "name": "a"}
    needed["of"] = "post:11"
    always = {item["name"]: needed[item["name"]] for item in parameters if item["required"]}
    wrong = []
    for parameter in parameters:
        for value, is_accepted in queries_of(parameter, route.path):
            sent = always | {parameter["name"]: value}
            query = "&".join(f"{name}={text}" for name, text in sent.items())
            reply = send(route, query=query)
            if (reply.status != 400) != is_accepted or reply.status >= 500:
                wrong.append((query, is_accepted, reply.status, reply.body))
        if parameter["required"]:
            rest = {name: text for name, text in always.items() if name != parameter["name"]}
            query = "&".join(f"{name}={quote(text)}" for name, text in rest.items())
            assert send(route, query=query).status == 400
    assert wrong == []


def close(schema: Any) -> Any:
    """Return ``schema`` without the permission that a later version has more fields."""
    if isinstance(schema, list):
        return [close(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: close(item) for name, item in schema.items()}
    is_object = isinstance(schema.get("properties"), dict) and "type" in schema
    return {**closed, "additionalProperties": False} if is_object else closed


def test_a_response_has_declared_fields_only(plaza: World) -> None:
    plaza.add(POST, Target("comment", 21))
    successes = 0
    for sample in test_balancer.SAMPLES:
        event = json.loads((ROOT / "events" / f"{sample}.json").read_text())
        response = handler(f"api/{sample.partition('.')[0]}")(event, None)
        method, _, path = event["routeKey"].partition(" ")
        answers = DOCUMENT["paths"].get(path, {}).get(method.lower(), {}).get("responses", {})
        content = answers.get(str(response["statusCode"]), {}).get("content", {})
        for declared in content.values():
            whole = close({**declared["schema"], "components": {"schemas": SCHEMAS}})
            jsonschema_rs.Draft202012Validator(whole).validate(json.loads(response["body"]))
            successes += response["statusCode"] < 300
    assert successes > 30


@pytest.mark.parametrize("route", WITH_KEY, ids=lambda route: route.name)
def test_a_key_is_accepted_if_the_contract_does(send: Callable[..., Reply], route: Route) -> None:
    [parameter] = parameters_of(route, "header")
    content = operation_of(route)["requestBody"]["content"]["application/json"]
    body = json.dumps(content["example"] | OVERRIDES.get(route.name, {}))
    for key in ("a", "!~", "x" * 128, "", "x" * 129, "a b", "\x7f", "é"):
        is_accepted = is_valid(parameter["schema"], key)
        assert (send(route, body=body, key=key).status != 400) == is_accepted, key
