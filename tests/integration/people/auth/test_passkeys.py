"""Passkeys through the API: enrolling, signing in, what is refused, and fresh sign-ins."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from plaza.infra.jobs.operator_commands import Refused
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime import clock
from plaza.operate.operator_commands import commands
from plaza.people.auth import mysql_passkeys, new_session, session_lookup
from plaza.people.auth.caller_identity import identify
from plaza.people.auth.expired_sessions import delete_expired
from plaza.people.auth.redis_passkeys import passkey_challenge_key
from plaza.people.auth.request_erasure import erase_now
from plaza.people.auth.sessions import MAX_PASSKEY_SESSION_S, Opening
from plaza.people.users import cards
from tests.integration.conftest import Away
from tests.integration.people.auth.test_sessions import set_role
from tests.support.authenticator import ORIGIN, Authenticator
from tests.support.plaza import World
from tests.support.sign_in_client import HOME, Reply, send

ADA, BOB = 7, 8


@pytest.fixture
def console(plaza: World, set_up: Callable[..., None]) -> World:
    """Two operators, and the origin of a console."""
    set_up(console_origin=ORIGIN)
    set_role(ADA, "admin")
    set_role(BOB, "operator")
    return plaza


def let_pass(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    before = clock.now_s
    monkeypatch.setattr(clock, "now_s", lambda: before() + seconds)


def run(command: str, **arguments: Any) -> Any:
    return commands.run({"command": command, "arguments": arguments, "caller": "arn:test"})


def make_code(user_id: int = ADA) -> str:
    return str(run("make-passkey-code", user_id=user_id)["code"])


def ask_challenge(code: str | None = None, token: str | None = None) -> Any:
    body = {} if code is None else {"code": code}
    reply = send("POST", "/passkey-challenges", body, token=token)
    assert reply.status == 200, reply.body
    return reply.body


def enroll(
    device: Authenticator,
    code: str | None,
    *,
    token: str | None = None,
    challenge: Any = None,
    name: str = "Laptop",
) -> Reply:
    issued = challenge or ask_challenge(code, token)
    body = {"name": name, **device.make(issued)} | ({} if code is None else {"code": code})
    return send("POST", "/passkeys", body, token=token)


def sign_in(device: Authenticator, challenge: Any = None, **changes: str) -> Reply:
    signed = device.sign(challenge or ask_challenge()) | changes
    return send("POST", "/auth/sessions", {"passkey": signed}, headers={"user-agent": "Fire\tfox"})


def enrolled(user_id: int = ADA, **options: Any) -> Authenticator:
    device = Authenticator(**options)
    reply = enroll(device, make_code(user_id))
    assert reply.status == 201, reply.body
    return device


def signed_in(device: Authenticator) -> str:
    reply = sign_in(device)
    assert reply.status == 201, reply.body
    return str(reply.body["token"])


def is_refused(reply: Reply) -> bool:
    return (reply.status, reply.problem) == (401, "passkey-refused")


# ---------------------------------------------------------------- sign-in


def test_a_passkey_opens_a_session_of_12_hours_with_the_role_of_its_user(
    console: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = enrolled()
    reply = sign_in(device)
    assert reply.status == 201
    assert reply.body["expires_in"] == MAX_PASSKEY_SESSION_S
    assert reply.body["user"]["id"] == str(ADA)
    session = session_lookup.find_session(reply.body["token"])
    assert session is not None
    assert session.role == "admin"
    assert abs(session.ends_at_s - clock.now_s() - MAX_PASSKEY_SESSION_S) < 30
    assert abs(session.signed_in_at_s - clock.now_s()) < 30
    let_pass(monkeypatch, MAX_PASSKEY_SESSION_S + 1)
    assert session_lookup.find_session(reply.body["token"]) is None


def test_a_device_without_a_counter_signs_in_again_and_again(console: World) -> None:
    device = enrolled(counts=False)
    assert [sign_in(device).status for _ in range(3)] == [201] * 3


def test_a_challenge_works_once(console: World) -> None:
    device, challenge = enrolled(), ask_challenge()
    assert sign_in(device, challenge).status == 201
    assert is_refused(sign_in(device, challenge))


def test_a_challenge_is_over_after_five_minutes(console: World) -> None:
    challenge = ask_challenge()
    key = passkey_challenge_key(challenge["challenge"])
    assert 290 < int(redis.execute("TTL", key)) <= 300
    device = enrolled()
    redis.execute("DEL", key)
    assert is_refused(sign_in(device, challenge))


@pytest.mark.parametrize(
    "options",
    [{"origin": "https://evil.example"}, {"verifies": False}],
    ids=["another page", "no verified user"],
)
def test_another_page_or_an_unverified_user_is_refused(
    console: World, options: dict[str, Any]
) -> None:
    assert is_refused(enroll(Authenticator(**options), make_code()))
    device = enrolled()
    for name, value in options.items():
        setattr(device, name, value)
    assert is_refused(sign_in(device))


def test_a_signature_of_another_device_is_refused(console: World) -> None:
    device, other = enrolled(), enrolled(BOB)
    other.sign_count = 10
    signed = other.sign(ask_challenge())
    assert is_refused(sign_in(device, signature=signed["signature"]))
    device.user_handle = str(BOB).encode()
    assert is_refused(sign_in(device)), "the passkey of another user"
    assert is_refused(sign_in(Authenticator(user_handle=b"7"))), "an unknown passkey"


def test_a_copied_device_is_refused_by_its_counter(console: World) -> None:
    device = enrolled()
    signed_in(device)
    device.sign_count = 0
    assert is_refused(sign_in(device))


def test_a_passkey_that_devices_share_has_a_counter_on_each(console: World) -> None:
    device = enrolled(is_synced=True)
    for sign_count in (9, 0, 9):
        device.sign_count = sign_count
        signed_in(device)


def test_a_copy_that_says_it_is_synced_is_refused_by_its_counter(console: World) -> None:
    """Given a passkey whose device may not copy it."""
    device = enrolled()
    signed_in(device)
    device.sign_count, device.is_synced = 0, True
    assert is_refused(sign_in(device))


@pytest.mark.parametrize(
    "field", ["client_data", "authenticator_data", "signature", "credential_id"]
)
@pytest.mark.parametrize("text", ["A", "AAAA", "eyJjaGFsbGVuZ2UiOjF9", "W10", "-_-_" * 100])
def test_garbage_is_refused(console: World, field: str, text: str) -> None:
    assert is_refused(sign_in(enrolled(), **{field: text}))


@pytest.mark.parametrize(
    "text", ["A", "oA", "o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YUA", "-_-_" * 100]
)
def test_a_garbled_attestation_is_refused(console: World, text: str) -> None:
    code = make_code()
    body = {"name": "x", "code": code, **Authenticator().make(ask_challenge(code))}
    assert is_refused(send("POST", "/passkeys", body | {"attestation": text}))
    assert enroll(Authenticator(), code).status == 201, "the code still works"


def test_a_refusal_is_recorded_with_hashes_and_no_address(
    console: World, capsys: pytest.CaptureFixture[str]
) -> None:
    sign_in(enrolled(), signature="AAAA")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line[:1] == "{"]
    [refused] = [line for line in lines if line.get("event") == "passkey_refused"]
    assert (refused["reason"], refused["user_id"]) == ("signature", ADA)
    assert len(refused["network_hash"]) == 16
    assert HOME not in json.dumps(lines)


def test_a_sign_in_while_an_operator_ends_the_passkeys_leaves_no_session(
    console: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, read = enrolled(), cards.read_cards

    def end_and_read(user_ids: Any) -> Any:
        run("end-passkeys", user_id=ADA)
        return read(user_ids)

    challenge = ask_challenge()
    monkeypatch.setattr(cards, "read_cards", end_and_read)
    assert is_refused(sign_in(device, challenge))
    assert mysql.fetch_all("SELECT 1 FROM session") == []


def test_without_an_origin_there_are_no_passkeys(plaza: World) -> None:
    assert send("POST", "/passkey-challenges", {}).status == 404
    body = {"passkey": Authenticator(user_handle=b"7").sign({"challenge": "A" * 43, "rp_id": "x"})}
    assert send("POST", "/auth/sessions", body).status == 404


def test_without_redis_signing_in_is_a_503(console: World, redis_away: Away) -> None:
    device, challenge = enrolled(), ask_challenge()
    with redis_away():
        assert send("POST", "/passkey-challenges", {}).status == 503
        assert sign_in(device, challenge).status == 503


# ---------------------------------------------------------------- enrolling


def test_a_code_enrolls_one_passkey(console: World) -> None:
    code = make_code()
    assert ask_challenge(code)["user"]["id"] == str(ADA)
    first, second = Authenticator(), Authenticator()
    challenge, other = ask_challenge(code), ask_challenge(code)
    assert enroll(first, code, challenge=challenge).status == 201
    assert is_refused(enroll(second, code, challenge=other))
    assert send("POST", "/passkey-challenges", {"code": code}).status == 401
    assert is_refused(sign_in(second))


def test_a_code_is_stored_as_a_hash_and_is_over_after_an_hour(console: World) -> None:
    code = make_code()
    rows = mysql.fetch_all("SELECT * FROM passkey_code")
    assert code.encode() not in repr(rows).encode()
    assert delete_expired(10) == 0
    challenge = ask_challenge(code)
    mysql.write("UPDATE passkey_code SET expires_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND")
    assert is_refused(enroll(Authenticator(), code, challenge=challenge))
    assert delete_expired(10) == 1


def test_a_newer_code_replaces_the_one_before(console: World) -> None:
    first, second = make_code(), make_code()
    assert send("POST", "/passkey-challenges", {"code": first}).status == 401
    assert enroll(Authenticator(), second).status == 201


def test_an_enrollment_while_an_operator_ends_the_passkeys_leaves_none(
    console: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, read = signed_in(enrolled()), mysql_passkeys.read
    challenge = ask_challenge(token=token)

    def end_and_read(credential_sha256: bytes) -> Any:
        run("end-passkeys", user_id=ADA)
        return read(credential_sha256)

    monkeypatch.setattr(mysql_passkeys, "read", end_and_read)
    assert is_refused(enroll(Authenticator(), None, token=token, challenge=challenge))
    assert mysql_passkeys.list_of_user(ADA) == []


def test_a_user_without_a_role_gets_no_code(console: World) -> None:
    set_role(ADA, "user")
    with pytest.raises(Refused, match="role"):
        make_code()


def test_a_further_passkey_needs_a_fresh_sign_in_of_a_role(
    console: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = signed_in(enrolled())
    assert enroll(Authenticator(), None, token=token, name=" Phone ").status == 201
    weak = new_session.open_session(ADA, opening=Opening("code"))
    refused = enroll(Authenticator(), None, token=weak)
    assert (refused.status, refused.problem) == (403, "forbidden"), "a text message is not enough"
    listed = send("GET", "/passkeys", token=token).body["items"]
    assert [item["name"] for item in listed] == ["Laptop", "Phone"]
    assert listed[0]["used_at"] is not None
    challenge = ask_challenge(token=token)
    let_pass(monkeypatch, 301)
    stale = enroll(Authenticator(), None, token=token, challenge=challenge)
    assert (stale.status, stale.problem) == (403, "sign-in-too-old")
    anonymous = send("POST", "/passkeys", {"name": "x", **Authenticator().make(challenge)})
    assert anonymous.status == 401


def test_a_user_has_ten_passkeys_at_most(console: World) -> None:
    token = signed_in(enrolled())
    for _ in range(9):
        assert enroll(Authenticator(), None, token=token).status == 201
    refused = enroll(Authenticator(), None, token=token)
    assert (refused.status, refused.problem) == (409, "too-many-passkeys")


def test_a_passkey_that_ended_opens_no_session(console: World) -> None:
    device, other = enrolled(), enrolled(BOB)
    token = signed_in(device)
    [mine] = send("GET", "/passkeys", token=token).body["items"]
    theirs = signed_in(other)
    path = f"/passkeys/{mine['passkey_id']}"
    assert send("DELETE", path, token=theirs).status == 204, "it is not theirs, and stays"
    assert sign_in(device).status == 201
    assert [send("DELETE", path, token=token).status for _ in range(2)] == [204, 204]
    assert is_refused(sign_in(device))
    assert sign_in(other).status == 201


def test_an_operator_ends_the_passkeys_of_a_lost_device_with_its_sessions(console: World) -> None:
    device = enrolled()
    token = signed_in(device)
    make_code()
    assert run("end-passkeys", user_id=ADA) == {"user_id": ADA, "ended": 2}
    assert is_refused(sign_in(device))
    assert send("GET", "/users/me/sessions", token=token, folder="api/users").status == 401
    assert mysql_passkeys.list_of_user(ADA) == []


# ---------------------------------------------------------------- erase and export of others


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", f"/users/{BOB}/export", 200), ("DELETE", f"/users/{BOB}", 202)],
)
def test_erase_and_export_of_others_need_a_fresh_sign_in(
    console: World, monkeypatch: pytest.MonkeyPatch, method: str, path: str, status: int
) -> None:
    token = signed_in(enrolled())
    weak = new_session.open_session(ADA, opening=Opening("code"))
    for refused in (weak, signed_in(enrolled(BOB))):
        reply = send(method, path, token=refused)
        assert (reply.status, reply.problem) == (403, "forbidden")
    old = new_session.open_session(ADA)
    mysql.write("UPDATE session SET signed_in_at = '2026-01-01' ORDER BY signed_in_at DESC LIMIT 1")
    let_pass(monkeypatch, 301)
    for stale in (token, old):
        reply = send(method, path, token=stale)
        assert (reply.status, reply.problem) == (403, "sign-in-too-old")
    monkeypatch.undo()


def test_an_admin_exports_and_erases_another_user(
    console: World, capsys: pytest.CaptureFixture[str]
) -> None:
    token = signed_in(enrolled())
    enrolled(BOB)
    exported = send("GET", f"/users/{BOB}/export", token=token)
    assert {"profile", "passkeys"} <= {item["section"] for item in exported.body["items"]}
    erased = send("DELETE", f"/users/{BOB}", token=token, folder="api/users")
    assert (erased.status, erased.body["user_id"]) == (202, str(BOB))
    assert len(mysql_passkeys.list_of_user(BOB)) == 1, "it opens the closed account again"
    assert send("DELETE", f"/users/{BOB}", token=token, folder="api/users").status == 202
    erase_now(BOB)
    assert mysql_passkeys.list_of_user(BOB) == []
    assert send("DELETE", "/users/999", token=token, folder="api/users").status == 404
    logged = capsys.readouterr().out
    assert "export_by_operator" in logged
    assert "erasure_by_operator" in logged


# ---------------------------------------------------------------- keys of servers

KEYS = "/ops/server-keys"
WEB = {"name": "web", "scopes": ["act", "read"], "requests_per_s": 50}


def ask_keys(method: str, token: str, body: Any = None, key_id: str = "") -> Reply:
    path = f"{KEYS}/{key_id}" if key_id else KEYS
    return send(method, path, body, token=token, folder="api/operations")


def test_an_operator_makes_a_key_of_a_server_and_ends_it(
    console: World, capsys: pytest.CaptureFixture[str]
) -> None:
    token = signed_in(enrolled(BOB))
    made = ask_keys("POST", token, WEB)
    assert (made.status, made.headers["location"]) == (201, KEYS)
    key, key_id = made.body["key"], made.body["key_id"]
    caller = identify(f"Bearer {key}", HOME, "PUT /posts/{post_id}/likes/me", str(ADA))
    assert (caller.user_id, caller.refusal) == (ADA, None)
    [shown] = ask_keys("GET", token).body["items"]
    assert shown == {
        **WEB,
        "key_id": key_id,
        "created_at": shown["created_at"],
        "used_at": shown["used_at"],
        "ended_at": None,
    }
    assert key.split("_", 2)[2] not in capsys.readouterr().out
    assert [ask_keys("DELETE", token, key_id=key_id).status for _ in range(2)] == [204, 204]
    [ended] = ask_keys("GET", token).body["items"]
    assert ended["ended_at"] is not None
    assert ask_keys("DELETE", token, key_id="F0rDocumentation").status == 404


def test_a_name_has_two_valid_keys_at_most(console: World) -> None:
    token = signed_in(enrolled(BOB))
    first, _ = (ask_keys("POST", token, WEB).body for _ in range(2))
    refused = ask_keys("POST", token, WEB)
    assert (refused.status, refused.problem) == (409, "too-many-server-keys")
    ask_keys("DELETE", token, key_id=first["key_id"])
    assert ask_keys("POST", token, WEB).status == 201


def test_a_key_of_a_server_needs_a_fresh_sign_in_of_an_operator(
    console: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_role(BOB, "sales")
    sales, token = signed_in(enrolled(BOB)), signed_in(enrolled())
    weak = new_session.open_session(ADA, opening=Opening("code"))
    for refused in (sales, weak):
        assert [ask_keys(m, refused, WEB).status for m in ("GET", "POST")] == [403, 403]
    made = ask_keys("POST", token, WEB)
    acting = {"plaza-user": str(ADA)}
    with_key = send("GET", KEYS, token=made.body["key"], headers=acting, folder="api/operations")
    assert with_key.status == 403, "a key reads no keys, also not for an admin"
    let_pass(monkeypatch, 301)
    stale = ask_keys("POST", token, WEB)
    assert (stale.status, stale.problem) == (403, "sign-in-too-old")
    assert ask_keys("DELETE", token, key_id=made.body["key_id"]).status == 204, "at any time"


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Web"},
        {"scopes": []},
        {"scopes": ["admin"]},
        {"requests_per_s": 0},
        {"requests_per_s": 10_001},
    ],
)
def test_a_key_of_a_server_that_is_not_as_declared_is_refused(
    console: World, wrong: dict[str, Any]
) -> None:
    assert ask_keys("POST", signed_in(enrolled(BOB)), WEB | wrong).status == 400
