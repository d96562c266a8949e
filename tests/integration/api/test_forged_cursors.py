"""A cursor that somebody forged is a 400 or a page, never a 500. Belongs into test_functions.py."""

from __future__ import annotations

import pytest

from plaza.infra.http import pack_cursor
from plaza.reactions import Target
from tests.support.functions import event, handler
from tests.support.plaza import World
from tests.support.stores import insert_rows


@pytest.mark.parametrize("of_type", ["\ud800", "é", "日本", "\x00", "x'y", "user", ""])
def test_a_cursor_with_a_type_that_is_none_is_bad_input(plaza: World, of_type: str) -> None:
    insert_rows([(Target("post", n), 7, 1, 1_000 + n) for n in range(1, 120)])
    asked = event("reactions.list_my_likes")
    asked["queryStringParameters"] = {"cursor": pack_cursor(1_010, of_type, 5)}
    assert handler("api/reactions")(asked, None)["statusCode"] in (200, 400)
