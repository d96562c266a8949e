"""The functions of Plaza in this process, and their sample events."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from local.paths import ROOT
from local.stack.functions import load_function


@cache
def handler(folder: str) -> Callable[[dict[str, Any], object], Any]:
    found: Callable[[dict[str, Any], object], Any] = load_function(folder).handler
    return found


def event(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return found


def ask(name: str, folder: str = "api/reactions") -> tuple[int, Any]:
    response = handler(folder)(event(name), None)
    return response["statusCode"], json.loads(response["body"])
