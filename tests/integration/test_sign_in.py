"""Signing in through the API, and everything that somebody might try instead."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from local.paths import ROOT
from plaza import auth, targets
from plaza.auth import redis_codes, signing_in
from plaza.auth.sms import EchoSender, SmsDown
from plaza.infra import mysql, redis
from plaza.infra.limits import Window
from plaza.targets import There
from tests.integration.conftest import Away
from tests.integration.signing import (
    HOME,
    OTHER,
    PHONE,
    Reply,
    ask,
    ask_for_code,
    code_on,
    forget_limits,
    is_known,
    let_a_minute_pass,
    let_pass,
    seal,
    sign_in,
    signed_in,
    wrong,
)
from tests.keyspace import find_keys
from tests.plaza import World


def users() -> list[tuple[Any, ...]]:
    return mysql.fetch_all("SELECT id, nickname, role FROM user ORDER BY id")


def sessions_of(user_id: int) -> int:
    return int(mysql.fetch_all("SELECT COUNT(*) FROM session WHERE user_id = %s", (user_id,))[0][0])


def held_code(phone: str = PHONE) -> dict[str, str]:
    """What Redis holds of a phone's code."""
    found: dict[str, str] = redis.client().hgetall(redis_codes.code_key(seal().of_phone(phone)))
    return found


# ---------------------------------------------------------------- the way it is meant


def test_a_code_comes_and_opens_a_session_for_a_user_who_is_made(plaza: World) -> None:
    asked = ask_for_code()
    assert (asked.status, asked.said) == (202, {"expires_in": 300})
    done = sign_in(code_on())
    assert done.status == 201
    assert set(done.said) == {"token", "expires_in", "user"}
    assert done.said["expires_in"] == 30 * 86_400
    user = done.said["user"]
    assert re.fullmatch("[a-z]+ [a-z]+ [0-9]{4}", user["nickname"])
    assert user["avatar"] is None
    assert users() == [(int(user["id"]), user["nickname"], "user")]
    session = auth.find_session(done.said["token"])
    assert session is not None
    assert (session.user_id, session.role) == (int(user["id"]), "user")


def test_the_same_phone_is_the_same_user_however_it_is_written(plaza: World) -> None:
    ids = []
    for written in (PHONE, "+86 138-0013-8000", "+86 (138) 00138000"):
        assert ask_for_code(written).status == 202
        ids.append(sign_in(code_on(), written).said["user"]["id"])
        let_a_minute_pass()
    assert len(set(ids)) == 1
    assert sessions_of(int(ids[0])) == 3


def test_the_role_of_a_session_is_that_of_the_user(plaza: World) -> None:
    signed_in()
    mysql.write("UPDATE user SET role = 'admin', nickname = 'Ada', avatar = 'https://a/b.png'")
    ask_for_code()
    done = sign_in(code_on())
    assert done.said["user"] | {"id": ""} == {
        "id": "",
        "nickname": "Ada",
        "avatar": "https://a/b.png",
    }
    session = auth.find_session(done.said["token"])
    assert session is not None
    assert session.role == "admin"


def test_a_new_user_can_be_followed_at_once(plaza: World) -> None:
    token = signed_in()
    session = auth.find_session(token)
    assert session is not None
    targets.forget_seen()
    assert redis.execute("GET", find_keys("*:there")[0]) == "live"
    assert targets.find("user", session.user_id) is There.LIVE


# ---------------------------------------------------------------- codes


def test_a_code_that_was_used_is_refused(plaza: World) -> None:
    ask_for_code()
    code = code_on()
    assert sign_in(code).status == 201
    again = sign_in(code)
    assert (again.status, again.problem) == (401, "code-refused")
    assert len(users()) == 1


def test_why_a_code_is_refused_is_not_told(plaza: World) -> None:
    def refused(code: str, phone: str = PHONE) -> tuple[int, Any, Any]:
        reply = sign_in(code, phone)
        forget_limits()
        return reply.status, reply.said, sorted(reply.headers)

    never = refused("123456", OTHER)
    ask_for_code()
    assert refused(wrong(code_on())) == never
    code = code_on()
    sign_in(code)
    assert refused(code) == never, "used"
    forget_limits()
    ask_for_code()
    for by in range(1, 6):
        assert refused(wrong(code_on(), by)) == never
    assert refused(code_on()) == never, "burnt"
    ask_for_code()
    redis.execute("PEXPIRE", redis_codes.code_key(seal().of_phone(PHONE)), 0)
    assert refused(code_on()) == never, "expired"
    assert never[0] == 401


def test_a_code_is_burnt_by_five_wrong_tries_from_anywhere(plaza: World) -> None:
    ask_for_code()
    code = code_on()
    for by in range(1, 6):
        assert sign_in(wrong(code, by), source=f"198.51.100.{by}").status == 401
    assert sign_in(code).status == 401


def test_guessing_from_many_networks_is_limited_by_the_phone(plaza: World) -> None:
    ask_for_code()
    code = code_on()
    statuses = [
        sign_in(wrong(code, by), source=f"198.51.{by // 200}.{by % 200}").status
        for by in range(1, 60)
    ]
    assert statuses == [401] * 10 + [429] * 49
    refused = sign_in(code, source="192.0.2.1")
    assert (refused.status, refused.problem) == (429, "too-many")
    assert 590 < int(refused.headers["retry-after"]) <= 600


def test_guessing_at_many_phones_is_limited_by_the_network(plaza: World) -> None:
    phones = [f"+861380013{number:04}" for number in range(100)]
    statuses = [sign_in("123456", phone, source="2001:db8::1").status for phone in phones]
    assert statuses == [401] * 60 + [429] * 40
    assert sign_in("123456", PHONE, source="2001:db8:0:0:ffff::2").status == 429, "the same /64"
    assert sign_in("123456", PHONE, source="2001:db8:0:1::1").status == 401


def test_a_code_of_one_phone_is_none_of_another(plaza: World) -> None:
    ask_for_code(PHONE)
    ask_for_code(OTHER, source="198.51.100.1")
    if code_on(PHONE) != code_on(OTHER):
        assert sign_in(code_on(PHONE), OTHER).status == 401
    assert sign_in(code_on(OTHER), OTHER).status == 201


def test_only_the_newest_code_works(plaza: World) -> None:
    ask_for_code()
    first = code_on()
    let_a_minute_pass()
    ask_for_code()
    if code_on() != first:
        assert sign_in(first).status == 401
    assert sign_in(code_on()).status == 201


def outcomes(phone: str, code: str, people: int, tries: int) -> list[list[str]]:
    """What ``tries`` sign-ins of each of ``people``, all at the same time, came to."""
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'layers/common/python'}"}
    command = [sys.executable, "-m", "tests.integration.sign_in_process", phone, code, str(tries)]
    processes = [
        subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(people)
    ]
    try:
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        return [process.communicate()[0].split() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_of_a_hundred_sign_ins_with_one_code_one_is_a_session(plaza: World) -> None:
    ask_for_code()
    found = [outcome for own in outcomes(PHONE, code_on(), 5, 20) for outcome in own]
    signed = [outcome for outcome in found if outcome.isdigit()]
    assert (len(found), len(signed)) == (100, 1)
    assert set(found) - set(signed) == {"CodeRefused"}
    assert sessions_of(int(signed[0])) == 1
    assert len(users()) == 1


def test_first_sign_ins_of_one_phone_at_once_make_one_user(plaza: World) -> None:
    found = outcomes(PHONE, "-", 5, 40)
    assert len(set(found[0])) == 40
    assert all(own == found[0] for own in found), "each phone is the same user to everybody"
    assert len(users()) == 40
    assert mysql.fetch_all("SELECT COUNT(*) FROM user_phone") == [(40,)]


# ---------------------------------------------------------------- limits of asking


def test_a_phone_gets_one_code_a_minute_from_wherever_it_is_asked_for(plaza: World) -> None:
    assert ask_for_code(source="198.51.100.1").status == 202
    refused = ask_for_code(source="198.51.100.2")
    assert (refused.status, refused.problem) == (429, "too-many")
    assert 58 < int(refused.headers["retry-after"]) <= 60
    let_pass(59_000)
    assert ask_for_code(source="198.51.100.3").headers["retry-after"] == "1"
    let_pass(1_000)
    assert ask_for_code(source="198.51.100.4").status == 202


def test_a_phone_gets_five_codes_an_hour(plaza: World) -> None:
    for number in range(5):
        assert ask_for_code(source=f"198.51.100.{number}").status == 202
        let_a_minute_pass()
    refused = ask_for_code(source="198.51.100.9")
    assert refused.status == 429
    assert 3_290 < int(refused.headers["retry-after"]) <= 3_300
    let_pass(3_300_000)
    assert ask_for_code(source="198.51.100.9").status == 202


def test_a_network_asks_for_five_codes_an_hour_whatever_the_phones(plaza: World) -> None:
    for number in range(5):
        assert ask_for_code(f"+861380013800{number}").status == 202
        assert ask_for_code(f"+861380013810{number}").status == 429
        let_a_minute_pass()
    assert ask_for_code(OTHER).status == 429
    assert ask_for_code(OTHER, source="198.51.100.1").status == 202


def test_who_is_limited_burns_nothing_of_the_phone_they_ask_for(plaza: World) -> None:
    assert ask_for_code(OTHER).status == 202
    assert ask_for_code(PHONE).status == 429, "their network has to wait"
    assert ask_for_code(PHONE, source="198.51.100.1").status == 202


def test_who_asks_for_a_phone_that_has_to_wait_has_asked_for_nothing(plaza: World) -> None:
    assert ask_for_code(PHONE, source="198.51.100.1").status == 202
    assert ask_for_code(PHONE).status == 429, "the phone has to wait"
    assert ask_for_code(OTHER).status == 202


@pytest.mark.parametrize("name", ["x-forwarded-for", "forwarded", "x-real-ip", "client-ip"])
def test_a_header_makes_nobody_somebody_else(plaza: World, name: str) -> None:
    assert ask_for_code(PHONE).status == 202
    for number in range(3):
        faked = {name: f"198.51.100.{number}"}
        assert ask_for_code(OTHER, headers=faked).status == 429


def test_a_code_that_came_before_still_works_after_a_refusal(plaza: World) -> None:
    ask_for_code()
    code = code_on()
    assert ask_for_code().status == 429
    assert sign_in(code).status == 201


# ---------------------------------------------------------------- who has a user is not told


def test_a_known_phone_is_answered_as_an_unknown_one(plaza: World) -> None:
    signed_in(PHONE)
    forget_limits()
    known, unknown = ask_for_code(PHONE), ask_for_code(OTHER, source="198.51.100.1")
    assert (known.status, known.said, known.headers) == (
        unknown.status,
        unknown.said,
        unknown.headers,
    )
    codes = wrong(code_on(PHONE)), wrong(code_on(OTHER))
    replies = sign_in(codes[0], PHONE), sign_in(codes[1], OTHER)
    assert replies[0] == replies[1]


def test_before_the_code_is_right_mysql_is_not_asked(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> Any:
        raise AssertionError("MySQL was asked")

    for name in ("fetch_all", "write", "atomically"):
        monkeypatch.setattr(mysql, name, asked)
    assert ask_for_code().status == 202
    assert sign_in(wrong(code_on())).status == 401


# ---------------------------------------------------------------- hostile input

_BAD_PHONES = [
    None, 13800138000, 1.5, True, [PHONE], {"phone": PHONE}, "", "+", PHONE[1:], "00" + PHONE[1:],
    "+１３８００１３８０００", "+86138001380٠٠", PHONE + "\n", PHONE + "\x00", "\ud800",
    PHONE + "\ud800", "+" + "9" * 40, "+" + "9" * 60_000, "' OR 1=1 --",
    PHONE + ";ext=1", "+19005550123",
]  # fmt: skip
_BAD_CODES = [
    None, 123456, 123456.0, True, ["123456"], "", "12345", "1234567", "12345a", "１２３４５６",
    "١٢٣٤٥٦", "123456\n", " 123456", "-12345", "+12345", "1e1000", "\ud800" * 6, "1" * 60_000,
]  # fmt: skip


def assert_bad(reply: Reply, field: str, value: object = None) -> None:
    assert (reply.status, reply.problem) == (400, "bad-input")
    if "\ud800" in str(value):
        field = "body"  # it is no Unicode at all
    assert field in json.dumps(reply.said.get("errors") or reply.said["detail"])


@pytest.mark.parametrize("phone", _BAD_PHONES, ids=lambda value: f"{value!a:.30}")
def test_what_is_no_phone_is_a_400_that_names_it(plaza: World, phone: object) -> None:
    assert_bad(ask_for_code(phone), "phone", phone)
    assert_bad(sign_in("123456", phone), "phone", phone)
    assert find_keys("*") == [], "and counts nowhere"


@pytest.mark.parametrize("code", _BAD_CODES, ids=lambda value: f"{value!a:.30}")
def test_what_is_no_code_is_a_400_that_names_it_and_costs_no_try(
    plaza: World, code: object
) -> None:
    ask_for_code()
    for _ in range(6):
        assert_bad(sign_in(code), "code", code)
    assert sign_in(code_on()).status == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (None, "body"),
        ("", "body"),
        ("{", "body"),
        ("null", "body"),
        ("[]", "body"),
        ('"+8613800138000"', "body"),
        ("[" * 10_000, "body"),
        ({}, "phone"),
        ({"phone": PHONE, "role": "admin"}, "role"),
        ({"phone": PHONE, "user_id": "1"}, "user_id"),
        ({"phone": PHONE, "code": "123456", "role": "admin"}, "role"),
        ({"phone": PHONE, "x": "y" * 70_000}, "body"),
    ],
    ids=lambda value: f"{value!a:.40}",
)
@pytest.mark.parametrize("path", ["/auth/codes", "/auth/sessions"])
def test_a_bad_body_is_a_400(plaza: World, path: str, body: object, field: str) -> None:
    reply = ask("POST", path, body)
    assert (reply.status, reply.problem) == (400, "bad-input")
    assert find_keys("*") == []
    assert users() == []


def test_nobody_makes_themselves_an_admin(plaza: World) -> None:
    ask_for_code()
    body = {"phone": PHONE, "code": code_on(), "role": "admin"}
    assert_bad(ask("POST", "/auth/sessions", body), "role")
    assert sign_in(code_on()).status == 201
    assert [role for _, _, role in users()] == ["user"]


# ---------------------------------------------------------------- parts that are away


def test_without_redis_nobody_signs_in_and_it_is_no_open_gate(
    plaza: World, redis_away: Away
) -> None:
    ask_for_code()
    code = code_on()
    with redis_away():
        for reply in (ask_for_code(OTHER), sign_in(code), sign_in(wrong(code))):
            assert (reply.status, reply.problem) == (503, "unavailable")
            assert int(reply.headers["retry-after"]) > 0
        assert users() == []
    assert sign_in(code).status == 401, "that Redis lost its data"
    assert ask_for_code().status == 202


def test_without_mysql_a_code_comes_and_still_works_when_it_is_back(
    plaza: World, mysql_away: Away
) -> None:
    with mysql_away():
        assert ask_for_code().status == 202
        assert sign_in(wrong(code_on())).status == 401
        for _ in range(2):
            refused = sign_in(code_on())
            assert (refused.status, refused.problem) == (503, "unavailable")
        assert held_code()["wrong"] == "1"
    assert sign_in(code_on()).status == 201
    assert len(users()) == 1


def test_a_code_works_still_when_the_session_could_not_be_opened(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_for_code()
    monkeypatch.setattr(signing_in, "open_session", _fail)
    assert sign_in(code_on()).status == 503
    assert len(users()) == 1
    monkeypatch.undo()
    monkeypatch.setattr("plaza.infra.secrets.read", lambda secret_id: f"the secret {secret_id}")
    assert sign_in(code_on()).status == 201
    assert len(users()) == 1


def _fail(*_: object) -> str:
    raise mysql.MysqlDown("MySQL is away (a test says so)")


def test_a_text_that_can_not_be_sent_is_a_503_and_counts(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SmsDown("The code could not be sent", retry_after_s=60)

    monkeypatch.setattr(EchoSender, "send", fail)
    refused = ask_for_code()
    assert (refused.status, refused.headers["retry-after"]) == (503, "60")
    assert ask_for_code().status == 429, "it may have been sent"


# ---------------------------------------------------------------- what is left behind


@pytest.fixture
def codes_sent(plaza: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The codes that were sent; Redis keeps no echo of them here."""
    found: list[str] = []

    def remember(_: EchoSender, phone: str, text: str) -> None:
        found.extend(re.findall("[0-9]{6}", text))

    monkeypatch.setattr(EchoSender, "send", remember)
    return found


def in_redis() -> str:
    """Every key and value of Redis, as text."""
    client, found = redis.client(), []
    for key in find_keys():
        read = {
            "none": lambda k: None,  # a bucket that is full again is gone
            "string": client.get,
            "hash": client.hgetall,
            "zset": lambda k: client.zrange(k, 0, -1, withscores=True),
        }[client.type(key)]
        found.append(f"{key} {read(key)}")
    return "\n".join(found)


def in_mysql(*but: str) -> str:
    """Every row of MySQL, except of the tables ``but``, as text."""
    tables = [name for (name,) in mysql.fetch_all("SHOW TABLES") if name not in but]
    return repr([mysql.fetch_all(f"SELECT * FROM {table}") for table in tables])


def test_phones_codes_and_tokens_are_nowhere_to_be_read(
    codes_sent: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ask_for_code()
    sign_in(wrong(codes_sent[0]))
    left = [in_redis(), in_mysql("user_phone")]
    done = sign_in(codes_sent[0])
    is_known(done.said["token"])
    left += [in_redis(), in_mysql("user_phone")]
    let_a_minute_pass()
    ask_for_code()
    left += [in_redis()]
    sign_in(codes_sent[-1])
    ask("DELETE", "/auth/sessions/current", token=done.said["token"])
    left += [in_redis(), in_mysql("user_phone"), capsys.readouterr().out]
    assert len(codes_sent) == 2
    hidden = [PHONE, PHONE[1:], HOME, done.said["token"]]
    for text in left:
        assert text
        for secret in hidden:
            assert secret not in text
        for code in codes_sent:
            assert not re.search(rf"(?<![0-9]){code}(?![0-9])", text)
    assert mysql.fetch_all("SELECT phone FROM user_phone") == [(PHONE,)]


def test_logs_hold_no_phone_code_or_token_whatever_fails(
    plaza: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask_for_code()
    code, token = code_on(), signed_in(OTHER, source="198.51.100.7")

    def clash(*_: object) -> Any:
        mysql.write("INSERT INTO user_phone (phone, user_id) VALUES (%s, 1)", (PHONE,))
        mysql.write("INSERT INTO user_phone (phone, user_id) VALUES (%s, 1)", (PHONE,))

    monkeypatch.setattr(signing_in, "sign_up", clash)
    assert sign_in(code).status == 500
    monkeypatch.setattr(
        signing_in, "sign_up", lambda phone: mysql.fetch_all("SELECT '%s' FROM", (phone,))
    )
    assert sign_in(code).status == 500
    monkeypatch.setattr(
        signing_in, "sign_up", lambda phone: mysql.write("SET time_zone = %s", (phone,))
    )
    assert sign_in(code).status == 500
    ask_for_code(PHONE + "x")
    sign_in(code + "x")
    ask("DELETE", "/auth/sessions/current", token=token + "x")
    ask("DELETE", "/auth/sessions", token=token)
    logged = capsys.readouterr().out
    assert "IntegrityError" in logged
    assert "ProgrammingError" in logged
    for secret in (PHONE, PHONE[1:], OTHER, OTHER[1:], code, token):
        assert secret not in logged


def test_a_seal_with_another_secret_opens_nothing(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_for_code()
    code = code_on()
    monkeypatch.setattr("plaza.infra.secrets.read", lambda _: "rotated")
    assert sign_in(code).status == 401


def test_the_windows_are_those_of_the_contract() -> None:
    assert (Window(60, 1), Window(3600, 5)) == signing_in.ASKING
