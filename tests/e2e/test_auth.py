"""Signing in and out on the deployed stack, with the code read as a developer reads it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from local.paths import ROOT
from local.stack import Stack
from tests.e2e.client import Client, Reply, problem

_numbers = count(1)


@pytest.fixture
def newcomer(base_url: str) -> Callable[[], tuple[str, Client]]:
    """A phone that nobody had, and a client at an address of its own."""

    def make() -> tuple[str, Client]:
        number = next(_numbers)
        return f"+861380014{number:04}", Client(base_url, source=f"127.77.0.{number}")

    return make


def ask_for_code(client: Client, phone: str, **headers: str) -> Reply:
    return client("POST", "/auth/codes", {"phone": phone}, headers)


def use_code(client: Client, phone: str, code: str) -> Reply:
    return client("POST", "/auth/sessions", {"phone": phone, "code": code})


def read_sms(stack: Stack, phone: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local", "--dir", str(stack.directory), "sms", phone]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def code_on(stack: Stack, phone: str) -> str:
    done = read_sms(stack, phone)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout) == 7, "six digits and the end of the line"
    return done.stdout.strip()


def test_somebody_signs_in_and_out(
    stack: Stack, newcomer: Callable[[], tuple[str, Client]], rows: Callable[..., Any]
) -> None:
    phone, client = newcomer()
    assert ask_for_code(client, phone).json == {"expires_in": 300}
    code = code_on(stack, phone)
    done = use_code(client, phone, code)
    assert done.status == 201
    assert done.json["expires_in"] == 30 * 86_400
    user_id = done.json["user"]["id"]
    assert rows("SELECT user_id FROM user_phone WHERE phone = %s", phone) == ((int(user_id),),)
    again = use_code(client, phone, code)
    assert (again.status, problem(again)) == (401, "code-refused")

    me = Client(client.base_url, done.json["token"])
    assert me("GET", "/users/me/likes").status == 200
    assert me("DELETE", "/auth/sessions/current").status == 204
    for method, path in (("GET", "/users/me/likes"), ("DELETE", "/auth/sessions/current")):
        refused = me(method, path)
        assert (refused.status, problem(refused)) == (401, "unauthenticated")


def test_signing_out_everywhere_ends_every_session_at_once(
    stack: Stack,
    base_url: str,
    newcomer: Callable[[], tuple[str, Client]],
    sign_in: Callable[..., str],
) -> None:
    phone, client = newcomer()
    ask_for_code(client, phone)
    done = client("POST", "/auth/sessions", {"phone": phone, "code": code_on(stack, phone)})
    me = Client(base_url, done.json["token"])
    elsewhere = Client(base_url, sign_in(int(done.json["user"]["id"])))
    somebody = Client(base_url, sign_in(91))
    assert elsewhere("GET", "/users/me/likes").status == 200
    assert me("DELETE", "/auth/sessions").status == 204
    assert me("GET", "/users/me/likes").status == 401
    assert elsewhere("GET", "/users/me/likes").status == 401
    assert somebody("GET", "/users/me/likes").status == 200


def test_codes_are_a_minute_apart_by_phone_and_by_address(
    newcomer: Callable[[], tuple[str, Client]],
) -> None:
    (phone, here), (other_phone, there) = newcomer(), newcomer()
    assert ask_for_code(here, phone).status == 202
    for client, wanted in ((there, phone), (here, other_phone)):
        refused = ask_for_code(client, wanted, **{"x-forwarded-for": "203.0.113.9"})
        assert (refused.status, problem(refused)) == (429, "too-many")
        assert 50 < int(refused.headers["retry-after"]) <= 60
    assert ask_for_code(there, other_phone).status == 202


def test_a_code_is_burnt_by_five_wrong_tries_from_five_addresses(
    stack: Stack, base_url: str, newcomer: Callable[[], tuple[str, Client]]
) -> None:
    phone, client = newcomer()
    ask_for_code(client, phone)
    code = code_on(stack, phone)
    for by in range(1, 6):
        guess = f"{(int(code) + by) % 1_000_000:06}"
        guesser = Client(base_url, source=f"127.78.0.{by}")
        refused = use_code(guesser, phone, guess)
        assert (refused.status, problem(refused)) == (401, "code-refused")
    assert use_code(client, phone, code).status == 401


def test_sms_says_when_there_is_no_code_and_when_it_is_no_phone(stack: Stack) -> None:
    for phone, told in (("+12025550199", "no code was sent"), ("12025550199", "phone")):
        done = read_sms(stack, phone)
        assert (done.returncode, done.stdout) == (1, "")
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def test_the_logs_of_the_stack_name_no_phone_and_no_code(
    stack: Stack, newcomer: Callable[[], tuple[str, Client]]
) -> None:
    phone, client = newcomer()
    ask_for_code(client, phone)
    code = code_on(stack, phone)
    token = use_code(client, phone, code).json["token"]
    Client(client.base_url, token)("DELETE", "/auth/sessions")
    command = [sys.executable, "-m", "local", "--dir", str(stack.directory), "logs"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "POST /auth/sessions" in done.stdout
    for secret in (phone[1:], token):
        assert secret not in done.stdout
    assert f'"{code}"' not in done.stdout


def test_expired_sessions_are_deleted_by_the_function(
    stack: Stack, rows: Callable[..., Any], sign_in: Callable[..., str]
) -> None:
    sign_in(92)
    rows("UPDATE session SET expires_at = '2020-01-01' WHERE user_id = 92")
    assert stack.invoke("DeleteExpired", {})["session"] >= 1
    assert rows("SELECT COUNT(*) FROM session WHERE user_id = 92") == ((0,),)
