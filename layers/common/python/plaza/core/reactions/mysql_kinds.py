"""Kinds of reactions that MySQL counts."""

from __future__ import annotations

from plaza.infra.mysql import mysql


def read_counted() -> list[tuple[str, str]]:
    """Return each (type of target, kind) that has a counter, comments too. Raises MysqlDown. One
    statement, which reads a row for each of them."""
    rows = mysql.fetch_all("SELECT DISTINCT target_type, kind FROM counter FORCE INDEX (by_ranked)")
    return [(target_type, kind) for target_type, kind in rows]
