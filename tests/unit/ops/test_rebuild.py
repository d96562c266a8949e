"""Arguments of ``rebuild``."""

from __future__ import annotations

import pytest

from cli.paths import CommandError
from ops.rebuild import parse_scope, parse_time
from plaza.core.reaction_log import Scope
from plaza.core.reactions import Target


def test_time_is_parsed_in_any_zone() -> None:
    assert parse_time("1970-01-01T00:00:01Z") == 1_000_000
    assert parse_time("2026-11-21T08:30:00.000001+08:00") == 1_795_221_000_000_001
    assert parse_time("1969-12-31T23:59:59Z") == -1_000_000


@pytest.mark.parametrize("text", ["yesterday", "2026-11-21T08:30:00", "2026-13-01T00:00:00Z", ""])
def test_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--as-of"):
        parse_time(text)


def test_scope_is_a_target_or_a_user() -> None:
    assert parse_scope(None, None) == Scope()
    assert parse_scope("post:7", None) == Scope(Target("post", 7))
    assert parse_scope("user:7", None) == Scope(Target("user", 7))
    assert parse_scope(None, "7") == Scope(user_id=7)


@pytest.mark.parametrize("text", ["post", "shop:7", "post:x", "7", "post:7 ", "post:-7"])
def test_invalid_target_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--target"):
        parse_scope(text, None)


@pytest.mark.parametrize("text", ["x", "", "-7", "7-9"])
def test_other_values_of_user_are_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--user"):
        parse_scope(None, text)
