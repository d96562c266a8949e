"""Readers of message fields."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.infra.errors import UnknownProtocol
from plaza.infra.messages import (
    ID,
    InvalidMessage,
    Reader,
    boolean,
    encode,
    integer,
    list_of,
    map_of,
    nullable,
    one_of,
    read,
    read_body,
    read_object,
    require_protocol,
    text,
    tuple_of,
)
from tests.unit.reactions.test_model import json_values

READERS: dict[str, tuple[Reader[Any], list[Any], list[Any]]] = {
    "integer": (integer(2, 5), [2, 5], [1, 6, 3.0, True, "3", None, [3]]),
    "id": (ID, [1, 2**63 - 1], [0, -1, 2**63, "1"]),
    "text": (text(1, 3), ["a", "abc"], ["", "abcd", "é", 7, None, ["a"]]),
    "boolean": (boolean, [True, False], [0, 1, None, "true"]),
    "one_of": (one_of(["a", "b"]), ["a", "b"], ["c", "", ["a"], {"a": 1}, None]),
    "nullable": (nullable(integer(1, 2)), [None, 1], [0, "1", False]),
    "list_of": (list_of(integer(1, 9), 1, 2), [[1], [1, 9]], [[], [1, 2, 3], [0], 1, {"a": 1}]),
    "map_of": (map_of(integer(1, 9), 1, 2), [{"a": 1}], [{}, {"a": 0}, [1], "a"]),
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_returns_accepted_values_unchanged(name: str) -> None:
    reader, good, _ = READERS[name]
    assert [reader(value, "field") for value in good] == good


@pytest.mark.parametrize("name", READERS)
def test_a_reader_refuses_other_values_and_names_the_field(name: str) -> None:
    reader, _, bad = READERS[name]
    for value in bad:
        with pytest.raises(InvalidMessage, match="field"):
            reader(value, "field")


@pytest.mark.parametrize(
    ("reader", "value", "cause"),
    [
        (integer(1, 5), 6, "field is 6, not an integer from 1 to 5"),
        (text(1, 5), 7, "field is 7, not ASCII text of 1 to 5 characters"),
        (one_of(["b", "a"]), "c", "field is 'c', not one of a, b"),
        (list_of(ID, 1, 2), [], "field is a list of 0, not a list of 1 to 2"),
        (
            list_of(ID, 1, 2),
            [0],
            f"an item of field is 0, not an integer from 1 to {2**63 - 1}",
        ),
        (tuple_of(ID, boolean), [1], "field is a list of 1, not a list of 2"),
        (tuple_of(ID, boolean), [1, 1], "field[1] is 1, not true or false"),
        (map_of(integer(0, 1), 1, 2), {"a": 2}, "field.a is 2, not an integer from 0 to 1"),
        (boolean, "x" * 1_000, f"field is {repr('x' * 1_000)[:40]}, not true or false"),
    ],
)
def test_a_refusal_names_the_field_and_its_limit(
    reader: Reader[Any], value: object, cause: str
) -> None:
    with pytest.raises(InvalidMessage) as refusal:
        reader(value, "field")
    assert str(refusal.value) == cause


def test_a_row_is_read_value_by_value() -> None:
    assert tuple_of(ID, boolean)([7, True], "field") == (7, True)


def test_an_absent_field_is_an_error_or_has_its_default() -> None:
    fields = read_object('{"a":1,"n":null}')
    assert read(fields, "a", ID, default=3) == 1
    assert read(fields, "b", ID, default=3) == 3
    with pytest.raises(InvalidMessage, match="b is missing"):
        read(fields, "b", ID)
    with pytest.raises(InvalidMessage, match="n is None"):
        read(fields, "n", ID, default=3)


@pytest.mark.parametrize("body", ["", "{", "[" * 100_000, "1" * 5_000, "x", '{"a":1}x'])
def test_a_body_that_is_not_json_is_an_invalid_message(body: str) -> None:
    with pytest.raises(InvalidMessage, match="the body is not JSON"):
        read_object(body)


@pytest.mark.parametrize("body", ["null", "7", "[]", '"x"', "NaN"])
def test_a_body_that_is_not_an_object_is_an_invalid_message(body: str) -> None:
    with pytest.raises(InvalidMessage, match="the body is not a JSON object"):
        read_object(body)


def test_a_body_may_be_one_value() -> None:
    assert read_body("[[1,2]]", list_of(tuple_of(ID, ID), 1, 2)) == [(1, 2)]
    with pytest.raises(InvalidMessage, match="the body is a list of 0"):
        read_body("[]", list_of(ID, 1, 2))


def test_a_body_is_compact_and_ascii() -> None:
    assert encode({"a": [1, None, True], "b": "é"}) == '{"a":[1,null,true],"b":"\\u00e9"}'


@pytest.mark.parametrize("protocol", [1, 3, 0, -1, 10**30])
def test_another_protocol_is_unknown_and_not_an_invalid_message(protocol: int) -> None:
    with pytest.raises(UnknownProtocol, match=f"protocol {protocol}"):
        require_protocol({"protocol": protocol}, 2)


@pytest.mark.parametrize("fields", [{}, {"protocol": "2"}, {"protocol": 2.0}, {"protocol": None}])
def test_a_protocol_that_is_not_a_number_is_an_invalid_message(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidMessage, match="protocol"):
        require_protocol(fields, 2)
    require_protocol({"protocol": 2}, 2)


@given(json_values, st.sampled_from(sorted(READERS)))
def test_any_value_is_returned_unchanged_or_an_invalid_message(value: Any, name: str) -> None:
    try:
        found = READERS[name][0](value, "field")
    except InvalidMessage:
        return
    assert found == value
    assert type(found) is type(value)
