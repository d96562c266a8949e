"""Other work between two statements of a transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor


class _Cursor:
    """A cursor that runs ``work`` once, after its first statement."""

    def __init__(self, cursor: Cursor, work: Callable[[], object]) -> None:
        self._cursor, self._work = cursor, [work]

    def execute(self, *args: Any) -> int:
        rows = self._cursor.execute(*args)
        if self._work:
            self._work.pop()()
        return rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def run_after_first_statement(patch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Run ``work`` after the first statement of the next transaction."""
    run = mysql.run_in_transaction

    def run_once(of_transaction: Callable[[Any], Any]) -> Any:
        patch.setattr(mysql, "run_in_transaction", run)
        return run(lambda cursor: of_transaction(_Cursor(cursor, work)))

    patch.setattr(mysql, "run_in_transaction", run_once)
