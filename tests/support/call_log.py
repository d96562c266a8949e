"""Calls that a test has replaced, written down."""

from typing import Any, TypeVar

Result = TypeVar("Result")


def record_call(calls: list[Any], call: object, result: Result) -> Result:
    """Append a call to those made so far; returns its result."""
    calls.append(call)
    return result
