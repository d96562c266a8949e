"""The arguments of a route's function, read from an event and validated by pydantic.

A parameter is a ``PathText``, or one of Powertools' ``Query`` and ``Header``; the body is a
pydantic model. All errors of a request are reported together.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, signature
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from aws_lambda_powertools.event_handler.openapi.params import Param
from pydantic import TypeAdapter, ValidationError

from plaza.infra.http.requests import Event, InvalidRequest, PathText, find_unknown_parameters
from plaza.infra.http.texts import FieldError
from plaza.infra.runtime.errors import BadInput, NotFound

CODES = {
    "missing": "missing",
    "extra_forbidden": "unknown",
    "string_too_short": "too-short",
    "too_short": "too-short",
    "string_too_long": "too-long",
    "too_long": "too-long",
    "greater_than": "too-small",
    "greater_than_equal": "too-small",
    "less_than": "too-large",
    "less_than_equal": "too-large",
    "int_parsing_size": "too-large",
    "string_pattern_mismatch": "wrong-form",
    "literal_error": "not-listed",
    "enum": "not-listed",
}
"""Type of an error of pydantic -> its code in the API. docs/problems.md describes the codes."""
SENTENCES = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "string_too_short": "has a length of at least {min_length}",
    "string_too_long": "has a length of at most {max_length}",
    "too_short": "has at least {min_length} items",
    "too_long": "has at most {max_length} items",
    "greater_than": "is greater than {gt}",
    "greater_than_equal": "is at least {ge}",
    "less_than": "is less than {lt}",
    "less_than_equal": "is at most {le}",
    "int_parsing_size": "is too large",
    "string_pattern_mismatch": "has the form {pattern}",
    "literal_error": "is one of {expected}",
    "enum": "is one of {expected}",
    "string_type": "is a text",
    "int_type": "is a whole number",
    "int_from_float": "is a whole number",
    "float_type": "is a number",
    "bool_type": "is true or false",
    "list_type": "is a list",
    "dict_type": "is an object",
    "model_type": "is an object",
    "model_attributes_type": "is an object",
}
"""Type of an error of pydantic -> what the field is or has; others keep the text of pydantic."""
_NUMBERS = {
    int: re.compile(r"-?[0-9]+"),
    float: re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"),
}
"""How a query writes numbers; pydantic also takes ``+5``, ``1_0`` and spaces."""
_WRONG_TYPES = ("_type", "_parsing", "_from_float", "_attributes_type")  # ends of types
_LIMITS = ("min_length", "max_length", "ge", "gt", "le", "lt")  # in the context of an error
_SOURCES = ("path", "query", "header", "body")  # in the order in which errors are reported


class _Argument(NamedTuple):
    """A parameter of a function: where its value is in a request, and how it is validated."""

    name: str
    source: str
    alias: str
    default: Any
    is_list: bool
    number: type[int] | type[float] | None
    type: TypeAdapter[Any]
    noun: str  # of a text of the path


@cache
def reader_of(function: Callable[..., Any]) -> Callable[[Event], dict[str, Any]]:
    """Return what reads the arguments of a route's function. It raises InvalidRequest, NotFound."""
    types = get_type_hints(function, include_extras=True)
    analysed = [_analyse(p, types[name]) for name, p in signature(function).parameters.items()]
    arguments = sorted(analysed, key=lambda argument: _SOURCES.index(argument.source))

    def read(event: Event) -> dict[str, Any]:
        try:
            return _read_all(arguments, event)
        except RecursionError:  # of the parser, or of pydantic
            raise BadInput(
                "body", "is nested too deeply", code="invalid-json", path="body"
            ) from None

    return read


def _analyse(parameter: Parameter, declared: Any) -> _Argument:
    is_text = isinstance(declared, type) and issubclass(declared, PathText)
    noun = declared.NOUN if is_text else ""
    info = next((part for part in get_args(declared) if isinstance(part, Param)), None)
    if info is not None:
        source, alias = info.in_.value, info.alias or ""
    else:
        source, alias = ("path" if noun else "body"), ""
    kind = get_args(declared)[0] if get_origin(declared) is Annotated else declared
    name, is_list = parameter.name, list in {get_origin(kind), *map(get_origin, get_args(kind))}
    number = next((part for part in (kind, *get_args(kind)) if part in _NUMBERS), None)
    adapter = TypeAdapter(declared)
    return _Argument(name, source, alias or name, parameter.default, is_list, number, adapter, noun)


def _read_all(arguments: list[_Argument], event: Event) -> dict[str, Any]:
    values: dict[str, Any] = {}
    errors: list[dict[str, Any]] = []
    for argument in arguments:
        field_path = (argument.source, *([] if argument.source == "body" else [argument.alias]))
        value = _find(argument, event)
        if value is None and argument.default is not Parameter.empty:
            values[argument.name] = argument.default
        elif value is None:
            errors.append(_describe(field_path, "missing", SENTENCES["missing"]))
        elif argument.number and not _NUMBERS[argument.number].fullmatch(value):
            detail = SENTENCES[f"{argument.number.__name__}_type"]
            errors.append(_describe(field_path, "wrong-type", detail))
        else:
            try:
                values[argument.name] = argument.type.validate_python(value)
            except ValidationError as error:
                if argument.source == "path":
                    raise NotFound(f"{argument.name} is not {argument.noun}.") from None
                errors += [
                    _describe_problem((*field_path, *problem["loc"]), problem)
                    for problem in error.errors(include_url=False, include_input=False)
                ]
    known = [argument.alias for argument in arguments if argument.source == "query"]
    errors += find_unknown_parameters(event, known)
    if not errors:
        return values
    raise InvalidRequest(errors)


def _find(argument: _Argument, event: Event) -> Any:
    """Return the value of an argument in a request, None if it has none."""
    match argument.source:
        case "path":
            return event["pathParameters"][argument.alias]
        case "header":
            return event["headers"].get(argument.alias.lower())
        case "query":
            text = (event.get("queryStringParameters") or {}).get(argument.alias)
            return text.split(",") if argument.is_list and text is not None else text
    return _read_body(event)


def _read_body(event: Event) -> Any:
    """Return the decoded body. Raises InvalidRequest, BadInput, RecursionError."""
    text = event.get("body")
    if text and event.get("isBase64Encoded"):
        try:
            text = base64.b64decode(text).decode()
        except ValueError:
            raise BadInput("body", "is not UTF-8", code="invalid-json", path="body") from None
    if not text:
        return None
    try:
        return json.loads(text, object_pairs_hook=_read_object)
    except json.JSONDecodeError as error:
        problem = _describe(("body", error.pos), "invalid-json", "is no JSON from here on")
        raise InvalidRequest([problem]) from None
    except _RepeatedKey as error:
        raise BadInput("body", str(error), code="invalid-json", path="body") from None
    except ValueError:
        detail = "contains a number with too many digits"
        raise BadInput("body", detail, code="invalid-json", path="body") from None


class _RepeatedKey(ValueError):
    """An object has a key twice: two readers could take two values."""


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of a body. Raises _RepeatedKey."""
    read = dict(pairs)
    if len(read) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise _RepeatedKey(f"has the key {repeated[:50]!r} more than once")
    return read


def code_of(problem: Mapping[str, Any]) -> str:
    """Return the code of an error of pydantic; ``invalid`` if it has none of its own."""
    kind, cause = problem["type"], problem.get("ctx", {}).get("error")
    if isinstance(cause, FieldError):
        return cause.code
    if kind.endswith(_WRONG_TYPES):
        return "wrong-type"
    return CODES.get(kind, "invalid")


def _describe_problem(
    field_path: tuple[str | int, ...], problem: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an error of pydantic in plain words, with the limit that the value breaks, if any.
    pydantic puts ``Value error, `` before the text of a ValueError."""
    context = problem.get("ctx", {})
    sentence = SENTENCES.get(problem["type"])
    detail = sentence.format(**context) if sentence else problem["msg"]
    described = _describe(field_path, code_of(problem), detail.removeprefix("Value error, "))
    limit = next((context[name] for name in _LIMITS if name in context), None)
    return described if limit is None else described | {"limit": limit}


def _describe(field_path: tuple[str | int, ...], code: str, detail: str) -> dict[str, Any]:
    return {"field": ".".join(map(str, field_path)), "code": code, "detail": detail}
