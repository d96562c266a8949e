"""Users in MySQL: the record of who they are."""

from __future__ import annotations

from collections.abc import Iterable

from plaza.infra import mysql
from plaza.users.users import Card


def read_cards(user_ids: Iterable[int]) -> dict[int, tuple[Card, int]]:
    """(card, version) of those of ``user_ids`` who are there. One statement. Raises MysqlDown."""
    numbers = ",".join(str(int(user_id)) for user_id in user_ids)
    if not numbers:
        return {}
    rows = mysql.fetch_all(f"SELECT id, nickname, avatar, ver FROM user WHERE id IN ({numbers})")
    return {user_id: (Card(user_id, *shown), ver) for user_id, *shown, ver in rows}
