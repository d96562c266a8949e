"""A user's own sessions: listing and ending them, and what sessions of other versions mean."""

from __future__ import annotations

import json

import pytest

from plaza.infra.mysql import mysql
from plaza.infra.runtime.process import clear_caches
from plaza.people.auth import new_session, session_lookup
from plaza.people.auth.sessions import Opening, hash_token
from tests.integration.conftest import Away
from tests.integration.people.auth.test_sessions import set_role
from tests.support.plaza import World
from tests.support.sign_in_client import (
    HOME,
    OTHER,
    PHONE,
    forget_limits,
    read_code,
    request_code,
    send,
    sign_in,
    wrong,
)

ADA = 7


def list_own(token: str) -> list[dict[str, object]]:
    reply = send("GET", "/users/me/sessions", token=token, folder="api/users")
    assert reply.status == 200, reply.body
    assert reply.body["next"] is None
    return list(reply.body["items"])


def end(token: str, session_id: object) -> int:
    path = f"/users/me/sessions/{session_id}"
    return send("DELETE", path, token=token, folder="api/users").status


def test_a_user_lists_the_own_sessions_with_ids_that_are_no_tokens(plaza: World) -> None:
    set_role(ADA, "user")
    tokens = [
        new_session.open_session(ADA, opening=Opening.by("code", client))
        for client in (None, "Phone\x005", "x" * 300)
    ]
    new_session.open_session(8)
    listed = list_own(tokens[1])
    assert [item["client"] for item in listed] == ["x" * 200, "Phone 5", None]
    assert [item["current"] for item in listed] == [False, True, False]
    assert {item["method"] for item in listed} == {"code"}
    text = json.dumps(listed)
    for token in tokens:
        assert token not in text
        assert hash_token(token).hex() not in text


def test_a_method_of_another_version_is_listed_as_unknown(plaza: World) -> None:
    """Given a sign-in by a method that the version after has, and a rollback."""
    set_role(ADA, "user")
    token = new_session.open_session(ADA, opening=Opening.by("code", None))
    mysql.write("UPDATE session SET method = 'fingerprint'")
    [listed] = list_own(token)
    assert listed["method"] is None
    assert end(token, listed["id"]) == 204


def test_a_user_ends_one_session_at_once_and_no_other(plaza: World) -> None:
    set_role(ADA, "user")
    mine, other = new_session.open_session(ADA), new_session.open_session(ADA)
    theirs = new_session.open_session(8)
    [ended] = [item["id"] for item in list_own(mine) if not item["current"]]
    assert list_own(other)
    assert end(theirs, ended) == 404
    assert end(mine, ended) == 204
    clear_caches()
    assert send("GET", "/users/me/sessions", token=other, folder="api/users").status == 401
    assert end(mine, ended) == 404
    assert len(list_own(mine)) == 1
    own = list_own(mine)[0]["id"]
    assert end(mine, own) == 204
    assert send("GET", "/users/me/sessions", token=mine, folder="api/users").status == 401


def test_a_session_that_redis_did_not_hear_of_is_ended_by_a_repeat(
    plaza: World, redis_away: Away
) -> None:
    set_role(ADA, "user")
    mine, other = new_session.open_session(ADA), new_session.open_session(ADA)
    [ended] = [item["id"] for item in list_own(mine) if not item["current"]]
    with redis_away():
        assert end(mine, ended) == 503
    assert end(mine, ended) == 204
    assert session_lookup.find_session(other) is None


def test_a_sign_in_with_a_code_has_the_role_user(plaza: World) -> None:
    request_code()
    user_id = int(sign_in(read_code()).body["user"]["id"])
    set_role(user_id, "admin")
    forget_limits()
    request_code()
    token = sign_in(read_code()).body["token"]
    assert [item["role"] for item in list_own(token)] == ["user", "user"]
    assert send("GET", "/ops/health", token=token, folder="api/operations").status == 403


# ---------------------------------------------------------------- refused codes


def read_log(capsys: pytest.CaptureFixture[str], event: str) -> list[dict[str, object]]:
    out = capsys.readouterr().out
    assert PHONE not in out
    assert HOME not in out
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == event]


def test_refused_codes_are_recorded_with_hashes_of_phone_and_network(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    request_code()
    for _ in range(2):
        sign_in(wrong(read_code()))
    first, second = read_log(capsys, "code_refused")
    assert len(str(first["phone_hash"])) == len(str(first["network_hash"])) == 16
    assert first["phone_hash"] == second["phone_hash"]
    forget_limits()
    request_code(OTHER, source="198.51.100.9")
    sign_in(wrong(read_code(OTHER)), OTHER, source="198.51.100.9")
    [other] = read_log(capsys, "code_refused")
    assert other["phone_hash"] != first["phone_hash"]
    assert other["network_hash"] != first["network_hash"]


def test_a_limited_request_for_a_code_is_recorded_with_the_same_hashes(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    request_code()
    sign_in(wrong(read_code()))
    [refused] = read_log(capsys, "code_refused")
    assert request_code().status == 429
    [limited] = read_log(capsys, "attempt_limited")
    assert limited["phone_hash"] == refused["phone_hash"]
    assert limited["network_hash"] == refused["network_hash"]
