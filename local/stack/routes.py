"""The routes of the HTTP API, read from the OpenAPI body of the processed template.

MiniStack deploys an ``AWS::ApiGatewayV2::Api`` but ignores its body, so its API has no routes.
``local.stack.gateway`` serves the body that SAM wrote.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cli.paths import CommandError

METHODS = {"get", "put", "post", "delete", "patch", "head", "options"}
ANY = "x-amazon-apigateway-any-method"
_CORS = "x-amazon-apigateway-cors"
_FUNCTION = re.compile(r":function:([A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class Route:
    """One route: ``key`` as API Gateway writes it (``GET /posts/{id}``, ``$default``).

    ``uri`` is the integration's function.
    """

    key: str
    uri: str
    payload_format: str

    @property
    def function(self) -> str:
        """The function's name in ``uri``. Raises CommandError."""
        match = _FUNCTION.search(self.uri)
        if match is None:
            raise CommandError(f"{self.uri} names no function")
        return match[1]


def read_routes(body: Mapping[str, Any]) -> list[Route]:
    """Return the routes of an OpenAPI ``body``. Raises CommandError for a route without an
    integration or with an authorizer, which is not served locally."""
    routes = []
    for path, methods in body.get("paths", {}).items():
        for method, operation in methods.items():
            if method not in METHODS and method != ANY:
                continue
            verb = "ANY" if method == ANY else method.upper()
            key = "$default" if path.strip("/") == "$default" else f"{verb} {path}"
            integration = operation.get("x-amazon-apigateway-integration")
            if not integration:
                raise CommandError(f"route {key} of the template has no integration")
            if operation.get("security"):
                raise CommandError(f"route {key} of the template has an authorizer")
            routes.append(
                Route(
                    key,
                    integration["uri"],
                    str(integration.get("payloadFormatVersion", "2.0")),
                )
            )
    return routes


def read_cors(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the CORS settings as apigatewayv2 has them; None without any."""
    cors = body.get(_CORS)
    if cors is None:
        return None
    lists = ("allowOrigins", "allowMethods", "allowHeaders", "exposeHeaders")
    settings: dict[str, Any] = {
        name[0].upper() + name[1:]: _as_list(cors[name]) for name in lists if name in cors
    }
    if "maxAge" in cors:
        settings["MaxAge"] = int(cors["maxAge"])
    if "allowCredentials" in cors:
        settings["AllowCredentials"] = bool(cors["allowCredentials"])
    return settings


def read_body(template: str | Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """Return the paths and the CORS settings in the OpenAPI body of a processed template, with
    CloudFormation functions resolved. What else the body has is about the URL that AWS gives it.

    ``values``: what ``${Name}`` and ``${Name.Arn}`` stand for.
    """
    parsed = json.loads(template) if isinstance(template, str) else template
    bodies = [
        resource["Properties"]["Body"]
        for resource in parsed["Resources"].values()
        if resource["Type"] == "AWS::ApiGatewayV2::Api" and "Body" in resource["Properties"]
    ]
    if len(bodies) != 1:
        raise CommandError(f"the template has {len(bodies)} HTTP APIs with a body instead of one")
    served = {name: bodies[0][name] for name in ("paths", _CORS) if name in bodies[0]}
    resolved: dict[str, Any] = resolve(served, values)
    return resolved


def resolve(node: Any, values: Mapping[str, str]) -> Any:
    """Replace Ref, Fn::GetAtt, Fn::Sub and Fn::Join in ``node`` with ``values``."""
    if isinstance(node, list):
        return [resolve(item, values) for item in node]
    if not isinstance(node, dict):
        return node
    if len(node) == 1:
        ((function, argument),) = node.items()
        if function == "Ref":
            return _value(argument, values)
        if function == "Fn::GetAtt":
            path = argument if isinstance(argument, str) else ".".join(argument)
            return _value(path, values)
        if function == "Fn::Sub":
            text, extra = (argument, {}) if isinstance(argument, str) else argument
            known = {**values, **resolve(extra, values)}
            return re.sub(r"\$\{([^!}]+)\}", lambda match: _value(match[1], known), text)
        if function == "Fn::Join":
            separator, parts = argument
            return str(separator).join(str(part) for part in resolve(parts, values))
        if function == "Fn::If":  # conditions of a local stack are not evaluated
            raise CommandError("an HTTP API that depends on a condition is not supported locally")
    return {key: resolve(value, values) for key, value in node.items()}


def _as_list(value: Any) -> list[str]:
    return value.split(",") if isinstance(value, str) else [str(item) for item in value]


def _value(name: str, values: Mapping[str, str]) -> str:
    if name not in values:
        raise CommandError(f"the API of the template refers to {name}, which the stack lacks")
    return values[name]
