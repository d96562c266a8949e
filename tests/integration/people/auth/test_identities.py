"""Signing in with ID tokens through the API: once each, one user for each subject of an issuer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from plaza.infra.aws import secrets
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime import switch_state
from plaza.infra.runtime.errors import SwitchedOff
from plaza.people.auth import new_session, redis_id_tokens, session_lookup
from plaza.people.auth.issuers import ISSUER_KEYS, IssuerKeys, select_keys
from plaza.people.auth.operate_server_keys import make_server_key
from plaza.people.users import sign_up
from plaza.people.users.model import UserMissing
from plaza.people.users.operator_commands import release_phone
from tests.integration.conftest import Away
from tests.support.issuer import AUDIENCE, ISSUERS, URL, FakeIssuer
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.sign_in_client import (
    OTHER,
    PHONE,
    Reply,
    challenge_of,
    let_a_minute_pass,
    read_code,
    request_code,
    send,
    signed_in,
)


@pytest.fixture
def issuer(set_up: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> FakeIssuer:
    """An issuer that the deployment accepts."""
    made = FakeIssuer()
    others = secrets._fetch
    monkeypatch.setattr(
        secrets, "_fetch", lambda name: made.stored() if name == "keys" else others(name)
    )
    set_up(identity_issuers=ISSUERS, issuer_keys_id="keys")
    return made


def use(token: str, **more: Any) -> Reply:
    return send("POST", "/auth/sessions", {"id_token": token, **more})


def identities() -> list[tuple[Any, ...]]:
    return mysql.fetch_all(
        "SELECT issuer, subject, user_id FROM user_identity ORDER BY issuer, subject"
    )


def link(token: str, phone: str = PHONE) -> Reply:
    """Link a phone by a new code to the user of a session."""
    assert request_code(phone).status == 202
    body = {"challenge": challenge_of(phone), "code": read_code(phone)}
    linked = send("PUT", "/auth/phone", body, token=token)
    let_a_minute_pass()
    return linked


def test_the_first_token_of_a_subject_creates_the_user(issuer: FakeIssuer) -> None:
    opened = use(issuer.sign())
    assert opened.status == 201
    assert opened.headers["location"] == "/auth/sessions/current"
    assert set(opened.body) == {"token", "expires_in", "user", "reopened"}
    user_id = int(opened.body["user"]["id"])
    session = session_lookup.find_session(opened.body["token"])
    assert session is not None
    assert (session.user_id, session.role) == (user_id, "user")
    assert identities() == [(URL, "ann", user_id)]
    again = use(issuer.sign("r1", iat=issuer.claims()["iat"] - 1))
    assert again.body["user"] == opened.body["user"]
    other = use(issuer.sign(sub="bob"))
    assert other.body["user"]["id"] != opened.body["user"]["id"]
    assert len(identities()) == 2


def test_subjects_differ_by_case_and_by_spaces(issuer: FakeIssuer) -> None:
    ids = {use(issuer.sign(sub=sub)).body["user"]["id"] for sub in ("ann", "Ann", "a|n", "a nn")}
    assert len(ids) == 4


def test_equal_subjects_of_two_issuers_are_two_users(
    issuer: FakeIssuer, set_up: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = FakeIssuer("https://other.example")
    stored = ISSUER_KEYS.encode(
        IssuerKeys({each.url: select_keys(each.key_set()) for each in (issuer, other)})
    )
    fetch = secrets._fetch
    monkeypatch.setattr(secrets, "_fetch", lambda name: stored if name == "keys" else fetch(name))
    set_up(identity_issuers=f"{ISSUERS},{other.url}|{AUDIENCE}", issuer_keys_id="keys")
    opened = [use(each.sign()).body["user"]["id"] for each in (issuer, other)]
    assert identities() == [
        (each.url, "ann", int(user_id))
        for each, user_id in zip((issuer, other), opened, strict=True)
    ]
    assert len(set(opened)) == 2


def test_a_token_works_once(issuer: FakeIssuer) -> None:
    token = issuer.sign()
    assert use(token).status == 201
    refused = use(token)
    assert (refused.status, refused.problem) == (401, "id-token-refused")
    assert "used before" in refused.body["detail"]
    [key] = find_keys("*:id-token:*")
    assert 600 < redis.execute("TTL", key) <= 660, "as long as the token could be used"


def test_a_nonce_works_once_in_any_token_of_its_subject(issuer: FakeIssuer) -> None:
    first, second = (issuer.sign(nonce="n-1", jti=jti) for jti in ("a", "b"))
    assert use(first, nonce="n-1").status == 201
    assert use(second, nonce="n-1").problem == "id-token-refused"
    assert use(issuer.sign(nonce="n-1", sub="bob"), nonce="n-1").status == 201
    assert use(issuer.sign(nonce="n-2"), nonce="n-1").problem == "id-token-refused"
    assert use(issuer.sign(nonce="n-2")).problem == "id-token-refused"


def test_a_refused_token_is_not_used_up_by_its_refusal(issuer: FakeIssuer) -> None:
    token = issuer.sign(nonce="n-1")
    assert use(token, nonce="n-2").problem == "id-token-refused"
    assert find_keys("*:id-token:*") == []
    assert use(token, nonce="n-1").status == 201


def test_one_of_two_sign_ins_uses_a_token_also_when_its_command_is_sent_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "plaza.people.auth.redis_id_tokens.secrets.token_hex", lambda _: "the first"
    )
    assert redis_id_tokens.use("a" * 64, 60)
    assert redis_id_tokens.use("a" * 64, 60), "its reply was lost"
    monkeypatch.undo()
    assert not redis_id_tokens.use("a" * 64, 60)
    redis_id_tokens.release("a" * 64)
    assert redis_id_tokens.use("a" * 64, 60)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"id_token": None},
        {"nonce": "n"},
        {"challenge": "A" * 43},
        {"code": "123456"},
        {"id_token": "a.b.c", "code": "123456"},
        {"id_token": "a.b.c", "challenge": "A" * 43, "code": "123456"},
        {"challenge": "A" * 43, "code": "123456", "nonce": "n"},
        {"id_token": "a.b"},
        {"id_token": "a.b." + "c" * 8192},
        {"id_token": 7},
        {"id_token": "a.b.c", "nonce": ""},
        {"id_token": "a.b.c", "nonce": "n" * 201},
    ],
)
def test_a_body_has_one_way_to_sign_in(issuer: FakeIssuer, body: dict[str, Any]) -> None:
    refused = send("POST", "/auth/sessions", body)
    assert (refused.status, refused.problem) == (400, "invalid-request")


def test_without_issuers_tokens_are_refused(plaza: World) -> None:
    assert use(FakeIssuer().sign()).problem == "id-token-refused"


def test_without_redis_no_token_opens_a_session(issuer: FakeIssuer, redis_away: Away) -> None:
    """Nothing else knows whether it was used."""
    token = issuer.sign()
    assert use(issuer.sign(sub="bob")).status == 201
    with redis_away():
        assert use(token).status == 503
    assert use(token).status == 201


def test_without_mysql_a_token_is_not_used_up(issuer: FakeIssuer, mysql_away: Away) -> None:
    token = issuer.sign()
    with mysql_away():
        assert use(token).status == 503
    assert use(token).status == 201


def test_new_accounts_can_be_stopped(issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    known = use(issuer.sign()).body["user"]

    def refuse(*_: object) -> None:
        raise SwitchedOff("no new accounts")

    monkeypatch.setattr(switch_state, "require", refuse)
    token = issuer.sign(sub="bob")
    assert use(token).status == 503
    assert use(issuer.sign(jti="2")).body["user"] == known
    monkeypatch.undo()


def test_no_log_line_has_a_token_or_a_nonce(
    issuer: FakeIssuer, capsys: pytest.CaptureFixture[str]
) -> None:
    token = issuer.sign(nonce="n-secret")
    capsys.readouterr()
    use(token, nonce="n-wrong")
    use(token, nonce="n-secret")
    use(token, nonce="n-secret")
    lines = capsys.readouterr().out
    assert '"signed_in":1' in lines
    assert lines.count('"id_tokens_refused":1') == 2
    for part in (*token.split("."), "n-secret", "n-wrong"):
        assert part not in lines


# ---------------------------------------------------------------- phones


def test_a_user_of_an_issuer_links_a_phone_and_signs_in_with_both(issuer: FakeIssuer) -> None:
    opened = use(issuer.sign()).body
    linked = link(opened["token"])
    assert (linked.status, linked.body) == (204, None)
    session = session_lookup.find_session(signed_in(PHONE))
    assert session is not None
    assert str(session.user_id) == opened["user"]["id"]
    assert link(opened["token"]).status == 204, "safe to repeat"
    assert use(issuer.sign(jti="2")).body["user"] == opened["user"]


def test_a_phone_of_another_user_is_not_taken(issuer: FakeIssuer) -> None:
    owner = session_lookup.find_session(signed_in(PHONE))
    opened = use(issuer.sign()).body
    refused = link(opened["token"])
    assert (refused.status, refused.problem) == (409, "phone-taken")
    assert owner is not None
    assert mysql.fetch_all("SELECT phone, user_id FROM user_phone") == [(PHONE, owner.user_id)]


def test_a_user_has_one_phone(issuer: FakeIssuer) -> None:
    opened = use(issuer.sign()).body
    assert link(opened["token"], PHONE).status == 204
    refused = link(opened["token"], OTHER)
    assert (refused.status, refused.problem) == (409, "phone-taken")
    assert [phone for (phone,) in mysql.fetch_all("SELECT phone FROM user_phone")] == [PHONE]


def test_a_released_phone_starts_a_new_account_and_its_user_links_another(
    issuer: FakeIssuer,
) -> None:
    """Given a number that its user gives up, and its next owner."""
    token = signed_in(PHONE)
    before = session_lookup.find_session(token)
    for _ in range(2):
        assert send("DELETE", "/auth/phone", token=token).status == 204, "safe to repeat"
    after = session_lookup.find_session(signed_in(PHONE, source="198.51.100.1"))
    assert before is not None
    assert after is not None
    assert after.user_id != before.user_id
    assert link(token, OTHER).status == 204
    again = session_lookup.find_session(signed_in(OTHER, source="198.51.100.2"))
    assert again is not None
    assert again.user_id == before.user_id


def test_an_old_session_and_a_key_release_no_phone(issuer: FakeIssuer) -> None:
    token = signed_in(PHONE)
    [(user_id,)] = mysql.fetch_all("SELECT user_id FROM user_phone")
    mysql.write("UPDATE session SET signed_in_at = signed_in_at - INTERVAL 301 SECOND")
    key = make_server_key("web", ["act"], 100, operator_id="test")[1]
    named = {"plaza-user": str(user_id)}
    for refused in (
        send("DELETE", "/auth/phone", token=token),
        send("DELETE", "/auth/phone", token=key, headers=named),
    ):
        assert (refused.status, refused.problem) == (403, "sign-in-too-old")
    assert mysql.fetch_all("SELECT user_id FROM user_phone") == [(user_id,)]


def test_an_operator_releases_a_phone(
    issuer: FakeIssuer, capsys: pytest.CaptureFixture[str]
) -> None:
    signed_in(PHONE)
    [(user_id,)] = mysql.fetch_all("SELECT user_id FROM user_phone")
    assert release_phone.run(user_id=user_id)["released"] is True
    assert release_phone.run(user_id=user_id)["released"] is False
    assert mysql.fetch_all("SELECT 1 FROM user_phone") == []
    lines = capsys.readouterr().out
    assert lines.count("phone_released") == 1
    assert PHONE not in lines


def test_a_wrong_code_links_nothing(issuer: FakeIssuer) -> None:
    opened = use(issuer.sign()).body
    request_code(PHONE)
    code = f"{(int(read_code(PHONE)) + 1) % 1_000_000:06}"
    body = {"challenge": challenge_of(PHONE), "code": code}
    assert send("PUT", "/auth/phone", body, token=opened["token"]).problem == "code-refused"
    assert mysql.fetch_all("SELECT 1 FROM user_phone") == []


def test_a_phone_is_linked_by_a_signed_in_user_only(issuer: FakeIssuer) -> None:
    """The missing session is reported first, also for a body that is wrong."""
    for token in (None, "A" * 43):
        for body in ({}, {"challenge": "A" * 43, "code": "123456"}):
            refused = send("PUT", "/auth/phone", body, token=token)
            assert (refused.status, refused.problem) == (401, "unauthenticated")


def test_an_erased_user_gets_no_phone(plaza: World) -> None:
    with pytest.raises(UserMissing):
        sign_up.link_phone(4_711, PHONE)
    assert mysql.fetch_all("SELECT 1 FROM user_phone") == []
    token = new_session.open_session(4_711)
    assert link(token).status == 404


def test_a_code_that_met_an_outage_still_links(issuer: FakeIssuer, mysql_away: Away) -> None:
    opened = use(issuer.sign()).body
    assert session_lookup.find_session(opened["token"])
    request_code(PHONE)
    body = {"challenge": challenge_of(PHONE), "code": read_code(PHONE)}
    with mysql_away():
        assert send("PUT", "/auth/phone", body, token=opened["token"]).status == 503
    assert send("PUT", "/auth/phone", body, token=opened["token"]).status == 204


def test_the_export_has_the_identity(issuer: FakeIssuer) -> None:
    opened = use(issuer.sign()).body
    reply = send("GET", "/users/me/export?limit=100", token=opened["token"])
    [row] = [item["row"] for item in reply.body["items"] if item["section"] == "identity"]
    assert (row["issuer"], row["subject"]) == (URL, "ann")
    assert json.dumps(row["created_at"])
