"""The other messages on Plaza's queues: steps of a rebuild, keys of a settle."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.infra.queues import BadRecord
from plaza.reactions.reactions import KINDS, LIKE, MOST_ID, Key, Target
from plaza.reactions.rebuilding import Step, read_step
from plaza.reactions.saving import read_keys
from tests.unit.reactions.test_reactions import json_values

STEP: dict[str, Any] = {
    "kind": "like",
    "target_type": "post",
    "target_id": 11,
    "build": "5f2c",
    "after_id": 4,
}
KEY = ["post", 11, "like", 7]


def test_a_step_comes_back_from_the_queue_as_it_went() -> None:
    step = Step(LIKE, Target("post", 11), "5f2c", 4)
    assert read_step(step.to_json()) == step


def test_a_rebuild_that_was_asked_for_begins_at_the_beginning() -> None:
    asked = {name: STEP[name] for name in ("kind", "target_type", "target_id")}
    assert read_step(json.dumps(asked)) == Step(LIKE, Target("post", 11), "", 0)


@pytest.mark.parametrize("body", ["", "null", "[]", "7", "{}", "{", "[" * 100_000, "NaN"])
def test_what_is_no_step_at_all_is_a_bad_record(body: str) -> None:
    with pytest.raises(BadRecord):
        read_step(body)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "follow"),
        ("kind", ["like"]),
        ("kind", None),
        ("target_type", "user"),
        ("target_type", None),
        ("target_id", "11"),
        ("target_id", True),
        ("target_id", -1),
        ("target_id", MOST_ID + 1),
        ("target_id", 1.0),
        ("build", 7),
        ("build", None),
        ("after_id", -1),
        ("after_id", True),
        ("after_id", None),
        ("after_id", 10**30),
    ],
)
def test_a_step_with_a_wrong_value_is_a_bad_record(name: str, value: object) -> None:
    with pytest.raises(BadRecord):
        read_step(json.dumps(STEP | {name: value}))


def test_the_keys_of_a_settle_are_read() -> None:
    assert read_keys(json.dumps([KEY, KEY])) == [Key(*KEY)] * 2


@pytest.mark.parametrize(
    "said",
    [
        None,
        7,
        "post",
        [],
        {},
        [[]],
        [7],
        ["abcd"],
        [KEY[:3]],
        [[*KEY, 1]],
        [["user", 11, "like", 7]],
        [["comment", 11, "collect", 7]],
        [["post", "11", "like", 7]],
        [["post", 11, "like", True]],
        [["post", 11, "like", None]],
        [["post", 11.0, "like", 7]],
        [[["post"], 11, "like", 7]],
        [["post", 11, ["like"], 7]],
        [KEY] * 1001,
    ],
    ids=lambda said: json.dumps(said)[:30],
)
def test_what_are_no_keys_is_a_bad_record(said: object) -> None:
    with pytest.raises(BadRecord):
        read_keys(json.dumps(said))


@pytest.mark.parametrize("body", ["", "{", "[" * 100_000, "1" * 5_000])
def test_what_is_no_json_holds_no_keys(body: str) -> None:
    with pytest.raises(BadRecord):
        read_keys(body)


@given(st.lists(st.lists(json_values, max_size=5) | json_values, max_size=3) | json_values)
def test_whatever_a_settle_holds_it_is_keys_or_a_bad_record(said: object) -> None:
    try:
        keys = read_keys(json.dumps(said))
    except BadRecord:
        return
    assert keys
    assert all(key.target_type in KINDS[key.kind].targets for key in keys)
