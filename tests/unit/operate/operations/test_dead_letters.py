"""Redaction of dead letters, and which queues' dead letters an operator may redrive."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.infra.queues.sqs import Received
from plaza.operate.operations.model import (
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


def test_an_event_is_shown_unchanged() -> None:
    event = {"target_type": "post", "target_id": 2**62, "actor_id": 7, "version": 1795169730000000}
    assert redact_body(json.dumps(event)) == event
    assert redact_body(json.dumps([["post", 11, "like", 7]])) == [["post", 11, "like", 7]]


@pytest.mark.parametrize(
    ("body", "secret"),
    [
        ('{"phone": 8613800138000}', "8613800138000"),
        ('{"Phone_Number": {"x": 8613800138000}}', "8613800138000"),
        ('{"a": [{"b": "+86 138 0013 8000 or so"}]}', "0013"),
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
def test_phone_numbers_tokens_and_codes_are_redacted(body: str, secret: str) -> None:
    assert secret not in shown(body)


@pytest.mark.parametrize(
    "body",
    ["", "{", "NaN", '{"a": Infinity}', "[" * 100_000, '{"a": "\\ud800"}', "1" * 10_000, "\ud800"],
    ids=lambda body: body[:12],
)
def test_an_unreadable_body_can_be_sent_as_json(body: str) -> None:
    json.dumps(redact_body(body), allow_nan=False, ensure_ascii=False).encode()


def test_a_deeply_nested_body_is_cut() -> None:
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
def test_any_json_is_json_after_redaction(value: Any) -> None:
    json.dumps(redact_body(json.dumps(value)), allow_nan=False, ensure_ascii=False).encode()


def test_a_cause_is_redacted_and_a_request_id_is_kept() -> None:
    attributes = {
        "cause": "version is '13800138000'",
        "request_id": "the-id-of-a-request",
        "message_id": "m",
    }
    letter = DeadLetter.of(Received("m1", "receipt", '{"version": 1}', 1_000, 3, attributes))
    assert letter.cause == f"version is '{REDACTED}'"
    assert (letter.request_id, letter.body) == ("the-id-of-a-request", {"version": 1})
    assert DeadLetter.of(Received("m1", "receipt", "{}", 1_000, 3, {})).cause is None


@pytest.mark.parametrize("text", ["+8613800138000", "8613800138000", "a b", "x" * 65, "é", ""])
def test_an_invalid_request_id_is_not_shown(text: str) -> None:
    assert DeadLetter.of(Received("m", "r", "{}", 1, 1, {"request_id": text})).request_id is None


def test_a_dlq_with_a_consumer_is_refused() -> None:
    assert list_queues_with_dlq(NAMES) == ["orders", "orders_dlq", "reactions"]
    assert find_dlq("reactions", NAMES) == "reactions_dlq"
    assert find_dlq("orders_dlq", NAMES) == "orders_dlq_dlq"
    with pytest.raises(DlqHasConsumer):
        find_dlq("orders", NAMES)


@pytest.mark.parametrize("queue", ["", "nothing", "reactions_dlq", "orders_dlq_dlq", "../x"])
def test_a_queue_without_a_dlq_is_not_found(queue: str) -> None:
    with pytest.raises(QueueNotFound):
        find_dlq(queue, NAMES)
