"""A process that runs the functions of one checkout: ``process FOLDER``.

It reads one call a line, in JSON, and prints one reply a line: ``result``, the lines that were
logged, and the trace of an exception. ``layers/common/python`` of the checkout must be the first
entry of PYTHONPATH: the process ends if it imports ``plaza`` from elsewhere. Whatever else it
imports needs no package of Plaza.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from local.stack.functions import CONTEXT, load_function
from tests.support.schedules import run_without_waits

CHECKOUT = Path(sys.argv[1])
_real_monotonic = time.monotonic
_passed_s = 0.0


def _monotonic() -> float:
    return _real_monotonic() + _passed_s


time.monotonic = _monotonic  # before any module of the checkout imports it


def import_infra(name: str) -> Any:
    """Import a module of plaza.infra (``http.callers``), which had no rooms up to the baseline."""
    try:
        return import_module(f"plaza.infra.{name}")
    except ModuleNotFoundError:
        return import_module(f"plaza.infra.{name.rpartition('.')[2]}")


@cache
def load(folder: str) -> ModuleType:
    return load_function(folder, CHECKOUT)


def start(folders: list[str]) -> None:
    """Load all functions, as their processes would. Raises ImportError, and for a module of another
    checkout RuntimeError."""
    for folder in folders:
        load(folder)
    for name, module in sys.modules.items():
        if name == "plaza" or name.startswith("plaza."):
            file = Path(str(module.__file__))
            if not file.is_relative_to(CHECKOUT):
                raise RuntimeError(f"{name} is imported from {file}, not from {CHECKOUT}")


def answer(folder: str, event: dict[str, Any], caller: list[Any] | None) -> Any:
    """Answer a request; ``caller``: the id and the role of a user who needs no session."""
    from plaza.people.auth.caller_identity import identify

    function, callers = load(folder), import_infra("http.callers")
    function.app.identify = identify if caller is None else lambda *_: callers.Caller(*caller)
    return function.handler(event, CONTEXT)


def invoke(folder: str, event: dict[str, Any]) -> Any:
    """Invoke a function."""
    return load(folder).handler(event, CONTEXT)


def run(folder: str) -> None:
    """Run a schedule as if all waiting times were over."""
    run_without_waits(load(folder).handler)


def migrate() -> list[str]:
    """Apply the migrations of the checkout; return the names of those that were missing."""
    applied: list[str] = import_infra("mysql.migrations").apply_migrations()
    return applied


def let_pass(seconds: float) -> None:
    """Let time pass for what the process has cached."""
    global _passed_s
    _passed_s += seconds


def reset() -> None:
    """Become like a new process, without connections and caches."""
    import_infra("runtime.process").reset_process()


def read_code(phone: str) -> str:
    """Return the sign-in code that was sent to a phone."""
    from plaza.people.auth.sms import read_echo

    return (read_echo(phone) or "")[:6]


CALLS: dict[str, Callable[..., Any]] = {
    call.__name__: call
    for call in (start, answer, invoke, run, migrate, let_pass, reset, read_code)
}


def main() -> None:
    """Serve calls until the end of the input."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    for line in sys.stdin:
        name, arguments = json.loads(line)
        sys.stdout = sys.stderr = log = io.StringIO()
        result, error = None, None
        try:
            result = CALLS[name](*arguments)
        except Exception:
            error = traceback.format_exc()
        reply = {"result": result, "log": log.getvalue(), "error": error}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
