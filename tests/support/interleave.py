"""Other work between two statements of a transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor


class _Cursor:
    """A cursor that runs ``work`` once, after its statement ``number``."""

    def __init__(self, cursor: Cursor, work: Callable[[], object], number: int) -> None:
        self._cursor, self._work, self._left = cursor, work, number

    def execute(self, *args: Any) -> int:
        rows = self._cursor.execute(*args)
        self._left -= 1
        if self._left == 0:
            self._work()
        return rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def run_after_statement(
    patch: pytest.MonkeyPatch, work: Callable[[], object], number: int = 1
) -> None:
    """Run ``work`` after the statement ``number`` of the next transaction."""
    run = mysql.run_in_transaction

    def run_once(of_transaction: Callable[[Any], Any]) -> Any:
        patch.setattr(mysql, "run_in_transaction", run)
        return run(lambda cursor: of_transaction(_Cursor(cursor, work, number)))

    patch.setattr(mysql, "run_in_transaction", run_once)
