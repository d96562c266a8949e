"""Codecs of messages: bodies are written as compact JSON, and read field by field.

A codec declares its fields with readers, one for each kind of value: ``integer``, ``text``, ``boolean``,
``one_of``, ``nullable``, ``list_of``, ``tuple_of`` and ``map_of``. A reader returns the value as it is,
or raises InvalidMessage with the name of the field and what it takes. No type is converted: ``true`` and
``7.0`` are not whole numbers. Fields that a codec does not declare are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from plaza.infra.errors import UnknownProtocol

T = TypeVar("T")

Reader = Callable[[object, str], T]
"""Takes a value and the name of its field. Returns the value; raises InvalidMessage."""

MAX_ID = 2**63 - 1
MAX_VERSION = 2**53 - 1  # the largest number that Lua tells from its neighbours
_MAX_SHOWN = 40
_REQUIRED: Any = object()


class InvalidMessage(Exception):
    """A message that can't be read, however often it is tried."""


encode: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":")).encode
"""Encode a body. ``json.dumps`` would make an encoder for each."""


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
    """Read a whole number from ``minimum`` to ``maximum``."""

    def read_integer(value: object, name: str) -> int:
        if type(value) is not int or not minimum <= value <= maximum:
            raise _bad(name, value, f"a whole number from {minimum} to {maximum}")
        return value

    return read_integer


def text(minimum: int, maximum: int) -> Reader[str]:
    """Read an ASCII text of ``minimum`` to ``maximum`` characters."""

    def read_text(value: object, name: str) -> str:
        if type(value) is not str or not minimum <= len(value) <= maximum or not value.isascii():
            raise _bad(name, value, f"an ASCII text of {minimum} to {maximum} characters")
        return value

    return read_text


def boolean(value: object, name: str) -> bool:
    """Read true or false."""
    if type(value) is not bool:
        raise _bad(name, value, "true or false")
    return value


def one_of(choices: Collection[str]) -> Reader[str]:
    """Read one of the texts in ``choices``."""

    def read_choice(value: object, name: str) -> str:
        if type(value) is not str or value not in choices:
            raise _bad(name, value, f"one of {', '.join(sorted(choices))}")
        return value

    return read_choice


def nullable(reader: Reader[T]) -> Reader[T | None]:
    """Read null, or what ``reader`` reads."""

    def read_nullable(value: object, name: str) -> T | None:
        return None if value is None else reader(value, name)

    return read_nullable


def list_of(reader: Reader[T], minimum: int, maximum: int) -> Reader[list[T]]:
    """Read a list of ``minimum`` to ``maximum`` values that ``reader`` reads."""

    def read_list(value: object, name: str) -> list[T]:
        if type(value) is not list or not minimum <= len(value) <= maximum:
            raise _bad(name, value, f"a list of {minimum} to {maximum}")
        item = f"an item of {name}"
        return [reader(one, item) for one in value]

    return read_list


def tuple_of(*readers: Reader[Any]) -> Reader[tuple[Any, ...]]:
    """Read a list that has one value for each of ``readers``."""

    def read_tuple(value: object, name: str) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(readers):
            raise _bad(name, value, f"a list of {len(readers)}")
        return tuple(
            reader(one, f"{name}[{place}]")
            for place, (reader, one) in enumerate(zip(readers, value, strict=True))
        )

    return read_tuple


def require_protocol(fields: Mapping[str, object], protocol: int) -> None:
    """Raises UnknownProtocol for a message of another version of the protocol, which may be
    delivered again to a version of Plaza that knows it; InvalidMessage for one of none."""
    found = fields.get("protocol")
    if type(found) is int and found != protocol:
        raise UnknownProtocol(f"a message of protocol {found}")
    read(fields, "protocol", integer(protocol, protocol))


def map_of(reader: Reader[T], minimum: int, maximum: int) -> Reader[dict[str, T]]:
    """Read an object of ``minimum`` to ``maximum`` values, each under a name of its own."""

    def read_map(value: object, name: str) -> dict[str, T]:
        if type(value) is not dict or not minimum <= len(value) <= maximum:
            raise _bad(name, value, f"an object of {minimum} to {maximum}")
        return {key: reader(one, f"{name}.{key[:_MAX_SHOWN]}") for key, one in value.items()}

    return read_map


ID = integer(1, MAX_ID)
"""Reads an id."""


def _decode(body: str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"the body is not JSON: {type(error).__name__} {error}") from None


def _bad(name: str, value: object, wanted: str) -> InvalidMessage:
    return InvalidMessage(f"{name} is {_show(value)}, not {wanted}")


def _show(value: object) -> str:
    """Show a value in few characters, and a container by its length."""
    if isinstance(value, list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value)[:_MAX_SHOWN]
