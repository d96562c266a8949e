"""Messages that request the rebuild of recommended reviews."""

from __future__ import annotations

import json

import pytest

from plaza.infra.queues.messages import InvalidMessage
from plaza.social.recommendations import RebuildLists
from plaza.social.recommendations.queues import RECOMMENDATIONS


@pytest.mark.parametrize("shop_ids", [[5], [1, 2**63 - 1], list(range(1, 11))])
def test_a_request_survives_encoding(shop_ids: list[int]) -> None:
    rebuild = RebuildLists(shop_ids)
    assert RECOMMENDATIONS.decode(RECOMMENDATIONS.encode(rebuild)) == rebuild


@pytest.mark.parametrize(
    "body",
    [
        "",
        "5",
        "[]",
        "null",
        "{}",
        '{"shop_ids": null}',
        '{"shop_ids": 5}',
        '{"shop_ids": {"5": 6}}',
        '{"shop_ids": []}',
        '{"shop_ids": [0]}',
        '{"shop_ids": [-1]}',
        '{"shop_ids": [true]}',
        '{"shop_ids": [5.0]}',
        '{"shop_ids": ["5"]}',
        '{"shop_ids": [9223372036854775808]}',
        '{"shop_ids": [' + "[" * 100_000,
        json.dumps({"shop_ids": list(range(1, 12))}),
    ],
    ids=lambda body: body[:30] or "nothing",
)
def test_a_body_of_another_format_is_an_invalid_message(body: str) -> None:
    with pytest.raises(InvalidMessage):
        RECOMMENDATIONS.decode(body)
