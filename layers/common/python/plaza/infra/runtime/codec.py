"""Codecs: the encodings of values that one version of Plaza writes and another one reads.

During a deploy two versions run side by side, so each such value is declared once, as a codec:

    CARD: Codec[Card] = record_codec("cards", Card, optional={"badge"})

* Undeclared fields are ignored: an older version reads what a newer one writes.
* A field is required unless it has a declared default. A field that a release adds is optional, and
  its default is what the older versions mean by leaving it out.
* A value without a required field, or with one of another type, cannot be decoded. In Redis it is a
  miss (``Codec.read``), never a zero; a message is an ``InvalidMessage``. No type is converted:
  ``true`` and ``7.0`` are not integers.

``events/`` pins the bytes of each codec; a policy test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from enum import Enum
from types import GenericAlias, MappingProxyType
from typing import Annotated, Any, Generic, Literal, TypeVar, get_type_hints

from msgspec import Meta as Meta
from msgspec import Struct as Struct
from msgspec import defstruct
from msgspec import field as field
from msgspec.json import Decoder, Encoder
from msgspec.structs import asdict, astuple

T = TypeVar("T")

MAX_ID = 2**63 - 1
MAX_VERSION = 2**53 - 1  # the largest integer that a Lua number stores exactly
ASCII = r"^[\x00-\x7f]*$"
ID = Annotated[int, Meta(ge=1, le=MAX_ID)]
VERSION = Annotated[int, Meta(ge=1, le=MAX_VERSION)]
_ERRORS = (ValueError, TypeError, RecursionError)  # of a decoder; msgspec's are ValueErrors

values_of = astuple
_declared: dict[str, Codec[Any]] = {}


class Undecodable(ValueError):
    """A value that this version cannot decode."""


class Deleted(Enum):
    """The value of a deleted row."""

    DELETED = "deleted"


DELETED = Deleted.DELETED


class Codec(Generic[T]):
    """The encoding of values of type ``T``. ``encode`` returns the text of a value."""

    error: type[Undecodable] = Undecodable

    def __init__(self, name: str, encode: Callable[[T], str], decode: Callable[[str], T]) -> None:
        if _declared.setdefault(name, self) is not self:
            raise ValueError(f"codec {name} is declared twice")
        self.name = name
        self.encode = encode
        self._decode = decode

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def decode(self, text: str) -> T:
        """Return the value of a text. Raises Undecodable."""
        try:
            return self._decode(text)
        except _ERRORS as error:
            if isinstance(error, self.error):
                raise
            raise self.error(str(error) or type(error).__name__) from None

    def read(self, text: str | None) -> T | None:
        """Return the value of a stored text; None, a miss, if it cannot be decoded or is None."""
        if text is None:
            return None
        try:
            return self._decode(text)
        except _ERRORS:
            return None


def json_codec(
    name: str,
    encoded: Any,
    unpack: Callable[[Any], T] | None = None,
    pack: Callable[[T], Any] | None = None,
    order: Literal["sorted"] | None = None,
) -> Codec[T]:
    """Return a codec of JSON of the type ``encoded``, of which ``unpack`` makes a value; ``pack``
    is its inverse. ``order``: fields and items of sets are sorted. The array of an array-like
    Struct may be longer than its fields."""
    return Codec(name, *json_functions(encoded, unpack, pack, order))


def json_functions(
    encoded: Any,
    unpack: Callable[[Any], T] | None,
    pack: Callable[[T], Any] | None,
    order: Literal["sorted"] | None = None,
) -> tuple[Callable[[T], str], Callable[[str], T]]:
    """Return the functions of ``json_codec``: one that encodes, and one that decodes."""
    parse = Decoder(encoded).decode
    render = Encoder(order=order).encode

    def encode(value: T) -> str:
        return render(value if pack is None else pack(value)).decode()

    def decode(text: str) -> T:
        parsed: Any = parse(text)
        return parsed if unpack is None else unpack(parsed)

    return encode, decode


def record_codec(
    name: str,
    kind: type[T],
    optional: Collection[str] = (),
    *,
    pack: Callable[[T], Any] | None = None,
    unpack: Callable[[T], T] | None = None,
) -> Codec[T]:
    """Return a codec of a NamedTuple or dataclass, as an object with a field for each of its own.
    All fields are required but the ``optional`` ones, whose default is the type's. ``pack``: what
    is encoded of a value of a dataclass, if other fields; ``unpack`` is its inverse."""
    make: Any = kind
    if issubclass(kind, tuple):
        row = _define(make, optional)
        return json_codec(name, row, lambda parsed: make(*astuple(parsed)), lambda v: row(*v))
    shape = _define(make, optional, kw_only=True)

    def read(parsed: Any) -> T:
        value: T = make(**asdict(parsed))
        return value if unpack is None else unpack(value)

    return json_codec(name, shape, read, pack)


def list_codec(name: str, kind: type[T], optional: Collection[str] = ()) -> Codec[list[T]]:
    """Return a codec of lists of a NamedTuple, each an array. Required fields are as in
    ``record_codec``; a field that a release adds is the last."""
    make: Any = kind
    return json_codec(
        name,
        GenericAlias(list, (row_type(kind, optional),)),
        lambda rows: [make(*astuple(row)) for row in rows],
    )


def row_type(kind: Any, optional: Collection[str] = (), **types: Any) -> Any:
    """Return a Struct with the fields of a NamedTuple or dataclass, encoded as an array; ``types``
    replace the fields' codecs."""
    return _define(kind, optional, types, array_like=True)


def _define(
    kind: Any,
    optional: Collection[str],
    types: Mapping[str, Any] = MappingProxyType({}),
    **options: Any,
) -> Any:
    annotations = get_type_hints(kind, include_extras=True) | dict(types)
    if issubclass(kind, tuple):
        defaults = dict.fromkeys(kind._fields) | kind._field_defaults
    else:
        defaults = {field.name: field.default for field in fields(kind)}
    columns = [
        (name, annotations[name], default) if name in optional else (name, annotations[name])
        for name, default in defaults.items()
    ]
    return defstruct(kind.__name__, columns, frozen=True, gc=False, **options)


def or_deleted(codec: Codec[T]) -> Codec[T | Deleted]:
    """Return the codec of the same values and of DELETED, declared in place of ``codec``."""

    def encode(value: T | Deleted) -> str:
        return value.value if isinstance(value, Deleted) else codec.encode(value)

    def decode(text: str) -> T | Deleted:
        return DELETED if text == DELETED.value else codec.decode(text)

    del _declared[codec.name]
    return Codec(codec.name, encode, decode)


class _TextCodec(Codec[str]):
    def read(self, text: str | None) -> str | None:
        return text


TEXT = _TextCodec("texts", str, str)
"""Texts that any version reads unchanged."""

TEXT_LIST: Codec[tuple[str, ...]] = json_codec("text_lists", tuple[str, ...])


def declared() -> Mapping[str, Codec[Any]]:
    """Return name -> codec of all codecs that loaded modules declare."""
    return MappingProxyType(_declared)
