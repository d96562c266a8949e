"""Encoders equal json.dumps."""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.infra.runtime.json_encoders import make_encoder

SEPARATORS = [(",", ":"), (", ", ": ")]
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
KEYS = st.text() | st.integers() | st.booleans() | st.none()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner))


class Pair(NamedTuple):
    """A tuple with names."""

    left: int
    right: str


class Number(IntEnum):
    """An integer with a name."""

    ONE = 1


@pytest.mark.parametrize("separators", SEPARATORS, ids=["compact", "spaced"])
@given(value=VALUES)
def test_an_encoder_encodes_as_json_dumps(separators: tuple[str, str], value: Any) -> None:
    assert make_encoder(separators)(value) == json.dumps(value, separators=separators)


@pytest.mark.parametrize("value", [Pair(1, "a"), Number.ONE, OrderedDict(b=1, a=2), ((1, 2), [])])
def test_subclasses_are_encoded_as_json_dumps_encodes_them(value: Any) -> None:
    assert make_encoder()(value) == json.dumps(value, separators=(",", ":"))


def test_other_types_are_encoded_by_default_or_raise() -> None:
    at = {"at": datetime(2026, 11, 22, tzinfo=UTC)}
    assert make_encoder(default=str)(at) == '{"at":"2026-11-22 00:00:00+00:00"}'
    with pytest.raises(TypeError, match="datetime is not JSON serializable"):
        make_encoder()(at)
    with pytest.raises(TypeError, match="keys must be"):
        make_encoder()({(1, 2): 3})


def test_a_value_that_contains_itself_raises_recursion_error() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(RecursionError):
        make_encoder()(value)
