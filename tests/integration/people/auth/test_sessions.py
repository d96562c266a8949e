"""Sessions in MySQL, the record, and in Redis, the cache."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable

import pytest
from pymysql.constants import CR
from pymysql.err import OperationalError

from local.stack.servers import Server
from plaza.infra.aws import secrets
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.mysql import mysql
from plaza.infra.mysql.driver import SharedTlsConnection
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import connections, redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.errors import Unauthenticated
from plaza.people.auth import (
    mysql_store,
    new_session,
    redis_sessions,
    session_end,
    session_lookup,
    sessions,
)
from plaza.people.auth.redis_sessions import mark_ended, session_key
from plaza.people.auth.sessions import Session
from tests.integration.conftest import Away
from tests.support.failures import failing
from tests.support.keyspace import find_keys
from tests.support.plaza import World, forget
from tests.support.sign_in_client import Reply, is_accepted, send, sign_in, signed_in


def stored_end(token: str) -> float:
    [(end_s,)] = mysql.fetch_all(
        "SELECT UNIX_TIMESTAMP(expires_at) FROM session WHERE token_sha256 = %s",
        (sessions.hash_token(token),),
    )
    return float(end_s)


def let_pass(token: str, seconds: int) -> None:
    """Move the opening and the last read of a session into the past."""
    sha = sessions.hash_token(token)
    mysql.write(
        "UPDATE session SET expires_at = expires_at - INTERVAL %s SECOND,"
        " created_at = created_at - INTERVAL %s SECOND WHERE token_sha256 = %s",
        (seconds, seconds, sha),
    )
    session = redis_sessions.read(sha)
    if session is not None and session.user_id:
        times = [time_s - seconds for time_s in session[2:5]]
        redis_sessions.store(sha, Session(session.user_id, session.role, *times))


def check_again(token: str) -> None:
    """Let the next use of a cached session read MySQL, as after a minute."""
    session = redis_sessions.read(sha_of(token))
    assert session is not None
    redis_sessions.store(sha_of(token), session._replace(checked_at_s=0))


def set_role(user_id: int, role: str) -> None:
    """Set the role of a user, who is created if missing."""
    mysql.write(
        "INSERT INTO user (id, nickname, role) VALUES (%s, '', %s)"
        " ON DUPLICATE KEY UPDATE role = VALUES(role)",
        (user_id, role),
    )


def test_a_session_is_found_by_its_token(plaza: World) -> None:
    set_role(7, "admin")
    token = new_session.open_session(7)
    for _ in range(2):  # from MySQL, then from Redis
        session = session_lookup.find_session(token)
        assert session is not None
        assert (session.user_id, session.role) == (7, "admin")
    assert session
    assert session.expires_at_s == pytest.approx(time.time() + 30 * 86_400, abs=60)


def test_an_invented_token_has_no_session(plaza: World) -> None:
    new_session.open_session(7)
    assert session_lookup.find_session(sessions.make_token()) is None


def test_only_the_hash_of_a_token_is_stored(plaza: World) -> None:
    token = new_session.open_session(7)
    session_lookup.find_session(token)
    [row] = mysql.fetch_all("SELECT * FROM session")
    assert row[0] == hashlib.sha256(token.encode()).digest()
    assert token not in repr(row)
    keys = find_keys("*")
    sha = hashlib.sha256(token.encode()).digest()
    assert keys == [session_key(sha)]
    assert not any(token in redis.execute("GET", key) for key in keys)


def test_many_sessions_are_opened_in_the_order_of_their_users(plaza: World) -> None:
    tokens = new_session.open_sessions(range(1, 51))
    assert [s.user_id for s in map(session_lookup.find_session, tokens) if s] == list(range(1, 51))


def test_use_extends_a_session_with_few_writes(plaza: World) -> None:
    token = new_session.open_session(7)
    session_lookup.find_session(token)
    let_pass(token, 7 * 3600)
    early = stored_end(token)
    session_lookup.find_session(token)
    assert stored_end(token) == early, "less than a hundredth of its ttl has passed"
    let_pass(token, 3600)
    session = session_lookup.find_session(token)
    assert session is not None
    extended = early - 3600 + 8 * 3600
    assert stored_end(token) == session.expires_at_s == pytest.approx(extended, abs=10)
    again = session_lookup.find_session(token)
    assert again == session._replace(signed_in_at_s=0), "as Redis has it"


@pytest.mark.parametrize("cached", [False, True], ids=["in MySQL", "in Redis too"])
def test_a_session_in_constant_use_ends_at_its_absolute_end(
    plaza: World, set_up: Callable[..., None], cached: bool
) -> None:
    set_up(session_ttl_s=10 * 86_400, session_max_age_s=30 * 86_400)
    token = new_session.open_session(7)
    for _ in range(29):
        let_pass(token, 86_400)
        session = session_lookup.find_session(token)
        assert session is not None
    assert session
    assert session.expires_at_s == session.ends_at_s == pytest.approx(time.time() + 86_400, abs=60)
    assert stored_end(token) == session.ends_at_s
    let_pass(token, 86_400 + 1)
    if not cached:
        redis.execute("DEL", session_key(sessions.hash_token(token)))
    assert session_lookup.find_session(token) is None


def test_a_shorter_maximum_age_applies_to_open_sessions(
    plaza: World, set_up: Callable[..., None]
) -> None:
    token = new_session.open_session(7)
    let_pass(token, 3 * 86_400)
    assert session_lookup.find_session(token)
    set_up(session_max_age_s=2 * 86_400)
    let_pass(token, sessions.MAX_ROLE_AGE_S + 1)
    assert session_lookup.find_session(token) is None


@pytest.mark.parametrize(("before", "after"), [("user", "admin"), ("admin", "user")])
def test_a_change_of_role_takes_effect_within_a_minute_of_use(
    plaza: World, before: str, after: str
) -> None:
    set_role(7, before)
    token = new_session.open_session(7)
    assert role_of(token) == before
    set_role(7, after)
    let_pass(token, sessions.MAX_ROLE_AGE_S - 5)
    assert role_of(token) == before, "the role is cached"
    let_pass(token, 6)
    assert role_of(token) == after
    assert role_of(token) == after


def test_a_late_reader_restores_an_old_role_for_a_minute_at_most(
    plaza: World,
) -> None:
    set_role(7, "admin")
    token = new_session.open_session(7)
    assert role_of(token) == "admin"
    old = redis.execute("GET", session_key(sessions.hash_token(token)))
    set_role(7, "user")
    let_pass(token, 61)
    assert role_of(token) == "user"
    redis.execute("SET", session_key(sessions.hash_token(token)), old)
    let_pass(token, 61)
    assert role_of(token) == "user"


def test_without_mysql_the_cached_role_applies(plaza: World, mysql_away: Away) -> None:
    set_role(7, "admin")
    token = new_session.open_session(7)
    assert role_of(token) == "admin"
    let_pass(token, 61)
    with mysql_away():
        assert role_of(token) == "admin"


def role_of(token: str) -> str:
    session = session_lookup.find_session(token)
    assert session is not None
    return session.role


@pytest.mark.parametrize("cached", [False, True], ids=["in MySQL", "in Redis too"])
def test_an_expired_session_is_refused(plaza: World, cached: bool) -> None:
    token = new_session.open_session(7)
    if cached:
        session_lookup.find_session(token)
    let_pass(token, 30 * 86_400 + 1)
    assert session_lookup.find_session(token) is None
    assert session_lookup.find_session(token) is None
    assert stored_end(token) < time.time()


def test_a_cached_session_expires_within_an_hour(plaza: World) -> None:
    token = new_session.open_session(7)
    session_lookup.find_session(token)
    [key] = find_keys("*:session:*")
    assert 3_500 < redis.execute("TTL", key) <= 3_600


def test_sessions_work_while_redis_is_down(plaza: World, redis_away: Away) -> None:
    token = new_session.open_session(7)
    with redis_away():
        let_pass_in_mysql = "UPDATE session SET expires_at = expires_at - INTERVAL 9 HOUR"
        mysql.write(let_pass_in_mysql)
        before = stored_end(token)
        session = session_lookup.find_session(token)
        assert session is not None
        assert session.user_id == 7
        assert stored_end(token) > before, "it is extended in MySQL"
        other = new_session.open_session(8)
        assert session_lookup.find_session(other)
        assert session_lookup.find_session(sessions.make_token()) is None
    assert session_lookup.find_session(token)


def test_while_mysql_is_down_cached_sessions_work(plaza: World, mysql_away: Away) -> None:
    cached, uncached = new_session.open_session(7), new_session.open_session(8)
    session_lookup.find_session(cached)
    with mysql_away():
        assert session_lookup.find_session(cached)
        with pytest.raises(MysqlDown):
            session_lookup.find_session(uncached)
    assert session_lookup.find_session(uncached)


# ---------------------------------------------------------------- ending


def sha_of(token: str) -> bytes:
    return sessions.hash_token(token)


def test_an_ended_session_is_over_at_once_and_for_good(plaza: World) -> None:
    token, other = new_session.open_session(7), new_session.open_session(7)
    assert session_lookup.find_session(token)
    session_end.end_session(token)
    for _ in range(3):
        assert session_lookup.find_session(token) is None
    assert mysql_store.read(sha_of(token), 86_400) is None
    assert session_lookup.find_session(other)
    session_end.end_session(token)
    assert session_lookup.find_session(token) is None


@pytest.mark.parametrize("cached", [False, True], ids=["in MySQL", "in Redis too"])
def test_a_read_from_before_the_end_does_not_restore_a_session(
    plaza: World, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    """Given a reader that reads MySQL before the end and fills Redis after it."""
    token = new_session.open_session(7)
    if cached:
        session_lookup.find_session(token)
        redis.execute("DEL", session_key(sha_of(token)))
    read = mysql_store.read

    def read_then_end(sha: bytes, max_age_s: int) -> Session | None:
        result = read(sha, max_age_s)
        session_end.end_session(token)
        return result

    monkeypatch.setattr(mysql_store, "read", read_then_end)
    assert session_lookup.find_session(token), "it existed when it was read"
    monkeypatch.setattr(mysql_store, "read", read)
    assert session_lookup.find_session(token) is None


def test_a_concurrent_extension_does_not_restore_an_ended_session(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given an extension in MySQL before the end and in Redis after it."""
    token = new_session.open_session(7)
    session_lookup.find_session(token)
    let_pass(token, 9 * 3600)
    extend = mysql_store.extend

    def extend_then_end(sha: bytes, expires_at_s: int) -> bool:
        extended = extend(sha, expires_at_s)
        session_end.end_session(token)
        return extended

    monkeypatch.setattr(mysql_store, "extend", extend_then_end)
    assert session_lookup.find_session(token)
    monkeypatch.setattr(mysql_store, "extend", extend)
    assert session_lookup.find_session(token) is None


def test_a_use_that_read_redis_before_the_end_is_refused_after_its_check(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = new_session.open_session(7)
    session_lookup.find_session(token)
    let_pass(token, 90)
    read = redis_sessions.read

    def read_then_end(sha: bytes) -> Session | None:
        result = read(sha)
        session_end.end_session(token)
        return result

    monkeypatch.setattr(redis_sessions, "read", read_then_end)
    assert session_lookup.find_session(token) is None


def test_an_ended_session_stays_ended_in_redis_without_its_row_or_secrets(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker has no signature, because an outage must not bring a session back."""
    token = new_session.open_session(7)
    session_end.end_session(token)
    monkeypatch.setattr(secrets, "_fetch", failing(SecretsDown("gone")))
    forget()
    marked = redis_sessions.read(sha_of(token))
    assert marked is not None
    assert marked.expires_at_s == 0


def test_a_session_that_a_failover_restored_ends_within_a_minute_of_use(
    plaza: World,
) -> None:
    """Given a replica that had the session, but not its end."""
    token = new_session.open_session(7)
    session_lookup.find_session(token)
    old = redis.execute("GET", session_key(sha_of(token)))
    session_end.end_session(token)
    redis.execute("SET", session_key(sha_of(token)), old)
    session = redis_sessions.read(sha_of(token))
    assert session is not None
    redis_sessions.store(sha_of(token), session._replace(checked_at_s=session.checked_at_s - 61))
    assert session_lookup.find_session(token) is None
    assert session_lookup.find_session(token) is None


def test_the_marker_of_an_ended_session_outlives_cached_sessions(plaza: World) -> None:
    token = new_session.open_session(7)
    session_end.end_session(token)
    ttl_s = redis.execute("TTL", session_key(sha_of(token)))
    assert ttl_s > sessions.MAX_CACHED_S
    redis.execute("DEL", session_key(sha_of(token)))
    assert session_lookup.find_session(token) is None, "MySQL has no session"


def test_markers_of_invented_tokens_expire_within_a_minute(plaza: World) -> None:
    token = sessions.make_token()
    session_end.end_session(token)
    assert 0 < redis.execute("TTL", session_key(sha_of(token))) <= 60


def test_signing_out_without_redis_is_503_and_can_be_repeated(
    plaza: World, redis_server: Server, set_up: Callable[..., None]
) -> None:
    """Given a Redis that hangs and resumes with its data."""
    set_up(redis_timeout_s=0.2)
    token = signed_in()
    assert is_accepted(token)
    redis_server.pause()
    try:
        refused = send("DELETE", "/auth/sessions/current", token=token)
        assert (refused.status, refused.problem) == (503, "unavailable")
        assert send("DELETE", "/auth/sessions/current", token=token).status == 503
    finally:
        redis_server.resume()
        connections.REDIS.breaker.close()
    # Redis may have executed a command while it hung; the token is unknown then.
    assert send("DELETE", "/auth/sessions/current", token=token).status in (204, 401)
    assert not is_accepted(token)


def test_a_sign_out_that_redis_missed_is_repeated_with_the_same_token(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = signed_in()
    assert is_accepted(token)

    def fail(*_: object) -> None:
        raise RedisDown("Redis is down, simulated by a test")

    with monkeypatch.context() as patch:
        patch.setattr(redis_sessions, "mark_ended", fail)
        assert send("DELETE", "/auth/sessions/current", token=token).status == 503
    assert is_accepted(token), "Redis has cached it"
    assert send("DELETE", "/auth/sessions/current", token=token).status == 204
    assert not is_accepted(token)


def test_signing_out_without_mysql_ends_nothing_and_can_be_repeated(
    plaza: World, mysql_away: Away
) -> None:
    token = signed_in()
    assert is_accepted(token)
    with mysql_away():
        for path in ("/auth/sessions/current", "/auth/sessions"):
            assert send("DELETE", path, token=token).status == 503
        assert is_accepted(token)
    assert send("DELETE", "/auth/sessions/current", token=token).status == 204
    assert not is_accepted(token)


# ---------------------------------------------------------------- ending all of them


def test_signing_out_everywhere_ends_all_sessions_of_the_user_only(plaza: World) -> None:
    tokens, others = new_session.open_sessions([7] * 20), new_session.open_sessions([8, 9])
    for token in [*tokens[:10], *others]:
        session_lookup.find_session(token)
    session_end.end_all_sessions(tokens[0])
    assert [session_lookup.find_session(token) for token in tokens] == [None] * 20
    assert all(session_lookup.find_session(token) for token in others)
    assert mysql.fetch_all("SELECT COUNT(*) FROM session WHERE user_id = 7") == [(0,)]
    assert session_lookup.find_session(new_session.open_session(7)), "signing in again works"


def test_a_read_from_before_signing_out_everywhere_restores_no_session(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, other = new_session.open_sessions([7, 7])
    read = mysql_store.read

    def read_then_end(sha: bytes, max_age_s: int) -> Session | None:
        result = read(sha, max_age_s)
        monkeypatch.setattr(mysql_store, "read", read)
        session_end.end_all_sessions(token)
        return result

    monkeypatch.setattr(mysql_store, "read", read_then_end)
    assert session_lookup.find_session(other)
    assert session_lookup.find_session(other) is None


def test_an_ended_token_ends_no_other_session(plaza: World) -> None:
    ended, other = new_session.open_sessions([7, 7])
    session_end.end_session(ended)
    with pytest.raises(Unauthenticated):
        session_end.end_all_sessions(ended)
    assert session_lookup.find_session(other)


def test_a_token_that_is_only_cached_ends_no_other_session(plaza: World) -> None:
    ended, other = new_session.open_sessions([7, 7])
    session_lookup.find_session(ended)
    mysql.write("DELETE FROM session WHERE token_sha256 = %s", (sha_of(ended),))
    session_end.end_all_sessions(ended)
    assert session_lookup.find_session(ended) is None
    assert session_lookup.find_session(other)


def test_signing_out_everywhere_without_redis_ends_nothing_until_repeated(
    plaza: World, redis_server: Server, set_up: Callable[..., None]
) -> None:
    set_up(redis_timeout_s=0.2)
    token = signed_in()
    session = session_lookup.find_session(token)
    assert session is not None
    others = new_session.open_sessions([session.user_id] * 3)
    for other in others:
        session_lookup.find_session(other)
    redis_server.pause()
    try:
        assert send("DELETE", "/auth/sessions", token=token).status == 503
    finally:
        redis_server.resume()
        connections.REDIS.breaker.close()
    assert is_accepted(token), "so that the call can be repeated"
    assert send("DELETE", "/auth/sessions", token=token).status == 204
    for ended in [token, *others]:
        assert not is_accepted(ended)


@pytest.mark.parametrize("fails_at", [1, 2], ids=["other sessions", "own session"])
def test_after_any_failure_of_redis_a_repeat_ends_all_sessions(
    plaza: World, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    token, other = new_session.open_sessions([7, 7])
    for cached in (token, other):
        session_lookup.find_session(cached)
    calls = []

    def fail_once(shas: list[bytes], ttl_s: int) -> None:
        calls.append(shas)
        if len(calls) == fails_at:
            raise RedisDown("Redis is down, simulated by a test")
        mark_ended(shas, ttl_s)

    monkeypatch.setattr(redis_sessions, "mark_ended", fail_once)
    with pytest.raises(RedisDown):
        session_end.end_all_sessions(token)
    assert session_lookup.find_session(token), "the call can be repeated"
    session_end.end_all_sessions(token)
    assert session_lookup.find_session(token) is None
    assert session_lookup.find_session(other) is None


def test_a_failed_commit_ends_no_session_also_not_for_a_while(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, other = new_session.open_sessions([7, 7])
    for cached in (token, other):
        session_lookup.find_session(cached)

    def fail(connection: SharedTlsConnection) -> None:
        connection.rollback()
        raise OperationalError(CR.CR_SERVER_LOST, "lost during COMMIT, simulated by a test")

    for end in (
        lambda: session_end.end_user_sessions(7, operator_id=1),
        lambda: session_end.end_all_sessions(token),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(SharedTlsConnection, "commit", fail)
            with pytest.raises(MysqlDown):
                end()
        assert all(session_lookup.find_session(cached) for cached in (token, other))
    assert session_end.end_user_sessions(7, operator_id=1) == 2
    assert not any(session_lookup.find_session(cached) for cached in (token, other))


def test_after_an_end_between_commit_and_redis_sessions_are_refused_within_a_minute_for_good(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    uncached, cached = new_session.open_sessions([7, 7])
    session_lookup.find_session(cached)

    def end_process(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(redis_sessions, "mark_ended", end_process)
        with pytest.raises(KeyboardInterrupt):
            session_end.end_user_sessions(7, operator_id=1)
    assert session_lookup.find_session(uncached) is None
    assert session_lookup.find_session(cached), "as cached"
    check_again(cached)
    assert session_lookup.find_session(cached) is None
    redis.execute("UNLINK", session_key(sha_of(cached)))  # as the mark ends
    assert session_lookup.find_session(cached) is None


@pytest.mark.parametrize("dies_in", ["mark_ended", "delete_all"])
def test_a_repeat_ends_what_a_process_left_although_expired_rows_are_deleted(
    plaza: World, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    tokens = new_session.open_sessions([7, 7])
    for token in tokens:
        session_lookup.find_session(token)

    def end_process(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(redis_sessions, "mark_ended", end_process)
        patch.setattr(mysql_store, "delete_all", end_process)
        if dies_in == "delete_all":
            patch.setattr(redis_sessions, "mark_ended", mark_ended)
        with pytest.raises(KeyboardInterrupt):
            session_end.end_user_sessions(7, operator_id=1)
    assert mysql_store.delete_expired(100) == 0
    assert session_end.end_user_sessions(7, operator_id=1) == 2
    assert [session_lookup.find_session(token) for token in tokens] == [None, None]
    assert mysql.fetch_all("SELECT COUNT(*) FROM session") == [(0,)]


# ---------------------------------------------------------------- through the API


@pytest.mark.parametrize("path", ["/auth/sessions/current", "/auth/sessions"])
def test_a_token_is_refused_after_signing_out(plaza: World, path: str) -> None:
    token = signed_in()
    assert is_accepted(token)
    completed = send("DELETE", path, token=token)
    assert (completed.status, completed.body) == (204, None)
    assert not is_accepted(token)
    for again in ("/auth/sessions/current", "/auth/sessions"):
        refused = send("DELETE", again, token=token)
        assert (refused.status, refused.problem) == (401, "unauthenticated")


@pytest.mark.parametrize("path", ["/auth/sessions/current", "/auth/sessions"])
@pytest.mark.parametrize("token", [None, "x", "A" * 43], ids=["none", "malformed", "unknown"])
def test_signing_out_without_a_session_is_401(plaza: World, path: str, token: str | None) -> None:
    refused = send("DELETE", path, token=token)
    assert (refused.status, refused.problem) == (401, "unauthenticated")


def test_a_code_does_not_work_after_signing_out(plaza: World) -> None:
    token = signed_in()
    send("DELETE", "/auth/sessions", token=token)
    assert sign_in("000000").status == 401


# ---------------------------------------------------------------- ended by an operator


def test_an_admin_ends_all_sessions_of_one_user(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    set_role(1, "admin")
    admin, other = new_session.open_session(1), new_session.open_session(8)
    tokens = new_session.open_sessions([7] * 20)
    assert all(is_accepted(token) for token in [*tokens[:10], other])
    completed = end_sessions(7, admin)
    assert (completed.status, completed.body) == (200, {"ended": 20})
    assert not any(is_accepted(token) for token in tokens)
    assert is_accepted(other)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [line] = [line for line in lines if line["event"] == "sessions_ended"]
    assert (line["user_id"], line["operator_id"], line["ended"]) == (7, 1, 20)
    assert end_sessions(7, admin).body == {"ended": 0}
    assert end_sessions("abc", admin).status == 404
    assert is_accepted(new_session.open_session(7)), "signing in again works"


def test_a_user_can_not_end_sessions_of_another_user(plaza: World) -> None:
    own, other = new_session.open_session(8), new_session.open_session(7)
    assert end_sessions(7, own).problem == "forbidden"
    assert end_sessions(7, None).problem == "unauthenticated"
    assert is_accepted(other)


def test_ending_the_sessions_of_a_user_without_redis_ends_none_and_can_be_repeated(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_role(1, "admin")
    admin, token = new_session.open_sessions([1, 7])
    assert is_accepted(token)

    def fail(*_: object) -> None:
        raise RedisDown("Redis is down, simulated by a test")

    with monkeypatch.context() as patch:
        patch.setattr(redis_sessions, "mark_ended", fail)
        assert end_sessions(7, admin).status == 503
    assert is_accepted(token)
    assert end_sessions(7, admin).body == {"ended": 1}
    assert not is_accepted(token)


def end_sessions(user_id: int | str, token: str | None) -> Reply:
    path = f"/users/{user_id}/sessions"
    return send("DELETE", path, token=token, folder="api/users")


# ---------------------------------------------------------------- signatures

FAR_S = 4_000_000_000


def test_a_session_written_into_redis_without_a_signature_opens_nothing(plaza: World) -> None:
    set_role(1, "admin")
    for mac in (None, "", "0" * 22):
        token = sessions.make_token()
        sha = sha_of(token)
        value = f"1:admin:{FAR_S}:{FAR_S}:{FAR_S}"
        redis.execute("SET", session_key(sha), value if mac is None else f"{value} {mac}")
        assert session_lookup.find_session(token) is None


def test_a_signature_belongs_to_one_token_and_one_value(plaza: World) -> None:
    set_role(1, "admin")
    set_role(7, "user")
    stolen, own = new_session.open_session(1), new_session.open_session(7)
    for token in (stolen, own):
        session_lookup.find_session(token)
    sha = sha_of(own)
    redis.execute("SET", session_key(sha), redis.execute("GET", session_key(sha_of(stolen))))
    assert role_of(own) == "user"
    raised = redis.execute("GET", session_key(sha)).replace("user", "admin")
    redis.execute("SET", session_key(sha), raised)
    assert role_of(own) == "user"


def test_a_session_checked_in_the_future_is_checked_again(plaza: World) -> None:
    set_role(7, "admin")
    token = new_session.open_session(7)
    session = session_lookup.find_session(token)
    assert session is not None
    set_role(7, "user")
    redis_sessions.store(sha_of(token), session._replace(checked_at_s=int(time.time()) + 3_600))
    assert role_of(token) == "user"


def test_a_signature_stays_valid_for_one_rotation_of_the_secret(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({"current": "a"})
    monkeypatch.setattr(secrets, "_fetch", lambda _: text)
    forget()
    token = new_session.open_session(7)
    session_lookup.find_session(token)
    monkeypatch.setattr(mysql_store, "read", lambda *_: pytest.fail("the signature is valid"))
    text = json.dumps({"current": "b", "previous": "a"})
    forget()
    assert session_lookup.find_session(token) is not None


def test_without_secrets_manager_mysql_decides(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = new_session.open_session(7)
    session_lookup.find_session(token)

    def fail(_: str) -> str:
        raise SecretsDown("simulated by a test")

    monkeypatch.setattr(secrets, "_fetch", fail)
    forget()
    assert role_of(token) == "user"
    mysql.write("DELETE FROM session")
    assert session_lookup.find_session(token) is None
