"""What of a dead message is shown, and which queues have some for people."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.infra.sqs import Received
from plaza.operations.model import (
    REDACTED,
    DeadLetter,
    DlqHasConsumer,
    QueueNotFound,
    find_dlq,
    list_queues_with_dlq,
    redact_body,
)

NAMES = {"reactions", "reactions_dlq", "orders", "orders_dlq", "orders_dlq_dlq"}
TOKEN = "Zm9yLXRlc3RzLW9ubHktbm90LWEtcmVhbC10b2tlbi0"


def shown(body: str) -> str:
    return json.dumps(redact_body(body), ensure_ascii=False)


def test_a_fact_of_ours_is_shown_as_it_is() -> None:
    fact = {"target_type": "post", "target_id": 2**62, "actor_id": 7, "version": 1795169730000000}
    assert redact_body(json.dumps(fact)) == fact
    assert redact_body(json.dumps([["post", 11, "like", 7]])) == [["post", 11, "like", 7]]


@pytest.mark.parametrize(
    ("body", "secret"),
    [
        ('{"phone": 8613800138000}', "8613800138000"),
        ('{"Phone_Number": {"x": 8613800138000}}', "8613800138000"),
        ('{"a": [{"said": "+86 138 0013 8000 or so"}]}', "0013"),
        ('{"a": "+4915112345678"}', "4915112345678"),
        ('{"a": "13800138000"}', "13800138000"),
        ('{"a": "the code is 482913."}', "482913"),
        ('{"code": 482913}', "482913"),
        (f'{{"a": "Bearer {TOKEN}"}}', TOKEN),
        (f'{{"{TOKEN}": 1}}', TOKEN),
        ('{"13800138000": 1}', "13800138000"),
        ("my phone is +8613800138000", "8613800138000"),
        (f"token={TOKEN}", TOKEN),
        ("\x00\ud83d 482913", "482913"),
        ('{"a": "' + "x " * 3_990 + '+8613800138000"}', "138001"),
    ],
)
def test_what_could_be_a_phone_number_a_token_or_a_code_is_not_shown(
    body: str, secret: str
) -> None:
    assert secret not in shown(body)


@pytest.mark.parametrize(
    "body",
    ["", "{", "NaN", '{"a": Infinity}', "[" * 100_000, '{"a": "\\ud800"}', "1" * 10_000, "\ud800"],
    ids=lambda body: body[:12],
)
def test_whatever_a_body_is_it_can_be_sent_as_json(body: str) -> None:
    json.dumps(redact_body(body), allow_nan=False, ensure_ascii=False).encode()


def test_a_body_that_is_nested_deeply_is_cut() -> None:
    assert shown('{"a":' * 50 + "1" + "}" * 50).count("a") < 25


def test_a_long_body_is_cut() -> None:
    assert len(redact_body(json.dumps([["post", i, "like", 7] for i in range(1000)]))) < 4_100
    assert len(redact_body("x" * 100_000)) <= 4_000


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=10,
)


@given(json_values)
def test_what_is_shown_of_any_json_is_json(said: Any) -> None:
    json.dumps(redact_body(json.dumps(said)), allow_nan=False, ensure_ascii=False).encode()


def test_a_cause_quotes_no_secret_and_a_request_keeps_its_id() -> None:
    said = {
        "cause": "version is '13800138000'",
        "request_id": "the-id-of-a-request",
        "message_id": "m",
    }
    letter = DeadLetter.of(Received("m1", "receipt", '{"version": 1}', 1_000, 3, said))
    assert letter.cause == f"version is '{REDACTED}'"
    assert (letter.request_id, letter.body) == ("the-id-of-a-request", {"version": 1})
    assert DeadLetter.of(Received("m1", "receipt", "{}", 1_000, 3, {})).cause is None


@pytest.mark.parametrize("said", ["+8613800138000", "8613800138000", "a b", "x" * 65, "é", ""])
def test_what_is_no_id_of_a_request_is_not_shown_as_one(said: str) -> None:
    assert DeadLetter.of(Received("m", "r", "{}", 1, 1, {"request_id": said})).request_id is None


def test_a_dlq_with_a_consumer_is_for_nobody_else() -> None:
    assert list_queues_with_dlq(NAMES) == ["orders", "orders_dlq", "reactions"]
    assert find_dlq("reactions", NAMES) == "reactions_dlq"
    assert find_dlq("orders_dlq", NAMES) == "orders_dlq_dlq"
    with pytest.raises(DlqHasConsumer):
        find_dlq("orders", NAMES)


@pytest.mark.parametrize("queue", ["", "nothing", "reactions_dlq", "orders_dlq_dlq", "../x"])
def test_what_gives_nothing_up_is_no_queue(queue: str) -> None:
    with pytest.raises(QueueNotFound):
        find_dlq(queue, NAMES)
