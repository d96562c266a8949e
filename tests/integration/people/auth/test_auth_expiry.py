"""Expired rows, and only they, are deleted, in steps."""

from __future__ import annotations

import pytest

from plaza.core.idempotency import mysql_expiry
from plaza.infra.jobs import expiry
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.people.auth import expired_sessions, new_session, session_lookup
from plaza.people.auth.sessions import KEPT_S
from tests.integration.conftest import Away
from tests.support.functions import event, handler
from tests.support.plaza import World


def count(table: str) -> int:
    return int(mysql.fetch_all(f"SELECT COUNT(*) FROM {table}")[0][0])


def expire_sessions() -> None:
    """Let all sessions have ended longer ago than Redis can have a copy of them."""
    mysql.write(
        "UPDATE session SET expires_at = UTC_TIMESTAMP(6) - INTERVAL %s SECOND", (KEPT_S + 1,)
    )


def delete_expired(max_s: float = expiry.MAX_RUN_S) -> dict[str, int]:
    return expiry.delete_in_steps([expired_sessions.EXPIRY, mysql_expiry.EXPIRY], max_s)


def add_key(key: int, hours_ago: float) -> None:
    mysql.write(
        "INSERT INTO idempotency_key (user_id, key_sha256, request_sha256, resource_type,"
        " resource_id, created_at)"
        " VALUES (7, %s, '', 'post', 1, UTC_TIMESTAMP(6) - INTERVAL %s SECOND)",
        (key.to_bytes(32, "big"), hours_ago * 3600),
    )


def test_only_expired_sessions_are_deleted(plaza: World) -> None:
    live, *expired = new_session.open_sessions(range(1, 31))
    expire_sessions()
    mysql.write(
        "UPDATE session SET expires_at = UTC_TIMESTAMP(6) + INTERVAL 60 SECOND WHERE user_id = 1"
    )
    result = handler("schedule/delete_expired")(event("delete_expired.schedule"), None)
    assert {table: number for table, number in result.items() if number} == {"session": 29}
    assert len(expired) == 29
    assert session_lookup.find_session(live)


def test_idempotency_keys_are_kept_for_a_day(plaza: World) -> None:
    for key, hours_ago in enumerate([0, 12, 23.9, 24.1, 48]):
        add_key(key, hours_ago)
    assert delete_expired()["idempotency_key"] == 2
    assert count("idempotency_key") == 3


def test_more_rows_than_a_step_are_deleted_in_several_steps(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "CHUNK", 10)
    new_session.open_sessions(range(1, 36))
    expire_sessions()
    assert delete_expired()["session"] == 35
    assert count("session") == 0


def test_at_the_deadline_the_rest_is_left_for_the_next_run(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "CHUNK", 10)
    new_session.open_sessions(range(1, 36))
    expire_sessions()
    assert delete_expired(max_s=0) == {"session": 0, "idempotency_key": 0}
    assert count("session") == 35


def test_without_mysql_the_deletion_fails(plaza: World, mysql_away: Away) -> None:
    with mysql_away(), pytest.raises(MysqlDown):
        delete_expired()
