"""Sessions: MySQL is the record, Redis stands in front, the token itself is nowhere."""

from __future__ import annotations

import hashlib
import time

import pytest

from plaza import auth
from plaza.auth import sessions
from plaza.infra import mysql, redis
from plaza.infra.mysql import MysqlDown
from tests.integration.conftest import Away
from tests.plaza import World


def stored_end(token: str) -> float:
    [(end_s,)] = mysql.fetch_all(
        "SELECT UNIX_TIMESTAMP(expires_at) FROM session WHERE token_sha256 = %s",
        (sessions.hash_token(token),),
    )
    return float(end_s)


def let_pass(token: str, seconds: int) -> None:
    """As if the session had been opened that much earlier."""
    sha = sessions.hash_token(token)
    mysql.write(
        "UPDATE session SET expires_at = expires_at - INTERVAL %s SECOND WHERE token_sha256 = %s",
        (seconds, sha),
    )
    kept = redis.execute("GET", f"session:{sha.hex()}")
    if kept:
        head, _, end_s = kept.rpartition(":")
        redis.execute("SET", f"session:{sha.hex()}", f"{head}:{int(end_s) - seconds}")


def test_a_session_is_found_by_its_token(plaza: World) -> None:
    token = auth.open_session(7, role="admin")
    for _ in range(2):  # from MySQL, then from Redis
        session = auth.find_session(token)
        assert session is not None
        assert (session.user_id, session.role) == (7, "admin")
    assert session.expires_at_s == pytest.approx(time.time() + 30 * 86_400, abs=60)


def test_a_token_that_nobody_was_given_is_none(plaza: World) -> None:
    auth.open_session(7)
    assert auth.find_session(sessions.make_token()) is None


def test_only_the_hash_of_a_token_is_stored_anywhere(plaza: World) -> None:
    token = auth.open_session(7)
    auth.find_session(token)
    [row] = mysql.fetch_all("SELECT * FROM session")
    assert row[0] == hashlib.sha256(token.encode()).digest()
    assert token not in repr(row)
    keys = redis.client().keys("*")
    assert keys == [f"session:{hashlib.sha256(token.encode()).hexdigest()}"]
    assert token not in redis.execute("GET", keys[0])


def test_many_sessions_are_opened_in_the_order_of_their_users(plaza: World) -> None:
    tokens = auth.open_sessions(range(1, 51))
    assert [s.user_id for s in map(auth.find_session, tokens) if s] == list(range(1, 51))


def test_a_session_that_is_used_lasts_longer_but_is_written_once_a_minute(plaza: World) -> None:
    token = auth.open_session(7)
    auth.find_session(token)
    let_pass(token, 50)
    early = stored_end(token)
    auth.find_session(token)
    assert stored_end(token) == early, "its end was moved less than a minute ago"
    let_pass(token, 20)
    session = auth.find_session(token)
    assert session is not None
    assert stored_end(token) == session.expires_at_s == pytest.approx(early + 50, abs=10)
    again = auth.find_session(token)
    assert again == session


@pytest.mark.parametrize("kept", [False, True], ids=["in MySQL", "in Redis too"])
def test_a_session_that_expired_is_refused(plaza: World, kept: bool) -> None:
    token = auth.open_session(7)
    if kept:
        auth.find_session(token)
    let_pass(token, 30 * 86_400 + 1)
    assert auth.find_session(token) is None
    assert auth.find_session(token) is None
    assert stored_end(token) < time.time()


def test_what_redis_keeps_of_a_session_ends_within_the_hour(plaza: World) -> None:
    token = auth.open_session(7)
    auth.find_session(token)
    [key] = redis.client().keys("session:*")
    assert 3_500 < redis.execute("TTL", key) <= 3_600


def test_sessions_work_while_redis_is_away(plaza: World, redis_away: Away) -> None:
    token = auth.open_session(7)
    with redis_away():
        let_pass_in_mysql = "UPDATE session SET expires_at = expires_at - INTERVAL 90 SECOND"
        mysql.write(let_pass_in_mysql)
        before = stored_end(token)
        session = auth.find_session(token)
        assert session is not None
        assert session.user_id == 7
        assert stored_end(token) > before, "its end is moved all the same"
        other = auth.open_session(8)
        assert auth.find_session(other)
        assert auth.find_session(sessions.make_token()) is None
    assert auth.find_session(token)


def test_while_mysql_is_away_sessions_that_redis_holds_work(plaza: World, mysql_away: Away) -> None:
    known, unknown = auth.open_session(7), auth.open_session(8)
    auth.find_session(known)
    with mysql_away():
        assert auth.find_session(known)
        with pytest.raises(MysqlDown):
            auth.find_session(unknown)
    assert auth.find_session(unknown)
