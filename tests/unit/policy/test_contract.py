"""The contract reads well, its examples are valid, and generators of clients take it."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema_rs
import pytest

from cli.paths import CONTRACT
from plaza.infra.http.arguments import CODES
from plaza.infra.http.requests import PARAMETER_HEADERS
from plaza.infra.http.responses import PROBLEM, PROBLEM_TYPES
from plaza.infra.http.routes import BEARER, BY_ROLE, MEMBER, OPTIONAL, OWNER, PUBLIC
from plaza.infra.runtime.errors import Conflict, PlazaError
from tests.unit.policy.modules import LAYER, ROOT
from tests.unit.policy.template import resources
from tools.site.reference import PROBLEM as PROBLEM_ROW

TEXT = CONTRACT.read_text()
DOCUMENT: dict[str, Any] = json.loads(TEXT)
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
VERBS = re.compile(
    "(appoint|block|cancel|collect|create|delete|follow|get|hide|issue|join|leave|like|link|list|place"
    "|purge|query"
    "|redeem|redrive|remove|replace|resolve|search|send|set|show|start|sweep|unblock|uncollect|unfollow|unlike"
    "|update|withdraw)_.*"
)
PATTERN_OF_TOKENS = "^[0-9A-Za-z_-]{1,64}$"
MAX_SUMMARY_CHARS = 60
MAX_PATTERN_CHARS = 100
COINED = re.compile(
    r"\b(wish|hint|somebody|nobody|everybody|said|told|held|away|gives? up|gave|put off|in work"
    r"|anew|good for|one's)\b",
    re.IGNORECASE,
)


class Operation(NamedTuple):
    """An operation of the contract."""

    method: str
    path: str
    spec: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.spec["operationId"])

    @property
    def bodies(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """What it is a body of (``request`` or a status), its media type and its content."""
        parts = {"request": self.spec.get("requestBody", {}), **self.spec["responses"]}
        for name, part in parts.items():
            for media_type, content in part.get("content", {}).items():
                yield name, media_type, content


OPERATIONS = [
    Operation(method, path, spec)
    for path, methods in DOCUMENT["paths"].items()
    for method, spec in methods.items()
]
every_operation = pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda operation: operation.id
)


def resolve(value: dict[str, Any]) -> dict[str, Any]:
    """Returns ``value``, or what it refers to."""
    document: Any = value
    if "$ref" in value:
        document = DOCUMENT
        for part in value["$ref"].removeprefix("#/").split("/"):
            document = document[part]
    return dict(document)


def examples_of(content: dict[str, Any]) -> list[Any]:
    """The examples of a body."""
    if "example" in content:
        return [content["example"]]
    return [resolve(example)["value"] for example in content.get("examples", {}).values()]


def find_errors(schema: dict[str, Any], value: Any) -> list[str]:
    """What is wrong with ``value``, by a validator that is not pydantic."""
    whole = {**schema, "components": {"schemas": SCHEMAS}}
    validator = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
    return [error.message for error in validator.iter_errors(value)]


def schemas_within(schema: Any) -> Iterator[dict[str, Any]]:
    """``schema``, and all that it contains, without following references."""
    if not isinstance(schema, dict):
        return
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from schemas_within(inner)
    for inner in schema.get("anyOf", ()):
        yield from schemas_within(inner)
    yield from schemas_within(schema.get("items"))


def all_schemas() -> list[tuple[str, dict[str, Any]]]:
    """Every schema of the contract, with where it is."""
    schemas = list(SCHEMAS.items())
    for operation in OPERATIONS:
        parameters = operation.spec.get("parameters", ())
        schemas += [
            (f"{operation.id} {parameter['name']}", parameter["schema"]) for parameter in parameters
        ]
        schemas += [
            (f"{operation.id} {name}", content["schema"]) for name, _, content in operation.bodies
        ]
    return [(name, item) for name, schema in schemas for item in schemas_within(schema)]


# ---------------------------------------------------------------- names and texts


@every_operation
def test_an_operation_has_a_summary_a_description_and_a_tag(operation: Operation) -> None:
    summary, description = operation.spec["summary"], operation.spec["description"]
    assert re.fullmatch(r"[A-Z][^/{}]*[^.\s]", summary), summary
    assert len(summary) <= MAX_SUMMARY_CHARS
    assert description.endswith(".")
    assert re.search(r"Counts as one (read|write|request) of the caller", description)
    assert len(operation.spec["tags"]) == 1


@every_operation
def test_a_path_with_an_id_may_lead_nowhere(operation: Operation) -> None:
    """An id that is malformed is one that does not exist."""
    assert "{" not in operation.path or "404" in operation.spec["responses"]


@every_operation
def test_an_operation_says_whether_it_needs_a_session(operation: Operation) -> None:
    """An empty list needs none; without the field, a reader takes the operation for undecided."""
    assert operation.spec["security"] in (BEARER, *BY_ROLE, OWNER, MEMBER, OPTIONAL, PUBLIC)


@every_operation
def test_each_operation_but_health_refuses_unknown_parameters(operation: Operation) -> None:
    is_health = operation.id == "get_health"
    assert ("400" in operation.spec["responses"]) != is_health


@every_operation
def test_what_is_limited_has_the_headers_of_the_limit(operation: Operation) -> None:
    for status, response in operation.spec["responses"].items():
        is_shown = operation.id != "get_health" and (status[0] == "2" or status == "429")
        results = {name for name in response.get("headers", {}) if name.startswith("RateLimit")}
        assert results == ({"RateLimit", "RateLimit-Policy"} if is_shown else set()), status


def test_public_operations_are_these() -> None:
    assert {operation.id for operation in OPERATIONS if operation.spec["security"] == PUBLIC} == {
        "create_session",
        "create_visitor_id",
        "get_contract",
        "get_health",
        "get_totals",
        "send_code",
    }


def test_the_contract_names_a_contact_a_licence_and_the_version_of_its_client() -> None:
    info = DOCUMENT["info"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    clients = [
        json.loads((ROOT / folder / "package.json").read_text())
        for folder in ("clients/typescript", "web/app", "web/console")
    ]
    assert {info["version"], *(client["version"] for client in clients)} == {project["version"]}
    assert info["license"] == {"name": "MIT License", "identifier": project["license"]}
    assert info["contact"]["url"].startswith("https://")


def test_browsers_may_read_each_header_of_a_response() -> None:
    exposed = set(
        resources("AWS::Serverless::HttpApi")["Api"]["CorsConfiguration"]["ExposeHeaders"]
    )
    named = {
        name.lower()
        for operation in OPERATIONS
        for response in operation.spec["responses"].values()
        for name in response.get("headers", {})
    }
    # The edge sets the first; a 401 has www-authenticate.
    of_all = {"age", "deprecation", "link", "sunset", "www-authenticate", "x-request-id"}
    assert named | of_all == exposed


def test_operation_ids_are_a_verb_and_a_noun_and_unique() -> None:
    ids = [operation.id for operation in OPERATIONS]
    assert len(set(ids)) == len(ids)
    assert [item for item in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)+", item)] == []
    assert [item for item in ids if not VERBS.fullmatch(item)] == []


def test_every_tag_has_a_text_and_every_text_a_tag() -> None:
    used = {tag for operation in OPERATIONS for tag in operation.spec["tags"]}
    assert {tag["name"] for tag in DOCUMENT["tags"]} == used
    assert all(re.fullmatch(r"[A-Z][^\n]*\.", tag["description"]) for tag in DOCUMENT["tags"])


def test_schemas_are_named_like_resources_and_all_used() -> None:
    assert [name for name in SCHEMAS if not re.fullmatch(r"([A-Z][a-z]+)+", name)] == []
    assert [name for name in SCHEMAS if re.search("Body|Question|Answer|Contract", name)] == []
    assert [name for name, schema in SCHEMAS.items() if not schema.get("description")] == []
    used = set(re.findall(r'"#/components/schemas/(\w+)"', TEXT))
    assert used == set(SCHEMAS)


def test_every_parameter_is_described() -> None:
    for operation in OPERATIONS:
        for parameter in operation.spec.get("parameters", ()):
            text = parameter.get("description", "")
            assert re.fullmatch(r"[A-Z][^\n]*\.", text), f"{operation.id} {parameter['name']}"


def test_the_texts_have_no_coined_words() -> None:
    assert sorted({item[0].lower() for item in COINED.finditer(TEXT)}) == []


# ---------------------------------------------------------------- examples


@every_operation
def test_each_body_has_an_example_that_is_valid(operation: Operation) -> None:
    for name, media_type, content in operation.bodies:
        examples = examples_of(content)
        assert examples, f"{name} {media_type}"
        for example in examples:
            assert find_errors(content["schema"], example) == [], f"{name} {example}"


def test_examples_of_schemas_are_valid() -> None:
    for name, schema in SCHEMAS.items():
        for example in schema.get("examples", ()):
            assert find_errors(schema, example) == [], name


@every_operation
def test_examples_of_problems_are_what_the_server_sends(operation: Operation) -> None:
    known = {error.slug: (error.status, error.title) for error in errors()}
    for status, media_type, content in operation.bodies:
        assert (media_type == PROBLEM) == (status.isdigit() and int(status) >= 400)
        if media_type != PROBLEM:
            continue
        for slug, example in content["examples"].items():
            problem = resolve(example)["value"]
            assert problem["type"] == PROBLEM_TYPES + slug
            assert (problem["status"], problem["title"]) == known[slug]
            assert problem["status"] == int(status)
            assert ("errors" in problem) == (slug == "invalid-request")


def test_each_problem_has_a_row_from_which_the_page_of_its_type_is_made() -> None:
    rows = PROBLEM_ROW.findall((ROOT / "docs" / "problems.md").read_text())
    raised = {(str(e.status), e.slug, e.title) for e in errors() if e is not Conflict}
    assert sorted(row[:3] for row in rows) == sorted(raised)


def test_each_code_of_a_field_is_documented() -> None:
    page = (ROOT / "docs" / "problems.md").read_text()
    table = page.partition("## Codes of fields")[2].partition("## Problems")[0]
    documented = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
    sources = [path.read_text() for path in (LAYER / "plaza").rglob("*.py")]
    raised = re.findall(r'\bcode="([a-z-]+)"|FieldError\("([a-z-]+)"', "\n".join(sources))
    sent = {"unknown", "wrong-type", "invalid", "invalid-json", *CODES.values()}
    assert sorted(documented) == sorted(sent.union(*raised) - {""})


def test_what_a_201_created_can_be_read_where_its_location_leads() -> None:
    """Except for a session, which ends there: DELETE /auth/sessions/current. Passkeys and keys of
    servers are in the lists that their locations lead to."""
    for operation in OPERATIONS:
        created = operation.spec["responses"].get("201", {})
        if "Location" not in created.get("headers", {}) or operation.id in (
            "create_session",
            "create_passkey",
            "create_server_key",
        ):
            continue
        collection = operation.path.rpartition("/")[2]
        assert any(
            item.method == "get" and re.fullmatch(rf"/{collection}/{{\w+}}", item.path)
            for item in OPERATIONS
        ), operation.id


def test_an_error_with_a_slug_has_an_example_of_its_own() -> None:
    """Clients get the one of its base else. The examples of three differ by operation."""
    without = {e.slug for e in errors() if "slug" in vars(e) and "example" not in vars(e)}
    assert without == {"invalid-request", "not-found", "gone", "conflict", "method-not-allowed"}
    assert all("slug" in vars(error) for error in errors() if "example" in vars(error))


def errors() -> Iterator[type[PlazaError]]:
    """All errors that the API sends."""
    for path in (LAYER / "plaza").glob("*/*/*.py"):
        if re.search(r"^    slug = ", path.read_text(), re.MULTILINE):
            importlib.import_module(
                f"plaza.{path.parent.parent.name}.{path.parent.name}.{path.stem}"
            )
    results = [PlazaError]
    for error in results:
        results += error.__subclasses__()
    return iter(results)


# ---------------------------------------------------------------- generators


def test_patterns_are_short_and_work_in_every_language() -> None:
    TEXT.encode()  # raises on lone surrogates
    for name, schema in all_schemas():
        pattern = schema.get("pattern", "")
        assert len(pattern) <= MAX_PATTERN_CHARS, name
        assert pattern.isascii(), name
        assert not re.search(r"\\[xupPA-CE-RT-VX-Z]|\(\?", pattern), f"{name}: {pattern}"
        re.compile(pattern)


def test_every_schema_has_a_type() -> None:
    """Generators make ``any`` of what has none. The body of a dead letter may be anything. Totals
    are those of a post, of another text, or of a user; their ``type`` says which."""
    untyped = {
        name
        for name, schema in all_schemas()
        if not schema.keys() & {"$ref", "anyOf", "type"} and schema.keys() - {"description"}
    }
    assert untyped == set()
    unions = [name for name, schema in all_schemas() if len(schema.get("anyOf", ())) > 2]
    assert unions == ["TotalsResponse"]
    for name, schema in all_schemas():
        if "anyOf" in schema and name not in unions:
            assert {"type": "null"} in schema["anyOf"], name


def test_a_parameter_is_never_null() -> None:
    for operation in OPERATIONS:
        for parameter in operation.spec.get("parameters", ()):
            assert "type" in parameter["schema"], f"{operation.id} {parameter['name']}"


def test_every_text_of_a_request_is_limited() -> None:
    """A constraint that the server has and the contract lacks would show here."""
    limits = {"const", "enum", "pattern", "maxLength"}
    of_requests = {name for name in SCHEMAS if name.endswith(("Request", "Reference"))}
    parameters = {
        f"{operation.id} {parameter['name']}"
        for operation in OPERATIONS
        for parameter in operation.spec.get("parameters", ())
    }
    unlimited = {
        name
        for name, schema in all_schemas()
        if name in of_requests | parameters
        and schema.get("type") == "string"
        and not schema.keys() & limits
    }
    assert unlimited == set()


def test_bodies_are_named_schemas() -> None:
    inline = {
        f"{operation.id} {name}"
        for operation in OPERATIONS
        for name, _, content in operation.bodies
        if set(content["schema"]) != {"$ref"}
    }
    assert inline == {"get_contract 200"}


def test_names_that_generators_derive_differ() -> None:
    """Python, Java and TypeScript write operations and schemas in other cases."""
    for names in ([item.id for item in OPERATIONS], list(SCHEMAS)):
        derived = [re.sub("[^a-z0-9]", "", name.lower()) for name in names]
        assert len(set(derived)) == len(derived)
    for name, schema in SCHEMAS.items():
        fields = [field.replace("_", "") for field in schema.get("properties", {})]
        assert len(set(fields)) == len(fields), name


@pytest.mark.skipif(
    importlib.util.find_spec("openapi_python_client") is None,
    reason="openapi-python-client is not installed",
)
def test_a_python_client_is_generated_without_a_warning_and_reads_the_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "generated_plaza_client"
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    command += ["--path", str(CONTRACT), "--output-path", str(target), "--fail-on-warning"]
    # It formats with the ruff of this environment, and warns without one.
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    completed = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env
    )
    printed = completed.stdout + completed.stderr
    assert completed.returncode == 0, printed
    assert "WARNING" not in printed.upper(), printed
    modules = {path.stem for path in (target / "api").glob("*/*.py")}
    assert {operation.id for operation in OPERATIONS} <= modules
    monkeypatch.syspath_prepend(tmp_path)
    models = importlib.import_module(f"{target.name}.models")
    for name, schema in SCHEMAS.items():
        for example in schema.get("examples", ()):
            assert getattr(models, name).from_dict(example).to_dict().keys() == example.keys()


OPENAPI_TYPESCRIPT = shutil.which("openapi-typescript")


@pytest.mark.skipif(OPENAPI_TYPESCRIPT is None, reason="openapi-typescript is not in PATH")
def test_types_of_typescript_are_generated_without_a_warning(tmp_path: Path) -> None:
    target = tmp_path / "plaza.d.ts"
    command = [OPENAPI_TYPESCRIPT or "", str(CONTRACT), "--output", str(target)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert "warn" not in (completed.stdout + completed.stderr).lower(), completed.stderr
    generated = target.read_text()
    assert all(f"    {operation.id}: {{" in generated for operation in OPERATIONS)


def test_the_headers_of_routes_are_known_to_the_resolver() -> None:
    """It gives a function its defaults, without pydantic, if a request has none of them."""
    parameters = [
        parameter for operation in OPERATIONS for parameter in operation.spec.get("parameters", ())
    ]
    headers = {parameter["name"].lower() for parameter in parameters if parameter["in"] == "header"}
    assert headers == set(PARAMETER_HEADERS)


def test_each_total_of_reactions_has_an_order_token_and_no_other_total_has_one() -> None:
    """Clients order two values of a total by it: docs/live-numbers.md. The ``at`` of the unread
    counter orders its states, and the total of a notification may be one of reactions."""
    checked: set[str] = set()
    of_kinds: set[str] = set()
    of_unread: set[str] = set()
    for name, schema in SCHEMAS.items():
        fields, required = schema.get("properties", {}), {*schema.get("required", ())}
        totals = {"likes", "collects", "followers"} & {*fields}
        if name == "NotificationResponse" and "total_at" in fields:
            totals |= {"total"}
        tokens = {field for field, spec in fields.items() if PATTERN_OF_TOKENS in str(spec)}
        if "at" in tokens:
            (of_kinds if "total" in fields else of_unread).add(name)
            tokens.discard("at")
        assert tokens == {f"{total}_at" for total in totals}, name
        assert totals | tokens <= required, name
        assert all({"type": "null"} in fields[token]["anyOf"] for token in tokens), name
        checked |= totals
    assert checked - {"total"} == {"likes", "collects", "followers"}
    assert of_kinds == {"LiveTotal", "ReactionResponse", "ReactionState", "ReactionTotal"}
    assert of_unread == {
        "UnreadResponse",
        "MarkReadRequest",
        "MarkReadResponse",
        "NotificationsResponse",
    }


# ---------------------------------------------------------------- responses are open


def find_bodies() -> Iterator[tuple[Any, Any]]:
    """Yield (schema, example) of each response."""
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            for response in operation["responses"].values():
                for body in response.get("content", {}).values():
                    if "example" in body:
                        yield body["schema"], body["example"]


def renew(schema: Any, value: Any) -> Any:
    """Return a value as a later version may send it: more fields, other values of open enums."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    if schema.get("x-open-enum"):
        return "added-later"
    if "anyOf" in schema:
        fits = (c for c in schema["anyOf"] if is_valid_example(c, value))
        return renew(next(fits), value)
    if isinstance(value, list):
        return [renew(schema.get("items", {}), item) for item in value]
    if isinstance(value, dict) and "properties" in schema:
        known = {name: renew(schema["properties"][name], item) for name, item in value.items()}
        return known | {"added_later": {"on": True}}
    return value


def open_enums(schema: Any) -> Any:
    """Return the contract as a client reads it that follows ``x-open-enum``."""
    if isinstance(schema, dict):
        is_open = schema.get("x-open-enum")
        return {k: open_enums(v) for k, v in schema.items() if not (is_open and k == "enum")}
    return [open_enums(part) for part in schema] if isinstance(schema, list) else schema


def is_valid_example(schema: Any, value: Any) -> bool:
    root = {**schema, "components": DOCUMENT["components"]}
    return bool(jsonschema_rs.is_valid(root, value))


def test_a_response_with_new_fields_and_values_is_valid() -> None:
    components = {"schemas": open_enums(SCHEMAS)}
    renewed = 0
    for schema, example in find_bodies():
        later = renew(schema, example)
        renewed += "added-later" in json.dumps(later)
        jsonschema_rs.validate({**schema, "components": components}, later)
    assert renewed > 20


def test_a_request_is_closed_and_a_response_is_open() -> None:
    assert SCHEMAS["ReportRequest"]["additionalProperties"] is False
    closed = {name for name, s in SCHEMAS.items() if s.get("additionalProperties") is False}
    assert not {name for name in closed if name.endswith(("Response", "Page", "Details"))}
