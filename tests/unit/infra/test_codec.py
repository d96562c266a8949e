"""Codecs: what a version reads of the values of the versions before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pytest

from plaza.infra.runtime import codec
from plaza.infra.runtime.codec import (
    DELETED,
    Codec,
    Undecodable,
    json_codec,
    list_codec,
    or_deleted,
    record_codec,
)


class Totals(NamedTuple):
    likes: int = 0
    posts: int = 0


class TotalsOfNext(NamedTuple):
    likes: int = 0
    posts: int = 0
    bookmarks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    body: str
    hidden: bool = False
    images: tuple[str, ...] = ()


@pytest.fixture(autouse=True)
def _no_codecs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_declared", {})


def test_an_older_version_ignores_a_field_that_a_newer_one_adds() -> None:
    older, newer = record_codec("older", Totals), record_codec("newer", TotalsOfNext)
    assert older.read(newer.encode(TotalsOfNext(1, 2, 3))) == Totals(1, 2)


def test_a_required_field_that_is_missing_is_a_miss_and_not_its_default() -> None:
    older, newer = record_codec("older", Totals), record_codec("newer", TotalsOfNext)
    assert newer.read(older.encode(Totals(1, 2))) is None
    assert record_codec("notes", Note).read('{"body":"b","images":[]}') is None
    with pytest.raises(Undecodable, match="bookmarks"):
        newer.decode(older.encode(Totals(1, 2)))


def test_an_optional_field_that_is_missing_has_its_default() -> None:
    older = record_codec("older", Totals)
    newer = record_codec("newer", TotalsOfNext, optional={"bookmarks"})
    assert newer.read(older.encode(Totals(1, 2))) == TotalsOfNext(1, 2, 0)
    notes = record_codec("notes", Note, optional={"images"})
    assert notes.read('{"body":"b","hidden":true}') == Note(body="b", hidden=True)


def test_a_record_is_an_object_with_its_fields() -> None:
    assert record_codec("totals", Totals).encode(Totals(1, 2)) == '{"likes":1,"posts":2}'
    notes = record_codec("notes", Note)
    note = Note(body="\u00e9", images=("a",))
    assert notes.encode(note) == '{"body":"\u00e9","hidden":false,"images":["a"]}'
    assert notes.decode(notes.encode(note)) == note


def test_the_array_of_a_row_may_be_longer_and_not_shorter() -> None:
    rows = list_codec("rows", Totals)
    assert rows.encode([Totals(1, 2)]) == "[[1,2]]"
    assert rows.read("[[1,2],[3,4,5]]") == [Totals(1, 2), Totals(3, 4)]
    assert rows.read("[[1,2],[3]]") is None
    assert list_codec("optional_rows", Totals, {"posts"}).read("[[3]]") == [Totals(3, 0)]


@pytest.mark.parametrize(
    "text",
    ["", "{", "x", "null", "7", "[]", '{"likes":1}', '{"likes":1,"posts":"2"}', "[" * 100_000],
    ids=lambda text: text[:20],
)
def test_another_text_is_a_miss(text: str) -> None:
    totals = record_codec("totals", Totals)
    assert totals.read(text) is None
    with pytest.raises(Undecodable):
        totals.decode(text)


def test_no_text_is_a_miss() -> None:
    assert record_codec("totals", Totals).read(None) is None


def test_a_deleted_value_has_an_encoding_of_its_own() -> None:
    totals = or_deleted(record_codec("totals", Totals))
    assert totals.encode(DELETED) == "deleted"
    assert totals.decode("deleted") is DELETED
    assert totals.decode(totals.encode(Totals(1, 2))) == Totals(1, 2)
    assert totals.read("deletedx") is None


def test_equal_values_are_equal_texts_in_sorted_order() -> None:
    sets: Codec[dict[str, frozenset[str]]] = json_codec(
        "sets", dict[str, frozenset[str]], order="sorted"
    )
    assert sets.encode({"b": frozenset("yx"), "a": frozenset()}) == '{"a":[],"b":["x","y"]}'


def test_an_error_of_a_decoder_is_a_miss() -> None:
    numbers: Codec[int] = Codec("numbers", str, int)
    assert numbers.read("7") == 7
    assert numbers.read("seven") is None


def test_a_codec_is_declared_once() -> None:
    record_codec("totals", Totals)
    with pytest.raises(ValueError, match="declared twice"):
        record_codec("totals", Totals)
    assert list(codec.declared()) == ["totals"]
