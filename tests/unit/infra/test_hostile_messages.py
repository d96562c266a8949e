"""Hostile messages, ids and cursors."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.core.reactions.model import MAX_ID
from plaza.core.reactions.queues import ACKNOWLEDGEMENTS, REACTIONS, REBUILDS
from plaza.infra.http.cursors import pack_cursor, unpack_cursor
from plaza.infra.http.requests import read_id
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.runtime.errors import BadInput, NotFound
from tests.support.batches import consume
from tests.unit.core.reactions.test_messages import STEP
from tests.unit.core.reactions.test_model import GOOD, json_values
from tests.unit.infra.test_queues import FakeSqs, batch_of, sqs  # noqa: F401


def test_a_step_whose_target_type_is_a_list_is_an_invalid_message() -> None:
    with pytest.raises(InvalidMessage):
        REBUILDS.decode(json.dumps(STEP | {"target_type": ["post"]}))


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(STEP, json_values)))
def test_a_step_with_any_fields_is_valid_or_an_invalid_message(fields: dict[str, Any]) -> None:
    try:
        step = REBUILDS.decode(json.dumps(STEP | fields))
    except InvalidMessage:
        return
    assert step.target.type in step.kind.targets
    assert 1 <= step.target.id <= MAX_ID
    assert 0 <= step.after_id <= MAX_ID
    assert step.build or step.after_id == 0, "a filter that begins in the middle denies members"


@pytest.mark.parametrize("number", [10**30, MAX_ID + 1, 0, -1])
@pytest.mark.parametrize("index", [1, 3])
def test_keys_with_out_of_range_ids_are_an_invalid_message(number: int, index: int) -> None:
    key = ["post", 11, "like", 7]
    key[index] = number
    with pytest.raises(InvalidMessage):
        ACKNOWLEDGEMENTS.decode(json.dumps({"protocol": 2, "commits": [], "keys": [key]}))


def test_a_number_of_5000_digits_is_not_an_id() -> None:
    with pytest.raises(NotFound):
        read_id("1" * 5_000, "post")


def test_a_cursor_with_a_lone_surrogate_is_bad_input() -> None:
    with pytest.raises(BadInput):
        unpack_cursor(pack_cursor(1, "\ud800", 2), (int, str, int))


@pytest.mark.parametrize("name", ["\ud800", "\x00", "\x07", "￾"])
def test_the_cause_of_a_dead_letter_has_only_characters_that_sqs_accepts(
    sqs: FakeSqs,  # noqa: F811
    name: str,
) -> None:
    body = json.dumps(GOOD | {"target_type": name})
    consume(batch_of(body), "work", REACTIONS.decode, lambda _: None)
    cause = sqs.sent[0]["MessageAttributes"]["cause"]["StringValue"]
    assert re.fullmatch(r"[\t\n\r\x20-\ud7ff\ue000-�\U00010000-\U0010ffff]+", cause)
