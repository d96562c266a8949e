"""The contract, functions/api/system/openapi.json, generated from the routes' types.

``make contract`` writes it; a policy test fails when it is out of date.
"""

import json
import os
import re
from typing import Any

from aws_lambda_powertools.event_handler.openapi.merge import OpenAPIMerge
from aws_lambda_powertools.event_handler.openapi.models import HTTPBearer, SecurityScheme

from local.paths import ROOT
from local.stack.functions import load_function

API = ROOT / "functions" / "api"
CONTRACT = API / "system" / "openapi.json"

_DESCRIPTION = """The social side of an app, counted exactly.

Ids are strings: JavaScript loses integers above 2^53. Times are RFC 3339 UTC. Errors are
`application/problem+json` (RFC 9457) with a stable `type`. Lists give `next`, an opaque cursor for
the page after; null is the end.

Every answer has an `X-Request-Id`. A request may bring its own: 8 to 64 letters, digits and
`+/=._-`, a letter among them; another is ignored. With it, what came of a request can be found."""


def make_contract() -> str:
    for name, value in {
        "PLAZA_ENVIRONMENT": "local",
        "PLAZA_REDIS_URL": "redis://nowhere",
        "PLAZA_MYSQL_URL": "mysql://nobody@nowhere/plaza",
    }.items():
        os.environ.setdefault(name, value)
    # The functions do not import the OpenAPI models, which would slow down each cold start.
    bearer: dict[str, SecurityScheme] = {"bearer": HTTPBearer()}
    merge = OpenAPIMerge(
        title="Plaza",
        version="1.0.0",
        description=_DESCRIPTION,
        security_schemes=bearer,
        on_conflict="error",
    )
    for path in sorted(API.glob("*/app.py")):
        resolver = getattr(load_function(f"api/{path.parent.name}"), "app", None)
        if resolver is not None:
            merge.add_schema(resolver.get_openapi_schema(security_schemes=bearer))
    contract: dict[str, Any] = json.loads(merge.get_openapi_json_schema())
    for path, methods in contract["paths"].items():
        for method, operation in methods.items():
            _tidy(path, method, operation)
    schemas = contract["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return json.dumps(contract, indent=1, sort_keys=True) + "\n"


def _tidy(path: str, method: str, operation: dict[str, Any]) -> None:
    """Drop Powertools' own validation responses; Plaza's is 400, and declared."""
    operation["responses"].pop("422", None)
    operation["responses"].get("204", {}).pop("content", None)  # 204 has no content
    suffix = re.sub(r"\W", "_", path) + f"_{method}"
    operation["operationId"] = operation["operationId"].removesuffix(suffix)
    operation["summary"] = operation.pop("description", operation["summary"])


if __name__ == "__main__":
    CONTRACT.write_text(make_contract())
