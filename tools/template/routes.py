"""The routes of the API, as the functions declare them, and the definition of the API."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from cli.paths import ROOT
from local.stack.functions import load_function
from tools.template.functions import importable, name_function
from tools.template.text import Shared

API = ROOT / "functions" / "api"
DEFAULT = "SystemApi"
"""The function of requests that no route takes."""


class Operation(NamedTuple):
    """A route. ``name``: its operation id, the name of its function in the code. ``security``: as
    the contract has it."""

    path: str
    method: str
    name: str
    function: str
    security: list[dict[str, list[str]]]


@cache
def read_operations() -> tuple[Operation, ...]:
    """Return all routes, by path and method."""
    operations = []
    with importable():
        for file in sorted(API.glob("*/app.py")):
            folder = file.parent.name
            function = name_function(folder, "api")
            for route, security, *_ in load_function(f"api/{folder}").app.endpoints.values():
                path, name = route.openapi_path, route.func.__name__
                operations.append(Operation(path, route.method, name, function, security))
    return tuple(sorted(operations))


def make_definition(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document of which API Gateway makes the routes.

    API Gateway does not send HEAD to a route of GET, so each path with GET has one of HEAD too.
    """
    paths: dict[str, Any] = {}
    for path, method, name, function, _ in operations:
        verbs = paths.setdefault(path, {})
        verbs[method.lower()] = {"operationId": name} | _invoke(path, function)
        if method == "GET":
            verbs["head"] = _invoke(path, function)
    paths["$default"] = {
        "x-amazon-apigateway-any-method": {"isDefaultRoute": True} | _invoke("", DEFAULT)
    }
    return {
        "openapi": "3.0.1",
        "info": {"title": {"Ref": "AWS::StackName"}, "version": "1.0"},
        "paths": paths,
    }


def choose_requests(operations: Iterable[Operation]) -> dict[str, str]:
    """Return function -> a request of it that changes nothing without a session: a GET with the
    fewest parameters, without a session if possible, else one that needs a session."""

    def rank(operation: Operation) -> tuple[bool, int, bool, str]:
        is_get, is_bound = operation.method == "GET", bool(operation.security[:1])
        needs_session = is_bound and {} not in operation.security
        return not is_get, operation.path.count("{"), needs_session is is_get, operation.path

    best: dict[str, Operation] = {}
    for operation in operations:
        known = best.setdefault(operation.function, operation)
        if rank(operation) < rank(known):
            best[operation.function] = operation
    return {
        function: f"{operation.method} {operation.path}"
        for function, operation in sorted(best.items())
    }


def make_permission(function: str) -> dict[str, Any]:
    """Return the permission of the API to invoke a function for all of its routes."""
    arn = "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/*"
    return {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "Action": "lambda:InvokeFunction",
            "FunctionName": {"Ref": f"{function}.Alias"},
            "Principal": "apigateway.amazonaws.com",
            "SourceArn": {"Fn::Sub": arn},
        },
    }


def _invoke(path: str, function: str) -> dict[str, Any]:
    """Return the part of a route that invokes the live version of a function, by an expression that
    ``sam local start-api`` understands."""
    arn = "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions"
    integration = {
        "type": "aws_proxy",
        "httpMethod": "POST",
        "payloadFormatVersion": "2.0",
        "uri": {"Fn::Sub": f"{arn}/${{{function}.Arn}}:live/invocations"},
    }
    names = re.findall(r"{(\w+)}", path)
    declared = [{"name": name, "in": "path", "required": True} for name in names]
    return ({"parameters": Shared("-".join(names), declared)} if names else {}) | {
        "responses": {},
        "x-amazon-apigateway-integration": Shared(function, integration),
    }
