"""What was written, as facts: texts, attempts, places, pages, viewers."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.content import Draft, ListPosition, Text, hash_viewer
from plaza.content import model as rules
from plaza.content.model import MAX_CREATED_US, paginate
from plaza.idempotency import IdempotentRequest
from plaza.infra.http import MAX_ID, pack_cursor

POST = Draft(type="post", author_id=7, kind="note", title="t", body="b", images=("https://a/",))
MOST = 1_000
ids = st.integers(1, MAX_ID)


def text(number: int, body: str = "b") -> Text:
    return Text(type="comment", id=number, author_id=7, parent_id=1, body=body, created_us=number)


@given(ids, st.text(), st.lists(st.text()), st.integers(0, MAX_CREATED_US))
def test_a_text_comes_back_from_redis_as_it_went(
    number: int, body: str, images: list[str], created_us: int
) -> None:
    fields = dataclasses.asdict(POST) | {"body": body, "images": tuple(images)}
    written = Text(**fields, id=number, created_us=created_us)
    assert Text.from_json(written.to_json()) == written
    assert written.to_json().isascii()


@pytest.mark.parametrize(
    "change",
    [
        {"author_id": 8},
        {"kind": "blog"},
        {"title": "u"},
        {"body": "c"},
        {"images": ()},
        {"images": ("https://b/",)},
        {"type": "comment"},
        {"parent_id": 1},
        {"score": 1},
    ],
    ids=str,
)
def test_what_is_asked_for_is_another_when_any_of_it_is(change: dict[str, object]) -> None:
    other = dataclasses.asdict(dataclasses.replace(POST, **change))  # type: ignore[arg-type]
    post = dataclasses.asdict(POST)
    assert (
        IdempotentRequest.of("k", other).request_sha256
        != IdempotentRequest.of("k", post).request_sha256
    )
    assert IdempotentRequest.of("k", other).key_sha256 == IdempotentRequest.of("k", post).key_sha256
    assert IdempotentRequest.of("l", post).key_sha256 != IdempotentRequest.of("k", post).key_sha256


@given(st.lists(st.integers(1, 200), max_size=30), st.integers(1, 30))
def test_a_page_holds_at_most_its_limit_and_what_an_answer_can(
    sizes: list[int], limit: int
) -> None:
    texts = [text(n + 1, "a" * size) for n, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "MAX_PAGE_BYTES", MOST)
        page, last = paginate(texts, limit)
    assert page == texts[: len(page)]
    assert len(page) <= limit
    assert (last is None) == (len(page) == len(texts))
    assert bool(page) == bool(texts), "however long, one is shown"
    if len(page) > 1:
        assert sum(len(one.to_json()) for one in page) <= MOST
    if last is not None:
        assert last == ListPosition(page[-1].created_us, page[-1].id)
        full = sum(len(one.to_json()) for one in texts[: len(page) + 1]) > MOST
        assert len(page) == limit or full


@pytest.mark.parametrize(
    ("place", "possible"),
    [
        (ListPosition(0, 1), True),
        (ListPosition(MAX_CREATED_US, MAX_ID), True),
        (ListPosition(-1, 1), False),
        (ListPosition(MAX_CREATED_US + 1, 1), False),
        (ListPosition(1, 0), False),
        (ListPosition(1, -1), False),
    ],
    ids=str,
)
def test_a_place_is_one_that_can_be(place: ListPosition, possible: bool) -> None:
    assert place.is_valid is possible


def test_a_place_fits_into_a_cursor() -> None:
    assert len(pack_cursor(*ListPosition(MAX_CREATED_US, MAX_ID))) <= 200


def test_viewers_are_told_apart_and_not_told() -> None:
    seen = [
        hash_viewer(7, "203.0.113.7"),
        hash_viewer(8, "203.0.113.7"),
        hash_viewer(None, "203.0.113.7"),
        hash_viewer(None, "203.0.113.8"),
        hash_viewer(None, "2001:db8::1"),
        hash_viewer(None, "2001:db8:0:1::1"),
    ]
    assert len(set(seen)) == 6
    assert hash_viewer(7, "203.0.113.9") == seen[0], "wherever they are"
    assert hash_viewer(None, "2001:db8::ffff") == seen[4], "a /64 is one network"
    assert all(len(one) == 16 and int(one, 16) >= 0 for one in seen), "a digest"
