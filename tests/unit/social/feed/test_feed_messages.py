"""Messages on the queues of the feed, and merges of timelines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.core.reactions.queues import FOLLOWS, MAX_PAIRS
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.runtime.codec import MAX_ID
from plaza.social.content.model import ListCursor
from plaza.social.content.queues import FANOUTS, FanOut
from plaza.social.feed.model import (
    INBOX,
    MAX_TIMELINES,
    POSTS,
    FeedEntry,
    Timeline,
    floor_of,
    merge,
)
from plaza.social.feed.queues import INBOXES
from tests.unit.core.reactions.test_model import json_values

READERS = (FANOUTS.decode, FOLLOWS.decode, INBOXES.decode)


def test_messages_survive_encoding() -> None:
    for item in (FanOut(11), FanOut(11, 7), FanOut(11, 7, announce=True)):
        assert FANOUTS.decode(FANOUTS.encode(item)) == item
    timelines = [Timeline(INBOX, 7), Timeline(POSTS, MAX_ID)]
    assert INBOXES.decode(INBOXES.encode(timelines)) == timelines
    assert FOLLOWS.decode("[[7,8],[8,7]]") == [(7, 8), (8, 7)]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{}",
        "[]",
        "null",
        "7",
        '"x"',
        "[" * 100_000,
        '{"post_id":0}',
        '{"post_id":true}',
        '{"post_id":"11"}',
        '{"post_id":11,"after_id":-1}',
        '{"post_id":11,"announce":1}',
        f'{{"post_id":{2**63}}}',
        "[[7]]",
        "[[7,8,9]]",
        "[[7,0]]",
        "[[7,true]]",
        "[7,8]",
        json.dumps([[1, 2]] * (MAX_PAIRS + 1)),
        '[["inbox"]]',
        '[["outbox",7]]',
        '[["inbox",0]]',
        '[[["inbox"],7]]',
        json.dumps([["inbox", 7]] * (MAX_TIMELINES + 1)),
    ],
)
def test_a_body_of_another_format_is_an_invalid_message(body: str) -> None:
    for read in READERS:
        with pytest.raises(InvalidMessage):
            read(body)


@given(st.one_of(json_values, st.lists(json_values), st.dictionaries(st.text(), json_values)))
def test_any_json_is_a_message_or_an_invalid_message(value: Any) -> None:
    for read in READERS:
        try:
            read(json.dumps(value))
        except InvalidMessage:
            continue


@given(
    st.lists(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), max_size=12), max_size=3),
    st.integers(1, 7),
    st.one_of(st.none(), st.tuples(st.integers(1, 6), st.integers(1, 9))),
    st.integers(1, 5),
)
def test_a_merge_has_each_entry_once_above_the_floor_and_past_the_position(
    result: list[list[tuple[int, int]]], floor_us: int, after: tuple[int, int] | None, count: int
) -> None:
    times = {post: at for entries in result for at, post in entries}
    lists = [[FeedEntry(times[post], post, 1) for _, post in entries] for entries in result]
    cursor = ListCursor(*after) if after else None
    expected = sorted(
        {
            entry
            for entries in lists
            for entry in entries
            if entry.created_us > floor_us and (cursor is None or entry.cursor < cursor)
        },
        reverse=True,
    )
    assert merge(lists, floor_us, cursor, count) == expected[:count]


def test_a_list_cut_by_its_limit_is_complete_above_its_last_entry() -> None:
    entries = [FeedEntry(5, 2, 1), FeedEntry(4, 1, 1)]
    assert floor_of(entries, 2) == 4
    assert floor_of(entries, 3) == 1
    assert floor_of([], 3) == 1
