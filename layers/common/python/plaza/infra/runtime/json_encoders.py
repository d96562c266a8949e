"""Encoders of JSON for small objects that are encoded often."""

from __future__ import annotations

from collections.abc import Callable
from json import JSONEncoder
from json.encoder import c_make_encoder, encode_basestring_ascii  # type: ignore[attr-defined]
from typing import Any


def make_encoder(
    separators: tuple[str, str] = (",", ":"), default: Callable[[Any], Any] | None = None
) -> Callable[[Any], str]:
    """Return a function that encodes as ``json.dumps`` does, in half of its time: that creates a
    new encoder of C in each call. ``separators`` are of items and of keys. A value that contains
    itself raises RecursionError."""
    item_separator, key_separator = separators
    encode = c_make_encoder(
        None,  # the containers of a value, to find one that contains itself
        default or JSONEncoder().default,
        encode_basestring_ascii,
        None,  # indentation
        key_separator,
        item_separator,
        False,  # keys are not sorted
        False,  # keys of other types raise TypeError
        True,  # NaN and Infinity are encoded
    )
    return lambda value: "".join(encode(value, 0))
