"""A log of calls."""

from typing import Any, TypeVar

Result = TypeVar("Result")


def record_call(calls: list[Any], call: object, result: Result) -> Result:
    """Append a call to the log; return its result."""
    calls.append(call)
    return result
