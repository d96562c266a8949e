"""The samples of the reference are true: they send their operation, in each of three languages."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from cli.paths import CONTRACT
from plaza_client import Plaza
from plaza_client.testing import ExampleTransport
from tests.support.node import CLIENT, MODULES, needs_npm_packages, run_node
from tools.site import operations
from tools.site.operations import Operation

DOCUMENT: dict[str, Any] = json.loads(CONTRACT.read_text())
OPERATIONS = list(operations.list_calls(DOCUMENT))
URL = "https://plaza.test"
every_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda item: item.id)


def send_by_python(operation: Operation) -> httpx.Request:
    """Run the sample of an operation against the stand-in; return the request that it sent."""
    transport = ExampleTransport()
    plaza = Plaza(URL, token="sk_test", transport=transport)
    exec(operations.make_python(operation), {"plaza": plaza, "print": lambda item: None})
    request = transport.requests[0]
    assert transport.names[0] == operation.call.full_name
    return request


def read_curl(operation: Operation) -> tuple[str, str, dict[str, str], Any]:
    """Return (method, target, headers, body) that the command of an operation sends."""
    text = operations.make_curl(operation).replace("\\\n", " ").replace("$URL", URL)
    words = iter(shlex.split(text))
    assert [next(words), next(words)] == ["curl", "-s"]
    method, target, headers, body = "", "", {}, None
    for word in words:
        match word:
            case "-X":
                method = next(words)
            case "-H":
                name, _, value = next(words).partition(": ")
                headers[name.lower()] = value
            case "-d":
                body = json.loads(next(words))
            case _:
                target = word.removeprefix(URL)
    return method or ("GET" if body is None else "POST"), target, headers, body


@every_operation
def test_curl_and_python_send_the_same_request(operation: Operation) -> None:
    request = send_by_python(operation)
    method, target, headers, body = read_curl(operation)
    assert method == request.method == operation.call.method
    assert urlsplit(target).path == request.url.path
    query = dict(httpx.QueryParams(urlsplit(target).query))
    assert query == dict(request.url.params)
    assert body == (json.loads(request.content) if request.content else None)
    assert ("idempotency-key" in headers) == ("idempotency-key" in request.headers)
    assert ("authorization" in headers) == operation.needs_token


@needs_npm_packages
def test_the_samples_of_typescript_have_the_types_of_the_client(tmp_path: Path) -> None:
    calls = [f"  {{ {operations.make_typescript(item)} }}" for item in OPERATIONS]
    source = tmp_path / "samples.mts"
    source.write_text(
        f'import {{ Plaza }} from "{CLIENT / "src" / "index.ts"}";\n'
        'const plaza = new Plaza("https://api.example");\n'
        "export async function samples() {\n" + "\n".join(calls) + "\n}\n"
    )
    configuration = {
        "extends": str(CLIENT / "tsconfig.json"),
        "compilerOptions": {
            "noEmit": True,
            "noUnusedLocals": False,
            "rewriteRelativeImportExtensions": False,
            "allowImportingTsExtensions": True,
            "typeRoots": [str(MODULES / "@types")],
        },
        "files": [str(source)],
    }
    (tmp_path / "tsconfig.json").write_text(json.dumps(configuration))
    run_node(MODULES / "typescript" / "bin" / "tsc", "--project", tmp_path / "tsconfig.json")


def test_a_long_body_is_written_in_lines() -> None:
    text = operations.render({"text": "long " * 20, "list": [True, None]}, "py")
    assert text.splitlines()[0] == "{"
    assert text.splitlines()[-2].strip() == '"list": [True, None]'
    assert operations.render({"a-b": 1, "c": {}}, "ts") == '{ "a-b": 1, c: {} }'


def test_a_page_has_parameters_samples_response_and_problems() -> None:
    [tag] = [tag for tag in DOCUMENT["tags"] if tag["name"] == "content"]
    page = operations.make_page(DOCUMENT, tag, "redoc.html")
    section = page.partition("## Create a post\n")[2].partition("\n## ")[0]
    for part in (
        "`POST /posts`",
        "| `title` | body | string |",
        '=== "curl"',
        "plaza.posts.create(",
        '"title": "Hello"',
        "**201** ",
        "`idempotency-key-reused`",
    ):
        assert part in section
