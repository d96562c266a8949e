"""Codecs of messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import pytest

from plaza.infra.queues.messages import InvalidMessage, MessageCodec, message_codec
from plaza.infra.runtime import codec
from plaza.infra.runtime.codec import Meta, Struct
from plaza.infra.runtime.errors import UnknownProtocol
from tests.support.failures import failing


class Body(Struct, frozen=True):
    protocol: Annotated[int, Meta(ge=2, le=2)]
    actor_id: Annotated[int, Meta(ge=1)]


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> MessageCodec[Body]:
    monkeypatch.setattr(codec, "_declared", {})
    return message_codec("work", Body, protocol=2)


def test_a_message_is_compact_json(messages: MessageCodec[Body]) -> None:
    assert messages.encode(Body(2, 7)) == '{"protocol":2,"actor_id":7}'
    assert messages.decode('{"protocol":2,"actor_id":7,"added":1}') == Body(2, 7)


@pytest.mark.parametrize("protocol", [1, 3, 0, -1])
def test_another_protocol_is_unknown_whatever_else_the_message_has(
    messages: MessageCodec[Body], protocol: int
) -> None:
    for rest in ("", ',"actor_id":7', ',"actor_id":"seven"'):
        with pytest.raises(UnknownProtocol, match=f"protocol {protocol}"):
            messages.decode(f'{{"protocol":{protocol}{rest}}}')


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "null",
        "7",
        "[]",
        "NaN",
        "[" * 100_000,
        "1" * 5_000,
        "{}",
        '{"actor_id":7}',
        '{"protocol":"2","actor_id":7}',
        '{"protocol":2.0,"actor_id":7}',
        '{"protocol":null,"actor_id":7}',
        '{"protocol":2}',
        '{"protocol":2,"actor_id":0}',
        '{"protocol":2,"actor_id":true}',
        '{"protocol":2,"actor_id":7.0}',
        '{"protocol":2,"actor_id":"7"}',
        '{"protocol":2,"actor_id":7}x',
        '{"protocol":2,"actor_id":"\ud800"}',
    ],
    ids=lambda body: body[:40],
)
def test_another_body_is_an_invalid_message(messages: MessageCodec[Body], body: str) -> None:
    with pytest.raises(InvalidMessage):
        messages.decode(body)


def test_a_refusal_names_the_field(messages: MessageCodec[Body]) -> None:
    with pytest.raises(InvalidMessage, match="actor_id"):
        messages.decode('{"protocol":2,"actor_id":"7"}')


def test_an_error_of_a_rule_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_declared", {})

    class Mismatch(InvalidMessage):
        """A rule that a value breaks."""

    unpack: Callable[[Body], Body] = failing(Mismatch("not possible"))
    with pytest.raises(Mismatch, match="not possible"):
        message_codec("work", Body, unpack).decode('{"protocol":2,"actor_id":7}')
