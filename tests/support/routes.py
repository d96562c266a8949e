"""The routes of the template, as API Gateway matches requests to them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from cli.paths import CONTRACT
from local.stack.gateway import Match, Routes
from local.stack.routes import read_routes
from tests.unit.policy import template
from tools.template.routes import DEFAULT


def match(method: str, path: str) -> dict[str, Any]:
    """Return what the match of a request adds to its event: the key and parameters of the route."""
    result = find_match(method, path)
    parameters = {"pathParameters": dict(result.parameters)} if result.parameters else {}
    return {"routeKey": result.route.key, **parameters}


def find_match(method: str, path: str) -> Match:
    """Return the route that API Gateway sends a request to."""
    result = _routes().find(method, path)
    assert result
    return result


def find_folder(method: str, path: str) -> str:
    """Return the folder of the function that gets a request, such as ``api/shops``."""
    verb, _, pattern = find_match(method, path).route.key.partition(" ")
    function = _functions().get(("GET" if verb == "HEAD" else verb, pattern), DEFAULT)
    return "/".join(template.folder_of(function).parts[-2:])


def fill_path(path: str, ids: str = "11") -> str:
    """Return a path with ``ids`` for each id, and with likes of posts for any kind and target."""
    target_type = "post" if "{kind}" in path else "article"  # which servers make
    path = path.replace("{target_type}", target_type).replace("{kind}", "like")
    return re.sub(r"\{\w+\}", ids, path)


def check_documented(route: str, response: Mapping[str, Any]) -> None:
    """Assert that the contract has the status of a success of ``PUT /posts/{post_id}/likes/me``."""
    method, _, path = route.partition(" ")
    operation = contract()["paths"].get(path, {}).get(method.lower())
    if operation is not None and response["statusCode"] < 400:
        assert str(response["statusCode"]) in operation["responses"], f"{route}: {response}"


def operations(*methods: str) -> list[str]:
    """Return the operations of the contract, such as ``PUT /posts/{post_id}/likes/me``; of all
    methods when none is passed."""
    return [
        f"{method.upper()} {path}"
        for path, declared in contract()["paths"].items()
        for method in declared
        if not methods or method in methods
    ]


@cache
def contract() -> dict[str, Any]:
    """Return the contract of the API."""
    document: dict[str, Any] = json.loads(CONTRACT.read_text())
    return document


@cache
def _functions() -> dict[tuple[str, str], str]:
    return template.routes()


@cache
def _routes() -> Routes:
    return Routes(
        read_routes(template.resources("AWS::Serverless::HttpApi")["Api"]["DefinitionBody"])
    )
