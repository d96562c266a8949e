"""The functions of Plaza in this process, and their sample events."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from cli.paths import ROOT
from local.stack.functions import CONTEXT, load_open_function, make_plain_token
from tests.support.routes import check_documented


@cache
def handler(folder: str) -> Callable[[dict[str, Any], object], Any]:
    """Return the handler of a function; an API function believes the plain tokens of samples.
    Without a context it gets ``CONTEXT``."""
    document: Callable[[dict[str, Any], object], Any] = load_open_function(folder).handler
    return lambda event, context: document(event, context or CONTEXT)


def authorization(user_id: int, role: str = "user") -> dict[str, str]:
    """Return the header by which a handler of ``handler`` takes a request for one of this user."""
    return {"authorization": f"Bearer {make_plain_token(user_id, role)}"}


def event(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return document


def ask(name: str, folder: str = "api/reactions") -> tuple[int, Any]:
    sample = event(name)
    response = handler(folder)(sample, None)
    check_documented(sample["routeKey"], response)
    return response["statusCode"], json.loads(response["body"])
