"""Codecs of messages: bodies are compact JSON, decoded field by field.

A codec declares its fields with readers: ``integer``, ``text``, ``boolean``, ``one_of``,
``nullable``, ``list_of``, ``tuple_of`` and ``map_of``. A reader returns the value unchanged, or
raises InvalidMessage with the name of the field and what it accepts. No type is converted: ``true``
and ``7.0`` are not integers. Undeclared fields are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from plaza.infra.errors import UnknownProtocol
from plaza.infra.json_encoders import make_encoder

T = TypeVar("T")

Reader = Callable[[object, str], T]
"""Takes a value and the name of its field. Returns the value; raises InvalidMessage."""

MAX_ID = 2**63 - 1
MAX_VERSION = 2**53 - 1  # the largest integer that a Lua number stores exactly
_MAX_SHOWN = 40
_REQUIRED: Any = object()


class InvalidMessage(Exception):
    """A message that cannot be decoded; a retry does not help."""


encode = make_encoder()
"""Encodes a body."""


def read_object(body: str) -> Mapping[str, object]:
    """Decode a body that is a JSON object. Raises InvalidMessage."""
    fields = _decode(body)
    if type(fields) is not dict:
        raise InvalidMessage("the body is not a JSON object")
    return fields


def read_body(body: str, reader: Reader[T]) -> T:
    """Decode a body that is one value. Raises InvalidMessage."""
    return reader(_decode(body), "the body")


def read(fields: Mapping[str, object], name: str, reader: Reader[T], default: T = _REQUIRED) -> T:
    """Read the field ``name``; ``default`` where it is absent. Raises InvalidMessage."""
    value = fields.get(name, _REQUIRED)
    if value is _REQUIRED:
        if default is _REQUIRED:
            raise InvalidMessage(f"{name} is missing")
        return default
    return reader(value, name)


def integer(minimum: int, maximum: int) -> Reader[int]:
    """Return a reader of integers from ``minimum`` to ``maximum``."""

    def read_integer(value: object, name: str) -> int:
        if type(value) is not int or not minimum <= value <= maximum:
            raise _bad(name, value, f"an integer from {minimum} to {maximum}")
        return value

    return read_integer


def text(minimum: int, maximum: int) -> Reader[str]:
    """Return a reader of ASCII text of ``minimum`` to ``maximum`` characters."""

    def read_text(value: object, name: str) -> str:
        if type(value) is not str or not minimum <= len(value) <= maximum or not value.isascii():
            raise _bad(name, value, f"ASCII text of {minimum} to {maximum} characters")
        return value

    return read_text


def boolean(value: object, name: str) -> bool:
    """Read true or false."""
    if type(value) is not bool:
        raise _bad(name, value, "true or false")
    return value


def one_of(choices: Collection[str]) -> Reader[str]:
    """Return a reader of the strings in ``choices``."""

    def read_choice(value: object, name: str) -> str:
        if type(value) is not str or value not in choices:
            raise _bad(name, value, f"one of {', '.join(sorted(choices))}")
        return value

    return read_choice


def nullable(reader: Reader[T]) -> Reader[T | None]:
    """Return a reader of null and of what ``reader`` accepts."""

    def read_nullable(value: object, name: str) -> T | None:
        return None if value is None else reader(value, name)

    return read_nullable


def list_of(reader: Reader[T], minimum: int, maximum: int) -> Reader[list[T]]:
    """Return a reader of lists of ``minimum`` to ``maximum`` values that ``reader`` accepts."""

    def read_list(value: object, name: str) -> list[T]:
        if type(value) is not list or not minimum <= len(value) <= maximum:
            raise _bad(name, value, f"a list of {minimum} to {maximum}")
        item_name = f"an item of {name}"
        return [reader(item, item_name) for item in value]

    return read_list


def tuple_of(*readers: Reader[Any]) -> Reader[tuple[Any, ...]]:
    """Return a reader of lists with one value for each of ``readers``."""

    def read_tuple(value: object, name: str) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(readers):
            raise _bad(name, value, f"a list of {len(readers)}")
        return tuple(
            reader(item, f"{name}[{index}]")
            for index, (reader, item) in enumerate(zip(readers, value, strict=True))
        )

    return read_tuple


def require_protocol(fields: Mapping[str, object], protocol: int) -> None:
    """Raise UnknownProtocol for a message of another protocol version, which a later delivery may
    bring to a version of Plaza that reads it; InvalidMessage for one without a version."""
    found = fields.get("protocol")
    if type(found) is int and found != protocol:
        raise UnknownProtocol(f"a message of protocol {found}")
    read(fields, "protocol", integer(protocol, protocol))


def map_of(reader: Reader[T], minimum: int, maximum: int) -> Reader[dict[str, T]]:
    """Return a reader of objects with ``minimum`` to ``maximum`` values that ``reader`` accepts."""

    def read_map(value: object, name: str) -> dict[str, T]:
        if type(value) is not dict or not minimum <= len(value) <= maximum:
            raise _bad(name, value, f"an object of {minimum} to {maximum}")
        return {key: reader(item, f"{name}.{key[:_MAX_SHOWN]}") for key, item in value.items()}

    return read_map


ID = integer(1, MAX_ID)


def _decode(body: str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"the body is not JSON: {type(error).__name__} {error}") from None


def _bad(name: str, value: object, wanted: str) -> InvalidMessage:
    return InvalidMessage(f"{name} is {_show(value)}, not {wanted}")


def _show(value: object) -> str:
    """Return up to 40 characters for a value, the length for a container."""
    if isinstance(value, list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value)[:_MAX_SHOWN]
