"""The contract of the API, functions/api/system/openapi.json, generated from the routes.

``make generate`` writes it; a policy test fails while it is out of date. The first line of a
handler's docstring is the summary of its operation, the rest the description, and the handler's
name is the operation id. Examples come from the models; examples of problems from the errors.
"""

import argparse
import inspect
import json
import re
from typing import Any

from aws_lambda_powertools.event_handler.openapi.merge import OpenAPIMerge
from aws_lambda_powertools.event_handler.openapi.models import HTTPBearer, SecurityScheme

from cli.paths import CONTRACT, ROOT
from local.stack.functions import load_function
from plaza.infra.http.arguments import SENTENCES
from plaza.infra.http.resolver import PlazaResolver
from plaza.infra.http.responses import PROBLEM, PROBLEM_TYPES
from plaza.infra.runtime.errors import BadInput
from plaza.infra.runtime.switch_state import WARMING_UP
from tools.python_client import find_refs, write_files
from tools.release import read_version
from tools.template.functions import importable

API = ROOT / "functions" / "api"

_DESCRIPTION = """Likes, collects, follows, feeds, shops and flash sales.

Requests and responses are JSON in UTF-8. A request body has at most 64 KiB. Unknown fields and
unknown query parameters are refused. Ids are strings, because JavaScript rounds integers above
2^53. Times are RFC 3339 in UTC.

Errors are `application/problem+json` (RFC 9457). Programs compare `slug`, and `code` of each of
`errors`; both never change. `type` leads to the documentation.

`RateLimit` and `RateLimit-Policy` have what the rate limit of the caller admits.

Lists return `items` and `next`. Send `next` as `cursor` to get the next page; null is the end.

Each response has an `X-Request-Id`. A request may send its own: 8 to 64 letters, digits and
`+/=._-`, at least one of them a letter. Other values are replaced."""

_TAGS = {
    "auth": "Sign-in with a phone, and sessions.",
    "check-ins": "Daily check-ins of the caller.",
    "content": "Posts, comments and reviews.",
    "feed": "Posts of the users whom the caller follows.",
    "flash sales": "Vouchers with a limited stock, and their orders.",
    "follows": "Follows, lists of followers, and blocks.",
    "moderation": "Reports, and what moderators hide.",
    "operations": "Queues, dead letters, reconciliations and switches. For admins.",
    "reactions": "Likes and collects.",
    "recommendations": "Rankings of reviews and posts.",
    "shops": "Shops and shop types.",
    "system": "Health and contract.",
    "users": "Profiles of users.",
}

_RESOURCES = {
    "comment_id": "Comment",
    "order_id": "Order",
    "post_id": "Post",
    "report_id": "Report",
    "review_id": "Review",
    "shop_id": "Shop",
    "type_id": "Shop type",
    "user_id": "User",
    "voucher_id": "Voucher",
}
# 404 of operations whose path has no id, or names another resource: what does not exist.
_MISSING = {
    "create_report": "Post 1",
    "create_voucher": "Shop 1",
    "get_my_profile": "User 7",
    "list_dead_letters": "Queue likes",
    "list_nearby_shops": "Shop type 1",
    "redrive_dead_letters": "Queue likes",
    "search_shops": "Shop type 1",
    "update_my_profile": "User 7",
}
# 410 of operations whose path has no id of what was deleted.
_DELETED = {"create_post": "Post 1", "create_report": "Post 1", "create_voucher": "Shop 1"}

_CURSOR_EXAMPLE = "WzcsMTc5NTM0ODgwMTAwMDQxN10"


def main(args: argparse.Namespace) -> None:
    contract = make_contract()
    CONTRACT.write_text(contract)
    write_files(json.loads(contract))


def make_contract() -> str:
    """Returns the contract as JSON text: the same text for the same routes."""
    # The functions don't load the OpenAPI models: they would pay for them at each cold start.
    bearer: dict[str, SecurityScheme] = {
        "bearer": HTTPBearer(
            description=(
                "A session token, from `POST /auth/sessions`; or a key of a server (`sk_...`), "
                "with the header `Plaza-User` for the user that the request is for."
            )
        )
    }
    merge = OpenAPIMerge(
        title="Plaza",
        version=read_version(),
        description=_join_lines(_DESCRIPTION),
        security_schemes=bearer,
        on_conflict="error",
    )
    with importable():
        for path in sorted(API.glob("*/app.py")):
            app: PlazaResolver = load_function(f"api/{path.parent.name}").app
            _describe(app)
            schema: Any = app.get_openapi_schema(security_schemes=bearer)
            merge.add_schema(schema)
    # Page[ShopResponse] is Page_ShopResponse_ to pydantic and ShopPage to clients.
    text = re.sub(r"\bPage_(\w+?)(?:Response)?_\b", r"\1Page", merge.get_openapi_json_schema())
    contract: dict[str, Any] = json.loads(text)
    schemas = contract["components"]["schemas"]
    contract["components"]["examples"] = {}
    for unused in ("HTTPValidationError", "ResponseValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for schema in schemas.values():
        _tidy_schema(schema)
        schema.setdefault("description", "One page of a list.")
    for path, methods in contract["paths"].items():
        for method, operation in methods.items():
            _tidy_operation(path, method, operation, contract["components"])
        _describe_versions(methods)
    _open_enums(contract)
    contract["info"] |= {"contact": _CONTACT, "license": _LICENSE}
    contract["components"]["headers"] = _LIMIT_HEADERS
    contract["tags"] = [{"name": name, "description": text} for name, text in _TAGS.items()]
    return _render(contract) + "\n"


def _render(value: Any, depth: int = 0) -> str:
    """Return ``value`` as JSON with sorted keys; a response or a property is one line."""
    if depth == _LINE_DEPTH or not isinstance(value, dict):
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    pad = " " * (depth + 1)
    parts = (f"{pad}{json.dumps(k)}: {_render(v, depth + 1)}" for k, v in sorted(value.items()))
    return "{\n" + ",\n".join(parts) + f"\n{pad[1:]}}}"


def _describe(app: PlazaResolver) -> None:
    """Describe the operations: their ids, summaries and descriptions come from their functions."""
    for endpoint in app.endpoints.values():
        route = endpoint.route
        summary, _, description = (inspect.getdoc(route.func) or "").partition("\n")
        route.operation_id = route.func.__name__
        route.summary, route.description = summary.removesuffix("."), _join_lines(description)


def _join_lines(text: str) -> str:
    """Returns ``text`` with one line a paragraph, and with Markdown's code marks."""
    paragraphs = text.strip().replace("``", "`").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


# ---------------------------------------------------------------- operations


def _tidy_operation(
    path: str, method: str, operation: dict[str, Any], components: dict[str, Any]
) -> None:
    """Add what all operations have, add examples, and drop what only Powertools needs."""
    schemas, shared = components["schemas"], components["examples"]
    operation["responses"].pop("422", None)  # Powertools' own; Plaza declares and sends 400
    operation.setdefault("security", [])  # without it, a reader may take it for undecided
    is_limited = operation["operationId"] != "get_health"
    if is_limited:
        operation["responses"].setdefault("400", _describe_invalid_request())
    operation["responses"].get("204", {}).pop("content", None)  # it has no body
    operation["description"] = " ".join(
        text
        for text in (operation["description"], _session(operation), _rate(path, method, operation))
        if text
    )
    for parameter in operation.get("parameters", ()):
        _tidy_parameter(parameter)
    has_cursor = any(item["name"] == "cursor" for item in operation.get("parameters", ()))
    for body in operation.get("requestBody", {}).get("content", {}).values():
        body["example"] = _example_of(body["schema"], schemas, 0, has_cursor)
    for status, response in operation["responses"].items():
        for media_type, body in response.get("content", {}).items():
            _tidy_schema(body["schema"])
            if media_type == PROBLEM:
                response["description"] = "; ".join(
                    f"{example['summary']} (`{slug}`)" for slug, example in body["examples"].items()
                )
                for slug, example in body["examples"].items():
                    body["examples"][slug] = _complete_problem(
                        path, slug, int(status), example, operation, shared
                    )
            else:
                index = body.pop("x-example", 0)
                body["example"] = _example_of(body["schema"], schemas, index, has_cursor)
        if status in ("429", "503") or operation["operationId"] in _POLLED.get(status, ()):
            response["headers"] = {"Retry-After": _RETRY_AFTER}
        if status == "201" and operation["operationId"] != "redeem_code":  # it has no path
            response["headers"] = {"Location": _LOCATION}
        if is_limited and (status.startswith("2") or status == "429"):
            refs = {name: {"$ref": f"#/components/headers/{name}"} for name in _LIMIT_HEADERS}
            response["headers"] = response.get("headers", {}) | refs
    security = operation["security"]
    if method == "get" and (not security or {} in security):
        operation["responses"]["200"].setdefault("headers", {})["ETag"] = _ETAG
        operation["responses"]["304"] = {
            "description": "Not modified: `If-None-Match` has the current `ETag`."
        }


def _describe_versions(methods: dict[str, Any]) -> None:
    """Describe the tags of a path whose resource can be changed with an ``If-Match``."""
    for operation in methods.values():
        if any(item["name"] == "If-Match" for item in operation.get("parameters", ())):
            for tagged in (operation, methods["get"]):
                tagged["responses"]["200"].setdefault("headers", {})["ETag"] = _VERSION


def _describe_invalid_request() -> dict[str, Any]:
    """Return the response to an unknown parameter, for operations that take none."""
    slug, title = BadInput.slug, BadInput.title
    content = {
        "schema": {"$ref": "#/components/schemas/Problem"},
        "examples": {slug: {"summary": title}},
    }
    return {"content": {PROBLEM: content}}


_RETRY_AFTER = {
    "description": "Seconds after which to send the request again.",
    "schema": {"type": "integer", "minimum": 0},
}
_LIMIT_HEADERS = {
    "RateLimit": {
        "description": (
            "`r` requests are left at once, and all of the policy in `t` seconds without requests."
        ),
        "schema": {"type": "string"},
        "example": '"default";r=99;t=1',
    },
    "RateLimit-Policy": {
        "description": "`q` requests at once; all are back after `w` seconds without requests.",
        "schema": {"type": "string"},
        "example": '"default";q=100;w=5',
    },
}
_LINE_DEPTH = 5  # of paths, path, method, responses, status
_CONTACT = {"name": "Plaza contributors", "url": "https://plaza.example/"}
_LICENSE = {"name": "MIT License", "identifier": "MIT"}
_LOCATION = {"description": "Path of what was created.", "schema": {"type": "string"}}
_ETAG = {
    "description": "Tag of this representation, for callers without a session.",
    "schema": {"type": "string"},
}
_VERSION = {
    "description": "Version of what the caller may change, for `If-Match`; weak without a session.",
    "schema": {"type": "string"},
}
# Responses with an order: they have the header while it is pending.
_POLLED = {"200": ("get_order", "place_order"), "202": ("place_order",)}


def _session(operation: dict[str, Any]) -> str:
    security = operation["security"]
    if not security:
        return "Needs no session."
    return "A session is optional." if {} in security else "Needs a session."


def _rate(path: str, method: str, operation: dict[str, Any]) -> str:
    from plaza.people.auth.caller_identity import bucket_of_user

    if not operation["security"]:
        return "Counts as one request of the caller's network."
    group = bucket_of_user(1, f"{method.upper()} {path}").group
    return f"Counts as one {group.removesuffix('s')} of the caller."


def _tidy_parameter(parameter: dict[str, Any]) -> None:
    """A parameter is sent or left out, so it is never null; one description is enough."""
    schema = parameter["schema"]
    _tidy_schema(schema)
    description = schema.pop("description", None)
    parameter.setdefault("description", description)
    choices = [choice for choice in schema.pop("anyOf", ()) if choice != {"type": "null"}]
    for choice in choices:
        schema.update(choice)
    if schema["type"] == "array":
        parameter["explode"] = False  # ids=7,31
    if parameter["in"] == "header":
        parameter["name"] = "-".join(word.capitalize() for word in parameter["name"].split("-"))


def _tidy_schema(schema: Any) -> None:
    """Drop the titles that pydantic makes of names, and write whole limits as integers."""
    if isinstance(schema, list):
        for part in schema:
            _tidy_schema(part)
        return
    if not isinstance(schema, dict):
        return
    schema.pop("title", None)
    if "description" in schema:
        schema["description"] = _join_lines(schema["description"])
    for limit in ("minimum", "maximum"):
        value = schema.get(limit)
        if isinstance(value, float) and value.is_integer():
            schema[limit] = int(value)
    for part in schema.get("properties", {}).values():
        _tidy_schema(part)
    for inner in ("anyOf", "items", "additionalProperties"):
        _tidy_schema(schema.get(inner))
    if "description" in schema:
        for choice in schema.get("anyOf", ()):
            choice.pop("description", None)


def _open_enums(contract: dict[str, Any]) -> None:
    """Mark the enums of responses, to which a later version may add: ``x-open-enum``. Raises
    ValueError for a schema of both requests and responses, which is open and closed."""
    operations = [item for methods in contract["paths"].values() for item in methods.values()]
    schemas = contract["components"]["schemas"]
    sent = _reach(
        [(item.get("requestBody"), item.get("parameters")) for item in operations], schemas
    )
    received = _reach([item["responses"] for item in operations], schemas)
    if both := sent & received:
        raise ValueError(f"of requests and of responses: {sorted(both)}")
    members = {ref for name in received for ref in _find_members(schemas[name])}
    for name in received:
        _mark_enums(schemas[name], is_member=name in members)


def _reach(values: object, schemas: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that ``values`` lead to."""
    reached: set[str] = set()
    new = set(find_refs(values))
    while new:
        reached |= new
        new = {ref for name in new for ref in find_refs(schemas[name])} - reached
    return reached


def _find_members(schema: Any) -> set[str]:
    """Return the names of the members of the unions in a schema, which their ``type`` tells
    apart."""
    if isinstance(schema, list):
        return set().union(*map(_find_members, schema))
    if not isinstance(schema, dict):
        return set()
    own = {ref for choice in schema.get("anyOf", ()) for ref in find_refs(choice)}
    return (own if len(own) > 1 else set()).union(*map(_find_members, schema.values()))


def _mark_enums(schema: Any, *, is_member: bool = False) -> None:
    parts: list[Any] = []
    if is_member:
        parts = [value for name, value in schema["properties"].items() if name != "type"]
    elif isinstance(schema, dict):
        if "enum" in schema:
            schema["x-open-enum"] = True
        parts = [value for key, value in schema.items() if key != "examples"]
    elif isinstance(schema, list):
        parts = schema
    for part in parts:
        _mark_enums(part)


# ---------------------------------------------------------------- examples


def _example_of(
    schema: dict[str, Any], schemas: dict[str, Any], index: int, has_cursor: bool
) -> Any:
    """Returns the example of a body: of its model, or a page with the example of its items."""
    name = schema.get("$ref", "").rpartition("/")[2]
    model = schemas.get(name, {})
    if "examples" in model:
        return model["examples"][index]
    if name.endswith("Page"):
        item = _example_of(model["properties"]["items"]["items"], schemas, index, False)
        return {"items": [item], "next": _CURSOR_EXAMPLE if has_cursor else None}
    if schema == {"additionalProperties": True, "type": "object"}:  # the contract itself
        info = {"title": "Plaza", "version": read_version()}
        return {"openapi": "3.1.0", "info": info, "paths": {}}
    raise LookupError(f"{name or schema} has no example")


def _complete_problem(
    path: str,
    slug: str,
    status: int,
    example: dict[str, str],
    operation: dict[str, Any],
    shared: dict[str, Any],
) -> dict[str, Any]:
    """Returns the example of a problem, or a reference to the one in ``shared``."""
    detail = _detail_of_operation(path, slug, operation)
    completed = {
        "summary": example["summary"],
        "value": {
            "type": PROBLEM_TYPES + slug,
            "slug": slug,
            "title": example["summary"],
            "status": status,
            **(detail or {"detail": example["detail"]}),
        },
    }
    if detail:
        return completed
    name = "warming-up" if example["detail"] == WARMING_UP else slug
    shared[name] = completed
    return {"$ref": f"#/components/examples/{name}"}


def _detail_of_operation(path: str, slug: str, operation: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the fields that differ by operation: ``detail``, and ``errors`` of a 400."""
    operation_id = operation["operationId"]
    resource = next((_RESOURCES.get(name) for name in re.findall(r"{(\w+)}", path)), None)
    match slug:
        case "invalid-request":
            field, error = _find_invalid_field(operation)
            return {"detail": f"{field}: {error['detail']}", "errors": [{"field": field, **error}]}
        case "not-found":
            return {"detail": f"{_MISSING.get(operation_id, f'{resource} 1')} does not exist."}
        case "gone":
            happened = "withdrawn" if resource == "Voucher" else "deleted"
            return {"detail": f"{_DELETED.get(operation_id, f'{resource} 1')} was {happened}."}
        case "changed-meanwhile":
            changed = (resource or "profile").lower()
            return {"detail": f"The {changed} was changed since you read it. Read it again."}
        case "forbidden" if operation["tags"] == ["content"] and resource:
            return {"detail": f"{resource} 1 belongs to another user."}
    return None


def _find_invalid_field(operation: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns a field that a request can have wrong, and what the server says about it."""
    parameters = operation.get("parameters", ())
    query = {parameter["name"] for parameter in parameters if parameter["in"] == "query"}
    required = {
        parameter["name"]
        for parameter in parameters
        if parameter["in"] == "query" and parameter["required"]
    }
    if "requestBody" in operation:
        example = operation["requestBody"]["content"]["application/json"]["example"]
        field, value = next(iter(example.items()))
        kind = {str: "string", int: "int", bool: "bool", list: "list"}[type(value)]
        return f"body.{field}", {"code": "wrong-type", "detail": SENTENCES[f"{kind}_type"]}
    if "limit" in query:
        detail = SENTENCES["less_than_equal"].format(le=100)
        return "query.limit", {"code": "too-large", "detail": detail, "limit": 100}
    if required:
        return f"query.{min(required)}", {"code": "missing", "detail": SENTENCES["missing"]}
    return "query.verbose", {"code": "unknown", "detail": SENTENCES["extra_forbidden"]}
