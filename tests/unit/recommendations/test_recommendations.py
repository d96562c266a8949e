"""Shops whose lists are to be made again, as they stand on the queue."""

from __future__ import annotations

import json

import pytest

from plaza.infra.messages import InvalidMessage
from plaza.recommendations import RebuildLists


@pytest.mark.parametrize("shop_ids", [[5], [1, 2**63 - 1], list(range(1, 11))])
def test_a_rebuild_is_read_as_it_was_written(shop_ids: list[int]) -> None:
    rebuild = RebuildLists(shop_ids)
    assert RebuildLists.from_json(rebuild.to_json()) == rebuild


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
def test_what_is_no_rebuild_is_a_bad_record(body: str) -> None:
    with pytest.raises(InvalidMessage):
        RebuildLists.from_json(body)
