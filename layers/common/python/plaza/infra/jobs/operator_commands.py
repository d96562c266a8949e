"""Operator commands: how a context declares them, in the module that its manifest names.

A command is a function whose keyword arguments are in the request, converted and checked by
pydantic: nothing that requests load imports this module. Two lines of each run have the caller and
the arguments, none of which is a text that could be a phone number or a token.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, validate_call

from plaza.infra.http.requests import MAX_ID
from plaza.infra.mysql import driver
from plaza.infra.runtime.errors import PlazaError
from plaza.infra.runtime.observability import error_fields, record

OPERATOR = "operate"
"""The operator's id in the records of what a command changed; its log lines have the caller."""

Result = dict[str, Any]
_NO_PRIVILEGE = (
    "the login of operators lacks a privilege of MySQL, which the deploy could not grant: see"
    " privilege_refused in the log of CreateUsers"
)
_NOT_LOGGED = {"document", "reason", "url"}  # texts, and what may have a password of a receiver


class Refused(PlazaError):
    """A command was not run: the text says why, without values of its arguments."""


class OperatorCommand(NamedTuple):
    """A command: its name, ``set-role`` for ``set_role``, and the function that checks arguments,
    records the run and returns the result."""

    name: str
    run: Callable[..., Result]


def _check_digits(value: object) -> object:
    """Return ``value`` unless it is a text with more than digits, such as a phone number."""
    if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,19}", value):
        raise ValueError("it is no id")
    return value


Id = Annotated[int, BeforeValidator(_check_digits), Field(gt=0, le=MAX_ID)]


def command(function: Callable[..., Result]) -> OperatorCommand:
    """Make a command of a function: its arguments are checked, and its runs are recorded. A run
    raises Refused when MySQL denies a privilege, and what ``function`` raises."""
    name = function.__name__.replace("_", "-")

    @validate_call
    @wraps(function)
    def run_recorded(**arguments: Any) -> Result:
        known = {name: value for name, value in arguments.items() if name not in _NOT_LOGGED}
        record("command_began", command=name, arguments=known)
        try:
            result = function(**arguments)
        except Exception as error:
            record("command_failed", command=name, **error_fields(error))
            if driver.means(error, driver.Meaning.NO_PRIVILEGE):
                raise Refused(_NO_PRIVILEGE) from error
            raise
        record("command_ended", command=name)
        return result

    return OperatorCommand(name, run_recorded)
