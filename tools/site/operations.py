"""The pages of the reference: each operation of the contract with its parameters, samples of curl,
TypeScript and Python, an example of its response, and its problems.

The samples name what the clients have: tests send them to a stand-in and check their types.
"""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tools.python_client import Call, describe_call

WIDTH = 100
"""Of a line of a sample."""
ID = "9000001"
_METHODS = ("get", "put", "post", "patch", "delete")
_KEY = "Idempotency-Key"
_VALUES = {
    "queue": "reactions",
    "of": [f"post:{ID}"],
    "name": "corner",
    "x": 13.405,
    "y": 52.52,
    "ids": [ID],
}
"""Parameter -> its value in samples; all others are ids."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the contract, and what its samples send."""

    call: Call
    tag: str

    @property
    def id(self) -> str:
        return str(self.call.operation["operationId"])

    @property
    def title(self) -> str:
        return str(self.call.operation["summary"])

    @property
    def anchor(self) -> str:
        """The anchor of its heading."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")

    @property
    def page(self) -> str:
        return page_of(self.tag)

    @property
    def parameters(self) -> list[dict[str, Any]]:
        return list(self.call.operation.get("parameters", ()))

    @property
    def path_values(self) -> list[str]:
        """The value of each parameter of the path, in order."""
        names = re.findall(r"\{(\w+)\}", self.call.path)
        return [str(_VALUES.get(name, ID)) for name in names]

    @property
    def query(self) -> dict[str, Any]:
        """The query parameters that the operation requires."""
        required = [p for p in self.parameters if p["in"] == "query" and p["required"]]
        return {p["name"]: _VALUES.get(p["name"], ID) for p in required}

    @property
    def body(self) -> Any:
        """The example of the request; None without one."""
        content = self.call.operation.get("requestBody", {}).get("content", {})
        return content.get("application/json", {}).get("example")

    @property
    def body_schema(self) -> str | None:
        content = self.call.operation.get("requestBody", {}).get("content", {})
        ref = content.get("application/json", {}).get("schema", {}).get("$ref", "")
        return str(ref).rpartition("/")[2] or None

    @property
    def needs_token(self) -> bool:
        security = self.call.operation.get("security", [])
        return bool(security) and {} not in security


def page_of(tag: str) -> str:
    """Return the path of the page of a tag."""
    return f"reference/{tag.replace(' ', '-')}.md"


def list_calls(contract: dict[str, Any]) -> Iterator[Operation]:
    """Yield all operations in the order of the contract."""
    for path, item in contract["paths"].items():
        for method in _METHODS:
            if operation := item.get(method):
                call = describe_call(path, method, operation, contract["components"]["schemas"])
                for tag in operation["tags"]:
                    yield Operation(call, tag)


def make_page(contract: dict[str, Any], tag: dict[str, Any], redoc: str) -> str:
    """Return the page of a tag."""
    parts = [
        f"# {tag['name'].capitalize()}: reference\n",
        f"{tag['description']}\n",
        "In the samples `plaza` is a client with a session, and `$URL` and `$TOKEN` are of [a local"
        " stack](../api.md): [samples](../reference.md#samples).\n",
    ]
    parts += [
        _describe(operation, contract["components"]["schemas"], redoc)
        for operation in list_calls(contract)
        if operation.tag == tag["name"]
    ]
    return "\n".join(parts)


def _describe(operation: Operation, schemas: dict[str, Any], redoc: str) -> str:
    details = operation.call.operation
    anchor = operation.tag.replace(" ", "-")
    link = f"../{redoc}#tag/{anchor}/operation/{operation.id}"
    parts = [
        f"## {operation.title}\n",
        f"`{operation.call.method} {operation.call.path}` ([all fields]({link}))\n",
        f"{details.get('description', '')}\n",
        *_list_parameters(operation, schemas),
    ]
    samples = {
        "curl": ("sh", make_curl(operation)),
        "TypeScript": ("ts", make_typescript(operation)),
        "Python": ("py", make_python(operation)),
    }
    for name, (language, text) in samples.items():
        block = _indent(f"```{language}\n{text}\n```")
        parts.append(f'=== "{name}"\n\n{block}\n')
    parts += _list_responses(operation)
    return "\n".join(parts)


def _list_parameters(operation: Operation, schemas: dict[str, Any]) -> Iterator[str]:
    rows = [
        (p["name"], p["in"], p.get("required", False), p["schema"], p.get("description", ""))
        for p in operation.parameters
    ]
    if operation.body_schema:
        schema = schemas[operation.body_schema]
        required = schema.get("required", ())
        rows += [
            (name, "body", name in required, field, field.get("description", ""))
            for name, field in schema["properties"].items()
        ]
    if rows:
        yield "| parameter | in | type | |\n|---|---|---|---|"
        for name, where, is_required, schema, text in rows:
            kind = _name_type(schema) + ("" if is_required else ", optional")
            cells = (f"`{name}`", where, kind, " ".join(text.split()).replace("|", "\\|"))
            yield f"| {' | '.join(cells)} |"
        yield ""


def _name_type(schema: dict[str, Any]) -> str:
    match schema:
        case {"$ref": str(ref)}:
            return ref.rpartition("/")[2]
        case {"anyOf": list(choices)}:
            return " or ".join(_name_type(choice) for choice in choices)
        case {"enum": list(values)}:
            return ", ".join(f"`{value}`" for value in values)
        case {"type": "array", "items": items}:
            return f"list of {_name_type(items)}"
        case {"type": str(kind), "default": default}:
            return f"{kind} (`{json.dumps(default)}`)"
        case {"type": str(kind)}:
            return kind
        case {"const": value}:
            return f"`{value}`"
    return "any"


def _list_responses(operation: Operation) -> Iterator[str]:
    problems: list[str] = []
    for status, response in operation.call.operation["responses"].items():
        content = response.get("content", {})
        example = content.get("application/json", {}).get("example")
        if status.startswith("2"):
            yield f"**{status}** {response['description']}\n"
            if example is not None:
                yield f"```json\n{render(example)}\n```\n"
        problems += content.get("application/problem+json", {}).get("examples", {})
    if problems:
        names = ", ".join(f"`{slug}`" for slug in problems)
        yield f"[Problems](../problems.md): {names}.\n"


def make_curl(operation: Operation) -> str:
    """Return the request of an operation as a command of a shell."""
    call = operation.call
    path = _fill(operation)
    query = "&".join(f"{name}={_join(value)}" for name, value in operation.query.items())
    url = f'"$URL{path}?{query}"' if query else f"$URL{path}"
    body = operation.body
    implied = "GET" if body is None else "POST"
    words = ["curl -s", *([f"-X {call.method}"] if call.method != implied else []), url]
    lines = [" ".join(words)]
    if operation.needs_token:
        lines.append('-H "Authorization: Bearer $TOKEN"')
    if any(p["name"] == _KEY for p in operation.parameters):
        lines.append(f"-H '{_KEY}: a-key-of-yours'")
    if body is not None:
        lines.append("-H 'Content-Type: application/json'")
        lines.append(f"-d {shlex.quote(render(body))}")
    joined = " ".join(lines)
    return joined if len(joined) <= WIDTH else " \\\n  ".join(lines)


def make_typescript(operation: Operation) -> str:
    """Return the call of the TypeScript client."""
    call = operation.call
    arguments = [json.dumps(value) for value in operation.path_values]
    if operation.body is not None:
        arguments.append(render(operation.body, "ts"))
    if operation.query:
        arguments.append(render(operation.query, "ts"))
    called = f"plaza.{_camel(call.resource)}.{_camel(call.name)}({', '.join(arguments)})"
    if call.item:
        return f"for await (const item of {called}) console.log(item);"
    return f"await {called};" if call.result is None else f"const result = await {called};"


def make_python(operation: Operation) -> str:
    """Return the call of the Python client."""
    call = operation.call
    arguments = [json.dumps(value) for value in operation.path_values]
    if operation.body is not None:
        arguments.append(render(operation.body, "py"))
    arguments += [f"{name}={render(value, 'py')}" for name, value in operation.query.items()]
    called = f"plaza.{call.full_name}({', '.join(arguments)})"
    if call.item:
        return f"for item in {called}:\n    print(item)"
    return called if call.result is None else f"result = {called}"


_WORDS = {"json": ("true", "false", "null"), "ts": ("true", "false", "null")} | {
    "py": ("True", "False", "None")
}


def render(value: Any, language: str = "json", indent: int = 0) -> str:
    """Return a value as JSON, TypeScript or Python; in several lines if it is long."""
    yes, no, none = _WORDS[language]
    match value:
        case True:
            return yes
        case False:
            return no
        case None:
            return none
        case dict():
            parts = [
                f"{_name_key(key, language)}: {render(inner, language, indent + 2)}"
                for key, inner in value.items()
            ]
            brackets = "{}" if language != "ts" else "{ }"
        case list():
            parts = [render(inner, language, indent + 2) for inner in value]
            brackets = "[]"
        case _:
            return json.dumps(value, ensure_ascii=False)
    line = ", ".join(parts)
    if len(line) + indent <= WIDTH - 20 and "\n" not in line:
        space = " " if brackets == "{ }" and parts else ""
        return f"{brackets[0]}{space}{line}{space}{brackets[-1]}"
    inner = ",\n".join(f"{' ' * (indent + 2)}{part}" for part in parts)
    return f"{brackets[0]}\n{inner}\n{' ' * indent}{brackets[-1]}"


def _name_key(key: str, language: str) -> str:
    return key if language == "ts" and re.fullmatch(r"[A-Za-z_]\w*", key) else json.dumps(key)


def _fill(operation: Operation) -> str:
    values = iter(operation.path_values)
    return re.sub(r"\{\w+\}", lambda _: next(values), operation.call.path)


def _join(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.split("\n"))
