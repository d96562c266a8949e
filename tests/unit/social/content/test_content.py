"""Texts, idempotent requests, cursors and pages."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.core.idempotency import IdempotentRequest
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.http.requests import MAX_ID
from plaza.social.content import model
from plaza.social.content.model import (
    MAX_CREATED_US,
    MAX_PREVIEW,
    TEXT,
    Draft,
    ListCursor,
    Text,
    cut_preview,
    paginate,
)

POST = Draft(type="post", author_id=7, kind="note", title="t", body="b", images=("https://a/",))
MAX_BYTES = 5_000
ids = st.integers(1, MAX_ID)


def text(number: int, body: str = "b") -> Text:
    return Text(type="comment", id=number, author_id=7, parent_id=1, body=body, created_us=number)


def measure(item: Text) -> int:
    """Return the bytes of a comment in a list: its text, and at most 1,000 of other fields."""
    return len(json.dumps(item.body)) + len(json.dumps("")) + 1_000


@given(ids, st.text(), st.lists(st.text()), st.integers(0, MAX_CREATED_US))
def test_a_text_survives_encoding_for_redis(
    number: int, body: str, images: list[str], created_us: int
) -> None:
    fields = dataclasses.asdict(POST) | {"body": body, "images": tuple(images)}
    written = Text(**fields, id=number, created_us=created_us)
    assert TEXT.decode(TEXT.encode(written)) == written


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
def test_each_field_changes_the_hash_of_a_request(change: dict[str, object]) -> None:
    other = dataclasses.asdict(dataclasses.replace(POST, **change))  # type: ignore[arg-type]
    post = dataclasses.asdict(POST)
    assert (
        IdempotentRequest.of("k", other).request_sha256
        != IdempotentRequest.of("k", post).request_sha256
    )
    assert IdempotentRequest.of("k", other).key_sha256 == IdempotentRequest.of("k", post).key_sha256
    assert IdempotentRequest.of("l", post).key_sha256 != IdempotentRequest.of("k", post).key_sha256


@given(st.lists(st.integers(1, 200), max_size=30), st.integers(1, 30))
def test_a_page_has_at_most_limit_texts_and_fits_into_a_response(
    sizes: list[int], limit: int
) -> None:
    texts = [text(n + 1, "\\" * size) for n, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "MAX_PAGE_BYTES", MAX_BYTES)
        page, last = paginate(texts, limit)
    assert page == texts[: len(page)]
    assert len(page) <= limit
    assert (last is None) == (len(page) == len(texts))
    assert bool(page) == bool(texts), "a page has at least one text, however long"
    if len(page) > 1:
        assert sum(len(TEXT.encode(item)) for item in page) <= MAX_BYTES
    if last is not None:
        assert last == ListCursor(page[-1].created_us, page[-1].id)
        full = sum(map(measure, texts[: len(page) + 1])) > MAX_BYTES
        assert len(page) == limit or full


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1e9\U0001f1ea"
E_ACUTE = "e\u0301"


@pytest.mark.parametrize(
    ("body", "preview"),
    [
        ("", ""),
        ("x" * MAX_PREVIEW, "x" * MAX_PREVIEW),
        ("x" * (MAX_PREVIEW + 1), "x" * MAX_PREVIEW),
        ("a word " * 100, ("a word " * 43).rstrip()),
        ("y" * 250 + "\n\n" + "z" * 100, "y" * 250),
        ("y" * 100 + " " + "z" * 300, "y" * 100 + " " + "z" * 199),
        ("x" * MAX_PREVIEW + " y", "x" * MAX_PREVIEW),
        (" " * MAX_PREVIEW + "x", " " * MAX_PREVIEW),
        ("麺" * 400, "麺" * MAX_PREVIEW),
        ("x" * 299 + E_ACUTE, "x" * 299),
        ("x" * 298 + FAMILY, "x" * 298),
        ("x" * 299 + FLAG, "x" * 299),
        ("x" + FLAG * 200, "x" + FLAG * 149),
        ("x" * 299 + "👍🏽", "x" * 299),
        ("x" + "\u0301" * 400, "x" + "\u0301" * 267),
    ],
)
def test_a_preview_ends_with_a_word_or_between_characters(body: str, preview: str) -> None:
    assert cut_preview(body) == preview


@given(st.text(max_size=1_000))
def test_a_preview_is_the_beginning_of_a_text(body: str) -> None:
    preview = cut_preview(body)
    assert body.startswith(preview)
    assert len(preview) <= MAX_PREVIEW
    assert preview == body or len(preview) > MAX_PREVIEW - 33 or body[len(preview)].isspace()


@pytest.mark.parametrize(
    ("cursor", "is_valid"),
    [
        (ListCursor(0, 1), True),
        (ListCursor(MAX_CREATED_US, MAX_ID), True),
        (ListCursor(-1, 1), False),
        (ListCursor(MAX_CREATED_US + 1, 1), False),
        (ListCursor(1, 0), False),
        (ListCursor(1, -1), False),
    ],
    ids=str,
)
def test_a_position_is_valid_within_the_range_of_mysql(cursor: ListCursor, is_valid: bool) -> None:
    assert cursor.is_valid is is_valid


def test_the_largest_position_fits_into_a_cursor() -> None:
    assert len(pack_cursor(*ListCursor(MAX_CREATED_US, MAX_ID))) <= 200
