"""Signing in through the API: limits, hostile input, outages and stored secrets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cli.paths import ROOT
from plaza.core.switches import refresh
from plaza.core.targets import Existence, lookup
from plaza.infra.aws import secrets
from plaza.infra.http import limits
from plaza.infra.http.limits import Attempt, Window
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, redis
from plaza.infra.runtime.process import clear_caches
from plaza.infra.runtime.settings import settings
from plaza.people.auth import phone_sign_in, session_lookup
from plaza.people.auth.codes import hash_challenge
from plaza.people.auth.redis_challenges import challenge_key
from plaza.people.auth.sms import EchoSender, SmsDown
from tests.integration.conftest import Away
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.sign_in_client import (
    HOME,
    OTHER,
    PHONE,
    Reply,
    challenge_of,
    forget_limits,
    hasher,
    is_accepted,
    let_a_minute_pass,
    let_pass,
    read_code,
    request_code,
    send,
    sign_in,
    signed_in,
    wrong,
)


def users() -> list[tuple[Any, ...]]:
    return mysql.fetch_all("SELECT id, nickname, role FROM user ORDER BY id")


def sessions_of(user_id: int) -> int:
    return int(mysql.fetch_all("SELECT COUNT(*) FROM session WHERE user_id = %s", (user_id,))[0][0])


def key_of_challenge(phone: str = PHONE) -> str:
    """Return the key of the newest challenge of a phone."""
    return challenge_key(hash_challenge(challenge_of(phone)))


def find_counters() -> list[str]:
    """Return the keys in Redis except token buckets and switches, which any request writes."""
    return [key for key in find_keys("*") if not re.search(":bucket:|:switches:", key)]


def use_up(action: str, subject: str, times: int) -> None:
    """Count ``times`` attempts against a limit."""
    for _ in range(times):
        limits.admit(Attempt(action, subject), (Window(86_400, 10**6),))


# ---------------------------------------------------------------- sign-in


def test_a_code_opens_a_session_for_a_new_user(plaza: World) -> None:
    requested = request_code()
    assert requested.status == 202
    assert requested.body == {"challenge": requested.body["challenge"], "expires_in": 300}
    assert re.fullmatch("[A-Za-z0-9_-]{43}", requested.body["challenge"])
    completed = sign_in(read_code())
    assert completed.status == 201
    assert set(completed.body) == {"token", "expires_in", "user", "reopened"}
    assert completed.body["expires_in"] == 30 * 86_400
    user = completed.body["user"]
    assert re.fullmatch("[a-z]+ [a-z]+ [0-9]{4}", user["nickname"])
    assert user["avatar"] is None
    assert users() == [(int(user["id"]), user["nickname"], "user")]
    session = session_lookup.find_session(completed.body["token"])
    assert session is not None
    assert (session.user_id, session.role) == (int(user["id"]), "user")


def test_every_spelling_of_a_phone_is_one_user(plaza: World) -> None:
    ids = []
    for spelling in (PHONE, "+86 138-0013-8000", "+86 (138) 00138000"):
        assert request_code(spelling).status == 202
        ids.append(sign_in(read_code(), spelling).body["user"]["id"])
        let_a_minute_pass()
    assert len(set(ids)) == 1
    assert sessions_of(int(ids[0])) == 3


def test_a_new_user_can_be_followed_at_once(plaza: World) -> None:
    token = signed_in()
    session = session_lookup.find_session(token)
    assert session is not None
    clear_caches()
    assert redis.execute("GET", find_keys("*:existence")[0]) == "live"
    assert lookup.find("user", session.user_id) is Existence.LIVE


# ---------------------------------------------------------------- codes


def test_a_used_code_is_refused(plaza: World) -> None:
    request_code()
    code = read_code()
    assert sign_in(code).status == 201
    again = sign_in(code)
    assert (again.status, again.problem) == (401, "code-refused")
    assert len(users()) == 1


def test_a_sign_in_with_the_token_of_a_session_opens_another_one(plaza: World) -> None:
    token = signed_in()
    request_code()
    completed = sign_in(read_code(), token=token)
    assert completed.status == 201
    assert completed.body["token"] != token
    assert sessions_of(int(completed.body["user"]["id"])) == 2


def test_refusals_of_codes_do_not_disclose_the_reason(plaza: World) -> None:
    def refused(code: str, phone: str = PHONE) -> tuple[int, Any, Any]:
        reply = sign_in(code, phone)
        forget_limits()
        return reply.status, reply.body, sorted(reply.headers)

    never = refused("123456", OTHER)
    request_code()
    assert refused(wrong(read_code())) == never
    code = read_code()
    sign_in(code)
    assert refused(code) == never, "used"
    forget_limits()
    request_code()
    for offset in range(1, 6):
        assert refused(wrong(read_code(), offset)) == never
    assert refused(read_code()) == never, "burnt"
    request_code()
    redis.execute("PEXPIRE", key_of_challenge(), 0)
    assert refused(read_code()) == never, "expired"
    assert never[0] == 401


def test_five_wrong_tries_from_any_network_burn_a_code(plaza: World) -> None:
    request_code()
    code = read_code()
    for offset in range(1, 6):
        assert sign_in(wrong(code, offset), source=f"198.51.100.{offset}").status == 401
    assert sign_in(code).status == 401


def test_a_network_tries_half_as_many_wrong_codes_as_it_requests(
    plaza: World, set_up: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a network that guesses codes of phones that are not its own."""
    set_up(max_codes_per_network_per_hour=8)
    request_code()
    right, own = read_code(), challenge_of()
    for _ in range(3):
        assert sign_in(f"{0:06}", challenge="A" * 43).status == 401, "no challenge, no guess"
    assert [sign_in(wrong(right, n)).status for n in range(1, 5)] == [401] * 4
    capsys.readouterr()
    refused = sign_in(right, challenge=own)
    assert refused.status == 429
    assert "wrong-codes-from" in capsys.readouterr().out
    assert sign_in(right, challenge=own, source="198.51.100.1").status == 201, "it was not used up"


def test_right_codes_count_as_no_wrong_ones(plaza: World, set_up: Callable[..., None]) -> None:
    set_up(max_codes_per_network_per_hour=4)
    for number in range(4):
        source = f"203.0.113.{number}"
        request_code(source=source)
        assert sign_in(read_code(), source="198.51.100.1").status == 201


def test_wrong_codes_of_other_clients_do_not_lock_out_the_owner(plaza: World) -> None:
    """Given wrong codes with invented challenges and with other challenges for the phone."""
    request_code()
    code, own = read_code(), challenge_of()
    for offset in range(1, 30):
        invented = f"{offset:043}"
        assert sign_in(wrong(code, offset), challenge=invented, source=HOME).status == 401
    for offset in range(1, 5):
        source = f"198.51.100.{offset}"
        assert request_code(source=source).status == 202
        for _ in range(6):
            assert sign_in(wrong(read_code()), source=source).status == 401
    assert sign_in(code, challenge=own).status == 201


def test_a_code_requested_by_another_client_does_not_replace_mine(plaza: World) -> None:
    request_code()
    code, own = read_code(), challenge_of()
    assert request_code(source="198.51.100.1").status == 202
    assert sign_in(code, challenge=own).status == 201


def test_a_code_works_only_with_its_own_challenge(plaza: World) -> None:
    request_code(PHONE)
    request_code(OTHER, source="198.51.100.1")
    if read_code(PHONE) != read_code(OTHER):
        assert sign_in(read_code(PHONE), OTHER).status == 401
    assert sign_in(read_code(OTHER), OTHER).status == 201


def outcomes(challenge: str, code: str, processes: int, tries: int) -> list[list[str]]:
    """Return the outcomes of ``tries`` sign-ins in each of several concurrent processes."""
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'layers/common/python'}"}
    module = "tests.support.sign_in_process"
    command = [sys.executable, "-m", module, challenge, code, str(tries)]
    started = [
        subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(processes)
    ]
    try:
        for process in started:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        for process in started:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        return [process.communicate()[0].split() for process in started]
    finally:
        for process in started:
            process.kill()
            process.communicate()


def test_of_100_concurrent_sign_ins_with_one_code_one_succeeds(plaza: World) -> None:
    request_code()
    results = [outcome for own in outcomes(challenge_of(), read_code(), 5, 20) for outcome in own]
    signed = [outcome for outcome in results if outcome.isdigit()]
    assert (len(results), len(signed)) == (100, 1)
    assert set(results) - set(signed) == {"CodeRefused"}
    assert sessions_of(int(signed[0])) == 1
    assert len(users()) == 1


def test_concurrent_first_sign_ins_of_one_phone_create_one_user(plaza: World) -> None:
    result = outcomes(PHONE, "-", 5, 40)
    assert len(set(result[0])) == 40
    assert all(own == result[0] for own in result), "each phone is one user in all processes"
    assert len(users()) == 40
    assert mysql.fetch_all("SELECT COUNT(*) FROM user_phone") == [(40,)]


# ---------------------------------------------------------------- limits of requests


def test_a_phone_gets_one_code_a_minute_from_one_network(plaza: World) -> None:
    assert request_code().status == 202
    refused = request_code()
    assert (refused.status, refused.problem) == (429, "too-many-requests")
    assert 58 < int(refused.headers["retry-after"]) <= 60
    let_pass(59_000)
    assert request_code().headers["retry-after"] == "1"
    let_pass(1_000)
    assert request_code().status == 202


def test_a_phone_gets_five_codes_an_hour_from_one_network_and_ten_from_all(plaza: World) -> None:
    for number in range(10):
        assert request_code(source=f"198.51.100.{number // 5}").status == 202
        let_a_minute_pass()
        if number == 4:
            assert request_code(source="198.51.100.0").status == 429
    refused = request_code(source="198.51.100.9")
    assert refused.status == 429
    assert 2_990 < int(refused.headers["retry-after"]) <= 3_000
    let_pass(3_000_000)
    assert request_code(source="198.51.100.9").status == 202


def test_a_phone_gets_20_codes_a_day_from_new_networks(plaza: World) -> None:
    use_up("codes-to", hasher().hash_phone(PHONE), 20)
    let_pass(2 * 3_600_000)
    refused = request_code()
    assert (refused.status, refused.problem) == (429, "too-many-requests")
    assert 21 * 3_600 < int(refused.headers["retry-after"]) <= 22 * 3_600


def test_fifty_users_of_one_address_sign_in(plaza: World) -> None:
    for number in range(50):
        phone = f"+86138001380{number:02}"
        assert request_code(phone).status == 202
        assert sign_in(read_code(phone), phone).status == 201
    assert len(users()) == 50


@pytest.mark.parametrize(
    ("here", "there", "elsewhere"),
    [
        ("203.0.113.7", "203.0.113.7", "203.0.113.8"),
        ("2001:db8:1::1", "2001:db8:1:ffff::1", "2001:db8:2::1"),
    ],
)
def test_an_address_is_limited_per_hour_across_phones(
    plaza: World, set_up: Callable[..., None], here: str, there: str, elsewhere: str
) -> None:
    set_up(max_codes_per_network_per_hour=3)
    phones = [f"+8613800138{number:03}" for number in range(6)]
    assert [request_code(phone, source=here).status for phone in phones[:4]] == [202] * 3 + [429]
    assert request_code(phones[4], source=there).status == 429
    assert request_code(phones[5], source=elsewhere).status == 202


def test_the_code_budget_of_the_deployment_is_enforced_and_reported(
    plaza: World, set_up: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(max_codes_per_hour=3)
    sent = [
        request_code(f"+8613800138{number:03}", source=f"198.51.100.{number}")
        for number in range(5)
    ]
    assert [reply.status for reply in sent] == [202] * 3 + [503] * 2
    assert 3_590 < int(sent[-1].headers["retry-after"]) <= 3_600
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["what"] for line in lines if line.get("code_budget_refusals")] == ["new"] * 2


def test_a_phone_that_signed_in_from_its_network_has_separate_limits(
    plaza: World, set_up: Callable[..., None]
) -> None:
    """Given exhausted limits of the phone, of the address and of the deployment."""
    set_up(max_codes_per_hour=5, max_codes_per_network_per_hour=5)
    signed_in()
    use_up("codes-to", hasher().hash_phone(PHONE), 20)
    use_up("codes-from", hasher().hash_network(HOME), 5)
    use_up("codes", "new", 5)
    assert request_code(OTHER).status == 429
    assert request_code(source="198.51.100.1").status == 429, (
        "another network has the common limits"
    )
    assert request_code().status == 202
    assert sign_in(read_code()).status == 201


def test_a_refused_request_counts_against_no_limit(
    plaza: World, set_up: Callable[..., None]
) -> None:
    set_up(max_codes_per_hour=1)
    assert request_code(OTHER, source="198.51.100.1").status == 202
    assert request_code(PHONE).status == 503, "the budget is exhausted"
    let_pass(3_600_000)
    assert request_code(PHONE).status == 202
    set_up(max_codes_per_network_per_hour=1)
    assert request_code(OTHER).status == 429, "the network has to wait"
    set_up(max_codes_per_network_per_hour=2, max_codes_per_hour=2)
    assert request_code(OTHER).status == 202


@pytest.mark.parametrize("name", ["x-forwarded-for", "forwarded", "x-real-ip", "client-ip"])
def test_forwarding_headers_do_not_change_the_network(
    plaza: World, set_up: Callable[..., None], name: str
) -> None:
    set_up(max_codes_per_network_per_hour=1)
    assert request_code(PHONE).status == 202
    for number in range(3):
        faked = {name: f"198.51.100.{number}"}
        assert request_code(OTHER, headers=faked).status == 429


@pytest.mark.parametrize(
    ("countries", "types", "phone", "status"),
    [
        ("CN", "mobile", PHONE, 202),
        ("CN", "mobile", OTHER, 400),
        ("US,CN", "mobile", OTHER, 400),
        ("US,CN", "mobile,fixed_line_or_mobile", OTHER, 202),
        ("US", "mobile,fixed_line_or_mobile", "+18765550123", 400),
    ],
)
def test_codes_are_sent_only_to_the_configured_countries_and_types(
    plaza: World,
    set_up: Callable[..., None],
    countries: str,
    types: str,
    phone: str,
    status: int,
) -> None:
    set_up(sms_countries=countries, sms_number_types=types)
    reply = request_code(phone)
    assert reply.status == status
    if status == 400:
        assert [error["field"] for error in reply.body["errors"]] == ["body.phone"]
        assert find_counters() == []


def test_an_earlier_code_works_after_a_refused_request(plaza: World) -> None:
    request_code()
    code = read_code()
    assert request_code().status == 429
    assert sign_in(code).status == 201


# ---------------------------------------------------------------- what responses disclose


def without_limit(reply: Reply) -> tuple[int, dict[str, str]]:
    """Return (status, headers) without what is left of the network's rate limit."""
    headers = {name: value for name, value in reply.headers.items() if name != "ratelimit"}
    return reply.status, headers


def test_responses_do_not_disclose_whether_a_phone_has_a_user(plaza: World) -> None:
    signed_in(PHONE)
    forget_limits()
    existing, missing = request_code(PHONE), request_code(OTHER, source="198.51.100.1")
    assert set(existing.body) == set(missing.body)
    assert without_limit(existing) == without_limit(missing)
    codes = wrong(read_code(PHONE)), wrong(read_code(OTHER))
    replies = sign_in(codes[0], PHONE), sign_in(codes[1], OTHER)
    assert replies[0].body == replies[1].body
    assert without_limit(replies[0]) == without_limit(replies[1])


def test_mysql_is_not_used_before_a_code_is_right(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Any:
        raise AssertionError("a statement before the code was right")

    refresh.read()  # the switches of this process, once in 2 s
    for name in ("fetch_all", "write", "run_in_transaction"):
        monkeypatch.setattr(mysql, name, refuse)
    assert request_code().status == 202
    assert sign_in(wrong(read_code())).status == 401


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
    assert (reply.status, reply.problem) == (400, "invalid-request")
    if "\ud800" in str(value):
        field = "body"  # the body is not valid Unicode
    assert field in json.dumps(reply.body.get("errors") or reply.body["detail"])


@pytest.mark.parametrize("phone", _BAD_PHONES, ids=lambda value: f"{value!a:.30}")
def test_an_invalid_phone_is_400_and_names_the_field(plaza: World, phone: object) -> None:
    assert_bad(request_code(phone), "phone", phone)
    assert find_counters() == [], "it counts against no limit"


_BAD_CHALLENGES = [
    None, 1, True, ["A" * 43], {"challenge": "A" * 43}, "", "A" * 42, "A" * 44, "A" * 42 + "=",
    "A" * 42 + "\n", "A" * 42 + "é", "A" * 42 + "٣", "A" * 42 + "\x00", "A" * 42 + "\ud800",
    "A" * 60_000,
]  # fmt: skip


@pytest.mark.parametrize("challenge", _BAD_CHALLENGES, ids=lambda value: f"{value!a:.30}")
def test_an_invalid_challenge_is_400_and_names_the_field(plaza: World, challenge: object) -> None:
    body = {"challenge": challenge, "code": "123456"}
    assert_bad(send("POST", "/auth/sessions", body), "challenge", challenge)
    assert find_counters() == []


@pytest.mark.parametrize("code", _BAD_CODES, ids=lambda value: f"{value!a:.30}")
def test_an_invalid_code_is_400_names_the_field_and_costs_no_try(
    plaza: World, code: object
) -> None:
    request_code()
    for _ in range(6):
        assert_bad(sign_in(code), "code", code)
    assert sign_in(read_code()).status == 201


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
        ({"phone": PHONE, "role": "admin"}, "role"),
        ({"phone": PHONE, "user_id": "1"}, "user_id"),
        ({"phone": PHONE, "challenge": "A" * 43, "code": "123456"}, "body"),
        ({}, "body"),
        ({"challenge": "A" * 43, "code": "123456", "role": "admin"}, "role"),
        ({"phone": PHONE, "x": "y" * 70_000}, "body"),
    ],
    ids=lambda value: f"{value!a:.40}",
)
@pytest.mark.parametrize("path", ["/auth/codes", "/auth/sessions"])
def test_an_invalid_body_is_400(plaza: World, path: str, body: object, field: str) -> None:
    reply = send("POST", path, body)
    assert (reply.status, reply.problem) == (400, "invalid-request")
    assert find_counters() == []
    assert users() == []


def test_a_role_in_a_sign_in_is_rejected(plaza: World) -> None:
    request_code()
    body = {"challenge": challenge_of(), "code": read_code(), "role": "admin"}
    assert_bad(send("POST", "/auth/sessions", body), "role")
    assert sign_in(read_code()).status == 201
    assert [role for _, _, role in users()] == ["user"]


# ---------------------------------------------------------------- servers are unavailable


def test_without_redis_sign_in_is_503(plaza: World, redis_away: Away) -> None:
    request_code()
    code = read_code()
    with redis_away():
        for reply in (request_code(OTHER), sign_in(code), sign_in(wrong(code))):
            assert (reply.status, reply.problem) == (503, "unavailable")
            assert int(reply.headers["retry-after"]) > 0
        assert users() == []
    assert sign_in(code).status == 401, "Redis lost the challenge"
    assert request_code().status == 202


def test_a_code_requested_without_mysql_works_after_the_outage(
    plaza: World, mysql_away: Away
) -> None:
    with mysql_away():
        assert request_code().status == 202
        assert sign_in(wrong(read_code())).status == 401
        for _ in range(2):
            refused = sign_in(read_code())
            assert (refused.status, refused.problem) == (503, "unavailable")
        assert connections.client().hget(key_of_challenge(), "wrong_tries") == "1"
    assert sign_in(read_code()).status == 201
    assert len(users()) == 1


def test_a_code_works_again_after_opening_the_session_failed(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_code()
    monkeypatch.setattr(phone_sign_in, "sign_in_user", _fail)
    assert sign_in(read_code()).status == 503
    assert len(users()) == 1
    monkeypatch.undo()
    monkeypatch.setattr("plaza.infra.aws.secrets.read", lambda secret_id: f"the secret {secret_id}")
    assert sign_in(read_code()).status == 201
    assert len(users()) == 1


def _fail(*_: object) -> str:
    raise mysql.MysqlDown("MySQL is down, simulated by a test")


def test_a_text_that_can_not_be_sent_is_503_and_counts(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SmsDown("SNS is down, simulated by a test", retry_after_s=60)

    monkeypatch.setattr(EchoSender, "send", fail)
    refused = request_code()
    assert (refused.status, refused.headers["retry-after"]) == (503, "60")
    assert request_code().status == 429, "it may have been sent"


# ---------------------------------------------------------------- stored secrets


@pytest.fixture
def codes_sent(plaza: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the codes that are sent, without an echo in Redis."""
    results: list[str] = []

    def collect(_: EchoSender, phone: str, text: str) -> None:
        results.extend(re.findall("[0-9]{6}", text))

    monkeypatch.setattr(EchoSender, "send", collect)
    return results


def in_redis() -> str:
    """Return every key and value in Redis as text."""
    client, result = connections.client(), []
    for key in find_keys():
        read_by_type = {
            "none": lambda k: None,  # a full bucket has expired
            "string": client.get,
            "hash": client.hgetall,
            "zset": lambda k: client.zrange(k, 0, -1, withscores=True),
        }
        read = read_by_type[client.type(key)]
        result.append(f"{key} {read(key)}")
    return "\n".join(result)


def in_mysql(*excluded: str) -> str:
    """Return every row in MySQL as text, without the tables ``excluded``."""
    tables = [name for (name,) in mysql.fetch_all("SHOW TABLES") if name not in excluded]
    return repr([mysql.fetch_all(f"SELECT * FROM {table}") for table in tables])


def test_phones_codes_and_tokens_are_stored_nowhere_in_plain_text(
    codes_sent: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    request_code()
    challenge = challenge_of()
    sign_in(wrong(codes_sent[0]))
    stored = [in_redis(), in_mysql("user_phone")]
    completed = sign_in(codes_sent[0])
    is_accepted(completed.body["token"])
    stored += [in_redis(), in_mysql("user_phone")]
    let_a_minute_pass()
    request_code()
    stored += [in_redis()]
    sign_in(codes_sent[-1])
    send("DELETE", "/auth/sessions/current", token=completed.body["token"])
    stored += [in_redis(), in_mysql("user_phone"), capsys.readouterr().out]
    assert len(codes_sent) == 2
    secrets = [PHONE, PHONE[1:], HOME, completed.body["token"], challenge, challenge_of()]
    for text in stored:
        assert text
        for secret in secrets:
            assert secret not in text
        for code in codes_sent:
            assert not re.search(rf"(?<![0-9]){code}(?![0-9])", text)
    assert mysql.fetch_all("SELECT phone FROM user_phone") == [(PHONE,)]


def test_logs_contain_no_phone_code_or_token_after_any_error(
    plaza: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    request_code()
    code, token = read_code(), signed_in(OTHER, source="198.51.100.7")

    def insert_twice(*_: object) -> Any:
        mysql.write("INSERT INTO user_phone (phone, user_id) VALUES (%s, 1)", (PHONE,))
        mysql.write("INSERT INTO user_phone (phone, user_id) VALUES (%s, 1)", (PHONE,))

    monkeypatch.setattr(phone_sign_in, "sign_up", insert_twice)
    assert sign_in(code).status == 500
    monkeypatch.setattr(
        phone_sign_in, "sign_up", lambda phone: mysql.fetch_all("SELECT '%s' FROM", (phone,))
    )
    assert sign_in(code).status == 500
    monkeypatch.setattr(
        phone_sign_in, "sign_up", lambda phone: mysql.write("SET time_zone = %s", (phone,))
    )
    assert sign_in(code).status == 500
    request_code(PHONE + "x")
    sign_in(code + "x")
    send("DELETE", "/auth/sessions/current", token=token + "x")
    send("DELETE", "/auth/sessions", token=token)
    logged = capsys.readouterr().out
    assert "IntegrityError" in logged
    assert "ProgrammingError" in logged
    for secret in (PHONE, PHONE[1:], OTHER, OTHER[1:], code, token, challenge_of()):
        assert secret not in logged


@pytest.fixture
def rotate(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``rotate("two", "one")``: the current secret and the one before, in Secrets Manager."""
    monkeypatch.undo()
    monkeypatch.setattr(secrets, "MIN_REFRESH_S", 0)

    def store(current: str, previous: str = "") -> None:
        text = json.dumps({"current": current, "previous": previous})
        monkeypatch.setattr(secrets, "_fetch", lambda _: text)

    return store


def restart() -> None:
    """Let the next call be made by a new process, which reads the secret."""
    clear_caches()


def test_a_code_works_although_the_secret_was_rotated_since(rotate: Callable[..., None]) -> None:
    rotate("one")
    request_code()
    rotate("two", "one")
    restart()
    assert sign_in(read_code()).status == 201


def test_a_process_that_did_not_see_the_rotation_checks_the_codes_of_others(
    rotate: Callable[..., None],
) -> None:
    """A wrong try would be counted if the process did not know that its secret is old."""
    rotate("two", "one")
    request_code()
    rotate("one")
    restart()
    assert secrets.read_keys(settings().require_auth_secret_id()) == ["one"]
    rotate("two", "one")
    assert sign_in(read_code()).status == 201


def test_a_phone_stays_known_at_its_network_after_a_rotation(rotate: Callable[..., None]) -> None:
    rotate("one")
    signed_in()
    forget_limits()
    rotate("two", "one")
    restart()
    request_code()
    assert find_keys("*:limit:codes-to:*") == [], "codes to strangers are counted there"


def test_a_code_does_not_work_after_two_rotations(rotate: Callable[..., None]) -> None:
    rotate("one")
    request_code()
    code = read_code()
    rotate("three", "two")
    restart()
    assert sign_in(code).status == 401
