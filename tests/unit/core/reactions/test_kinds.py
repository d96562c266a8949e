"""The parameter Kinds: what it takes, and that each mistake names its field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plaza.core.reactions.kinds import BUILT_IN, RESERVED, declare, kinds_of, parse_kinds
from plaza.infra.runtime.settings import BadSettings


def parse(**kinds: Any) -> Any:
    return parse_kinds(json.dumps(kinds))


def test_a_kind_is_added_by_its_targets() -> None:
    [bookmark, rating] = parse(
        bookmark={"targets": ["post", "review"]},
        rating={"targets": ["comment"], "actors": "public", "closed": True},
    )
    assert (bookmark.name, bookmark.targets) == ("bookmark", {"post", "review"})
    assert (bookmark.is_public, bookmark.is_closed) == (False, False)
    assert (rating.is_public, rating.is_closed) == (True, True)
    for kind in (bookmark, rating):
        counted = kind.received, kind.given, kind.notifies, kind.ranked, kind.hold
        assert counted == (None, None, False, frozenset(), None), "it counts for its target only"


@pytest.mark.parametrize("text", ["", "{}"])
def test_no_kinds_are_added_by_default(text: str) -> None:
    assert parse_kinds(text) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not an object"),
        ("{", "no JSON"),
        ('{"a": {"targets": ["post"]}, "a": {"targets": ["post"]}}', "twice"),
        ('{"a": {"targets": []}}', r"Kinds\.a\.targets"),
        ('{"a": {"targets": ["shop"]}}', r"Kinds\.a\.targets"),
        ('{"a": {"targets": [["post"]]}}', r"Kinds\.a\.targets"),
        ('{"a": {"targets": ["post", "post"]}}', r"Kinds\.a\.targets"),
        ('{"a": {"targets": "post"}}', r"Kinds\.a\.targets"),
        ('{"a": {"targets": ["post"], "actors": "all"}}', r"Kinds\.a\.actors"),
        ('{"a": {"targets": ["post"], "closed": 1}}', r"Kinds\.a\.closed"),
        ('{"a": {"targets": ["post"], "notifies": true}}', r"Kinds\.a\.notifies"),
        ('{"a": 1}', r"Kinds\.a "),
        ('{"A": {"targets": ["post"]}}', r"Kinds\.A"),
        ('{"1a": {"targets": ["post"]}}', r"Kinds\.1a"),
        ('{"": {"targets": ["post"]}}', r"Kinds\."),
        (json.dumps({"a" * 16: {"targets": ["post"]}}), "1 to 15"),
        (json.dumps({f"kind_{n}": {"targets": ["post"]} for n in range(9)}), "up to 8"),
        (" " * 501, "501 characters"),
    ],
)
def test_a_wrong_value_is_refused_with_its_field(text: str, message: str) -> None:
    with pytest.raises(BadSettings, match=message):
        parse_kinds(text)


@pytest.mark.parametrize("name", ["like", "comment", "order", "offer", "report", "answer"])
def test_a_name_that_means_something_else_is_refused(name: str) -> None:
    assert name in RESERVED | {kind.name for kind in BUILT_IN}
    with pytest.raises(BadSettings, match=f"Kinds.{name}: the name is taken"):
        parse(**{name: {"targets": ["post"]}})


def test_the_longest_name_is_taken() -> None:
    [kind] = parse(**{"a" * 15: {"targets": ["post"]}})
    assert len(kind.name) == 15


def test_a_kind_is_declared_once() -> None:
    with pytest.raises(BadSettings, match="like is declared twice"):
        declare((*BUILT_IN, BUILT_IN[0]))


def test_a_type_lists_its_kinds_in_their_order() -> None:
    assert [kind.name for kind in kinds_of("comment")] == ["like", "collect", "bookmark"]
    assert [kind.name for kind in kinds_of("user")] == ["follow"]
    assert kinds_of("shop") == ()
