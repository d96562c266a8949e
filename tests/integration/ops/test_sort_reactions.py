"""``ops sort-reactions`` fills all lists."""

from __future__ import annotations

import json
from argparse import Namespace
from contextlib import nullcontext

import pytest

from ops import sort_reactions
from ops.__main__ import build_parser
from plaza.core.reactions import sorted_lists
from plaza.infra.mysql import mysql
from tests.support.plaza import World
from tests.support.stores import POST, insert_rows


def parse(*arguments: str) -> Namespace:
    return build_parser().parse_args(["sort-reactions", *arguments])


def test_lists_are_filled(
    plaza: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sort_reactions, "use_environment", lambda args: nullcontext())
    monkeypatch.setattr(sorted_lists, "MAX_UNSORTED", 1)
    monkeypatch.setattr(sorted_lists, "_ROWS_AT_ONCE", 2)
    insert_rows([(POST, actor, 1, 1_000 + actor) for actor in (1, 2, 3)])
    assert sort_reactions.main(parse()) == 0
    assert "1 lists filled" in capsys.readouterr().out
    assert mysql.fetch_all("SELECT COUNT(*) FROM sorted_reaction") == [(3,)]
    assert sort_reactions.main(parse("--json")) == 0
    assert json.loads(capsys.readouterr().out) == {"sorted": 0}
