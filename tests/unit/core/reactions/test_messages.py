"""Messages of reactions: steps of a rebuild, commits that Redis did not accept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.core.reactions.kinds import KINDS, LIKE
from plaza.core.reactions.model import MAX_ID, Commit, ReactionKey, Target
from plaza.core.reactions.queues import ACKNOWLEDGEMENTS, REBUILDS, BloomBuildStep, Unacknowledged
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.runtime.errors import UnknownProtocol
from tests.unit.core.reactions.test_model import json_values

STEP: dict[str, Any] = {
    "kind": "like",
    "target_type": "post",
    "target_id": 11,
    "build": "5f2c",
    "after_id": 4,
}
KEY: list[Any] = ["post", 11, "like", 7]
COMMIT: list[Any] = ["like", "post", 11, 3, 2, True, [[7, 10, True]]]


def test_a_step_is_parsed_as_encoded() -> None:
    step = BloomBuildStep(LIKE, Target("post", 11), "5f2c", 4)
    assert REBUILDS.decode(REBUILDS.encode(step)) == step


def test_a_requested_rebuild_has_no_build_yet() -> None:
    request = {name: STEP[name] for name in ("kind", "target_type", "target_id")}
    assert REBUILDS.decode(json.dumps(request)) == BloomBuildStep(LIKE, Target("post", 11), "", 0)


@pytest.mark.parametrize("body", ["", "null", "[]", "7", "{}", "{", "[" * 100_000, "NaN"])
def test_a_body_that_is_no_step_is_invalid(body: str) -> None:
    with pytest.raises(InvalidMessage):
        REBUILDS.decode(body)


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
        ("target_id", MAX_ID + 1),
        ("target_id", 1.0),
        ("build", 7),
        ("build", None),
        ("after_id", -1),
        ("after_id", True),
        ("after_id", None),
        ("after_id", 10**30),
    ],
)
def test_a_step_with_an_invalid_value_is_invalid(name: str, value: object) -> None:
    with pytest.raises(InvalidMessage):
        REBUILDS.decode(json.dumps(STEP | {name: value}))


def test_a_position_without_a_build_is_invalid() -> None:
    """A new filter would lack the actors before it."""
    with pytest.raises(InvalidMessage):
        REBUILDS.decode(json.dumps(STEP | {"build": "", "after_id": 7}))


def body_of(**fields: object) -> str:
    return json.dumps({"protocol": 2, "commits": [], "keys": []} | fields)


def test_commits_and_keys_are_parsed_as_encoded() -> None:
    rows = [(7, 2**53 - 1, True), (MAX_ID, 10, False)]
    commit = Commit(LIKE, Target("post", MAX_ID), 2**40 + 3, -1, True, rows)
    message = Unacknowledged(
        [commit, commit._replace(is_new=False)], [ReactionKey(*KEY), ReactionKey(*KEY)]
    )
    assert ACKNOWLEDGEMENTS.decode(ACKNOWLEDGEMENTS.encode(message)) == message


@pytest.mark.parametrize("protocol", [1, 3])
def test_commits_of_another_protocol_raise_unknown_protocol(protocol: int) -> None:
    with pytest.raises(UnknownProtocol):
        ACKNOWLEDGEMENTS.decode(body_of(protocol=protocol))


@pytest.mark.parametrize(
    "keys",
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
        [["user", 11, "collect", 7]],
        [["post", "11", "like", 7]],
        [["post", 11, "like", True]],
        [["post", 11, "like", None]],
        [["post", 11.0, "like", 7]],
        [[["post"], 11, "like", 7]],
        [["post", 11, ["like"], 7]],
        [KEY] * 1001,
    ],
    ids=lambda value: json.dumps(value)[:30],
)
def test_invalid_keys_are_refused(keys: object) -> None:
    with pytest.raises(InvalidMessage):
        ACKNOWLEDGEMENTS.decode(body_of(keys=keys))


@pytest.mark.parametrize(
    "commit",
    [
        None,
        [],
        COMMIT[:-1],
        [*COMMIT, 1],
        ["follow", *COMMIT[1:]],
        [["like"], *COMMIT[1:]],
        ["like", "user", *COMMIT[2:]],
        ["like", "post", "11", *COMMIT[3:]],
        [*COMMIT[:3], -1, *COMMIT[4:]],
        [*COMMIT[:3], 2**53, *COMMIT[4:]],
        [*COMMIT[:3], True, *COMMIT[4:]],
        [*COMMIT[:4], 1.5, *COMMIT[5:]],
        [*COMMIT[:5], 1, COMMIT[6]],
        [*COMMIT[:6], None],
        [*COMMIT[:6], [[7, 10]]],
        [*COMMIT[:6], [[0, 10, True]]],
        [*COMMIT[:6], [["7", 10, True]]],
        [*COMMIT[:6], [[7, "10", True]]],
        [*COMMIT[:6], [[7, 10, 1]]],
        [*COMMIT[:6], [[7, 10, True]] * 1001],
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_an_invalid_commit_is_refused(commit: object) -> None:
    assert ACKNOWLEDGEMENTS.decode(body_of(commits=[COMMIT])).commits
    with pytest.raises(InvalidMessage):
        ACKNOWLEDGEMENTS.decode(body_of(commits=[commit]))


def test_rows_and_keys_are_limited_together() -> None:
    assert ACKNOWLEDGEMENTS.decode(body_of(commits=[COMMIT], keys=[KEY] * 999)).keys
    with pytest.raises(InvalidMessage):
        ACKNOWLEDGEMENTS.decode(body_of(commits=[COMMIT], keys=[KEY] * 1000))


@pytest.mark.parametrize("body", ["", "{", "[" * 100_000, "1" * 5_000, "null", "[]", "{}"])
def test_a_body_that_is_no_acknowledgement_is_invalid(body: str) -> None:
    with pytest.raises(InvalidMessage):
        ACKNOWLEDGEMENTS.decode(body)


json_lists = st.lists(st.lists(json_values, max_size=7) | json_values, max_size=3) | json_values


@given(keys=json_lists, commits=json_lists)
def test_a_random_acknowledgement_is_valid_or_invalid_message(
    keys: object, commits: object
) -> None:
    try:
        message = ACKNOWLEDGEMENTS.decode(body_of(keys=keys, commits=commits))
    except InvalidMessage:
        return
    assert message.keys or message.commits
    assert all(key.target_type in KINDS[key.kind].targets for key in message.keys)
    assert all(commit.target.type in commit.kind.targets for commit in message.commits)
