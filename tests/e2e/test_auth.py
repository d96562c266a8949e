"""Sign-in and sign-out on the deployed stack; ``python -m local sms`` shows the codes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from cli.paths import ROOT
from local.stack.stack import Stack
from tests.e2e.client import Client, Reply, problem

_numbers = count(1)


@pytest.fixture
def newcomer(base_url: str) -> Callable[[], tuple[str, Client]]:
    """``newcomer()`` returns an unused phone number and a client with an address of its own."""

    def make() -> tuple[str, Client]:
        number = next(_numbers)
        return f"+861380014{number:04}", Client(base_url, source=f"127.77.0.{number}")

    return make


def ask_for_code(client: Client, phone: str, **headers: str) -> Reply:
    return client("POST", "/auth/codes", {"phone": phone}, headers)


def use_code(client: Client, sent: Reply, code: str) -> Reply:
    """Sign in with the code and the challenge of the response ``sent``."""
    assert sent.status == 202
    body = {"challenge": sent.json["challenge"], "code": code}
    return client("POST", "/auth/sessions", body)


def read_sms(stack: Stack, phone: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local", "--dir", str(stack.directory), "sms", phone]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def code_on(stack: Stack, phone: str) -> str:
    completed = read_sms(stack, phone)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert len(completed.stdout) == 7, "six digits and the end of the line"
    return completed.stdout.strip()


def test_a_new_user_signs_in_and_out(
    stack: Stack, newcomer: Callable[[], tuple[str, Client]], rows: Callable[..., Any]
) -> None:
    phone, client = newcomer()
    sent = ask_for_code(client, phone)
    assert sent.json == {"challenge": sent.json["challenge"], "expires_in": 300}
    code = code_on(stack, phone)
    completed = use_code(client, sent, code)
    assert completed.status == 201
    assert completed.json["expires_in"] == 30 * 86_400
    user_id = completed.json["user"]["id"]
    assert rows("SELECT user_id FROM user_phone WHERE phone = %s", phone) == ((int(user_id),),)
    again = use_code(client, sent, code)
    assert (again.status, problem(again)) == (401, "code-refused")

    me = Client(client.base_url, completed.json["token"])
    assert me("GET", "/users/me/likes").status == 200
    assert me("DELETE", "/auth/sessions/current").status == 204
    for method, path in (("GET", "/users/me/likes"), ("DELETE", "/auth/sessions/current")):
        refused = me(method, path)
        assert (refused.status, problem(refused)) == (401, "unauthenticated")


def test_signing_out_everywhere_ends_all_sessions_of_the_user(
    stack: Stack,
    base_url: str,
    newcomer: Callable[[], tuple[str, Client]],
    sign_in: Callable[..., str],
) -> None:
    phone, client = newcomer()
    completed = use_code(client, ask_for_code(client, phone), code_on(stack, phone))
    me = Client(base_url, completed.json["token"])
    elsewhere = Client(base_url, sign_in(int(completed.json["user"]["id"])))
    other_user = Client(base_url, sign_in(91))
    assert elsewhere("GET", "/users/me/likes").status == 200
    assert me("DELETE", "/auth/sessions").status == 204
    assert me("GET", "/users/me/likes").status == 401
    assert elsewhere("GET", "/users/me/likes").status == 401
    assert other_user("GET", "/users/me/likes").status == 200


def test_codes_for_a_phone_are_limited_to_one_a_minute_and_the_owner_can_sign_in(
    stack: Stack, newcomer: Callable[[], tuple[str, Client]]
) -> None:
    (phone, stranger), (other_phone, owner) = newcomer(), newcomer()
    assert ask_for_code(stranger, phone).status == 202
    refused = ask_for_code(stranger, phone, **{"x-forwarded-for": "203.0.113.9"})
    assert (refused.status, problem(refused)) == (429, "too-many-requests")
    assert 50 < int(refused.headers["retry-after"]) <= 60
    assert ask_for_code(stranger, other_phone).status == 202, "they share an address"
    sent = ask_for_code(owner, phone)
    assert use_code(owner, sent, code_on(stack, phone)).status == 201


def test_five_wrong_codes_invalidate_a_challenge(
    stack: Stack, base_url: str, newcomer: Callable[[], tuple[str, Client]]
) -> None:
    phone, client = newcomer()
    sent = ask_for_code(client, phone)
    code = code_on(stack, phone)
    for by in range(1, 6):
        guess = f"{(int(code) + by) % 1_000_000:06}"
        guesser = Client(base_url, source=f"127.78.0.{by}")
        refused = use_code(guesser, sent, guess)
        assert (refused.status, problem(refused)) == (401, "code-refused")
    assert use_code(client, sent, code).status == 401


def test_a_user_of_an_issuer_signs_in_once_with_each_token_and_links_a_phone(
    stack: Stack, newcomer: Callable[[], tuple[str, Client]], rows: Callable[..., Any]
) -> None:
    """Given the issuer of the stack, whose keys RefreshIssuers has read."""
    phone, client = newcomer()

    def make_token(*more: str) -> str:
        command = ["-m", "local", "--dir", str(stack.directory), "id-token", "--subject", "ann"]
        completed = subprocess.run(
            [sys.executable, *command, *more], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return completed.stdout.strip()

    token = make_token("--nonce", "n-1")
    assert client("POST", "/auth/sessions", {"id_token": token}).status == 401
    opened = client("POST", "/auth/sessions", {"id_token": token, "nonce": "n-1"})
    assert opened.status == 201
    again = client("POST", "/auth/sessions", {"id_token": token, "nonce": "n-1"})
    assert (again.status, problem(again)) == (401, "id-token-refused")
    user_id = int(opened.json["user"]["id"])
    assert rows("SELECT subject FROM user_identity WHERE user_id = %s", user_id) == (("ann",),)

    me = Client(client.base_url, opened.json["token"])
    sent = ask_for_code(client, phone)
    body = {"challenge": sent.json["challenge"], "code": code_on(stack, phone)}
    assert me("PUT", "/auth/phone", body).status == 204
    assert rows("SELECT phone FROM user_phone WHERE user_id = %s", user_id) == ((phone,),)
    other = client("POST", "/auth/sessions", {"id_token": make_token()})
    assert other.json["user"] == opened.json["user"]


def test_sms_reports_a_missing_code_and_an_invalid_phone(stack: Stack) -> None:
    for phone, message in (("+12025550199", "no code was sent"), ("12025550199", "phone")):
        completed = read_sms(stack, phone)
        assert (completed.returncode, completed.stdout) == (1, "")
        assert message in completed.stderr
        assert "Traceback" not in completed.stderr


def test_logs_contain_no_phone_code_token_or_challenge(
    stack: Stack, newcomer: Callable[[], tuple[str, Client]]
) -> None:
    phone, client = newcomer()
    sent = ask_for_code(client, phone)
    code = code_on(stack, phone)
    token = use_code(client, sent, code).json["token"]
    Client(client.base_url, token)("DELETE", "/auth/sessions")
    command = [sys.executable, "-m", "local", "--dir", str(stack.directory), "logs"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "POST /auth/sessions" in completed.stdout
    for secret in (phone[1:], token, sent.json["challenge"]):
        assert secret not in completed.stdout
    assert f'"{code}"' not in completed.stdout


def test_expired_sessions_are_deleted_by_the_function(
    stack: Stack, rows: Callable[..., Any], sign_in: Callable[..., str]
) -> None:
    sign_in(92)
    rows("UPDATE session SET expires_at = '2020-01-01' WHERE user_id = 92")
    assert stack.invoke("DeleteExpired", {})["session"] >= 1
    assert rows("SELECT COUNT(*) FROM session WHERE user_id = 92") == ((0,),)


def test_an_admin_ends_the_sessions_of_a_user(
    user: Callable[[int], Client], base_url: str, sign_in: Callable[..., str]
) -> None:
    victim = user(93)
    assert victim("GET", "/users/me").status == 200
    assert victim("DELETE", "/users/93/sessions").status == 403
    admin = Client(base_url, sign_in(94, role="admin"))
    assert admin("DELETE", "/users/93/sessions").json == {"ended": 1}
    assert victim("GET", "/users/me").status == 401


def test_public_routes_and_unknown_paths_have_responses(anonymous: Client) -> None:
    for path, status in (("/health", 200), ("/openapi.json", 200), ("/nowhere", 404)):
        assert anonymous("GET", path).status == status
    refused = anonymous("PATCH", "/users/me", b"{")
    assert (refused.status, problem(refused)) == (401, "unauthenticated")
