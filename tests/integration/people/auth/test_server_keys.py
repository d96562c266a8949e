"""Keys of servers: what they may do, for whom, how fast, and until when."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from local.stack.servers import connect_mysql
from plaza.core.reactions import Target
from plaza.infra.http import routes
from plaza.infra.http.callers import Caller
from plaza.infra.mysql import mysql
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import BadInput, Conflict, Forbidden, NotFound
from plaza.infra.runtime.process import clear_caches
from plaza.operate.operator_commands import commands
from plaza.people.auth import new_session
from plaza.people.auth.caller_identity import identify
from plaza.people.auth.operate_server_keys import end_server_key, list_server_keys, make_server_key
from plaza.people.auth.server_keys import (
    EVENTS,
    FOR_NO_USER,
    MAX_KEY_AGE_S,
    MAX_KEY_AGE_WITHOUT_MYSQL_S,
    MODERATION,
    make_key,
)
from plaza.people.users import sign_up
from tests.integration.conftest import Away
from tests.support.content_api import ask as content_ask
from tests.support.content_api import post
from tests.support.interleave import run_after_statement
from tests.support.plaza import World
from tests.support.routes import contract
from tests.support.sign_in_client import HOME, Reply, send
from tests.support.stores import add_users

LIKE, READ = "PUT /posts/{post_id}/likes/me", "GET /posts"
USER, OTHER = 700_001, 700_002
POST = Target("post", 11)
ISSUER = "https://id.example.com"


@pytest.fixture
def key(plaza: World) -> str:
    add_users(USER, OTHER)
    return make("read", "act")


def make(*scopes: str, name: str = "web", per_s: int = 100) -> str:
    return make_server_key(name, scopes, per_s, operator_id="test")[1]


def id_of(key: str) -> str:
    return key.split("_")[1]


def ask(key: str, route: str = LIKE, acts_for: str | None = str(USER)) -> Caller:
    """Return the caller of a request, without its limit."""
    caller = identify(f"Bearer {key}", HOME, route, acts_for)
    return caller._replace(quota=None, bucket=None)


def let_pass(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    before = clock.monotonic_s
    monkeypatch.setattr(clock, "monotonic_s", lambda: before() + seconds)


def like(key: str, acts_for: str | None = str(USER), **headers: str) -> Reply:
    named = {} if acts_for is None else {"plaza-user": acts_for}
    return send(
        "PUT", "/posts/11/likes/me", token=key, headers=named | headers, folder="api/reactions"
    )


# ---------------------------------------------------------------- for whom


def test_a_server_likes_for_a_user(plaza: World, key: str) -> None:
    plaza.add(POST)
    liked = like(key)
    assert (liked.status, liked.body["likes"], liked.body["liked"]) == (200, 1, True)
    assert like(key, str(OTHER)).body["likes"] == 2
    plaza.queues.drain()
    actors = mysql.fetch_all("SELECT actor_id FROM reaction ORDER BY actor_id")
    assert actors == [(USER,), (OTHER,)]


def test_a_key_enrolls_no_passkey(key: str) -> None:
    body = {"name": "Laptop", "client_data": "AAAA", "attestation": "AAAA"}
    refused = send("POST", "/passkeys", body, token=key, headers={"plaza-user": str(USER)})
    assert (refused.status, refused.problem) == (403, "forbidden")


def test_an_identity_gets_its_user_at_its_first_act(plaza: World, key: str) -> None:
    acts_for = f"{ISSUER}|ann|x"
    assert ask(key, READ, acts_for) == Caller(None, "user", key_id=id_of(key))
    caller = ask(key, LIKE, acts_for)
    assert caller.user_id is not None
    assert caller.user_id == sign_up.sign_up_identity(ISSUER, "ann|x").id
    assert ask(key, READ, acts_for).user_id == caller.user_id
    clear_caches()
    assert ask(key, READ, acts_for).user_id == caller.user_id


@pytest.mark.parametrize(
    "acts_for",
    ["", " ", "ann", "0", "-7", "7.0", "|ann", f"{ISSUER}|", f"{ISSUER}| ", f"{ISSUER}|ann ",
     f"{ISSUER}|änn", f"{ISSUER}|" + "a" * 256, "9" * 19, "a" * 201 + "|ann", "7\n", "a b|ann"],
)  # fmt: skip
def test_any_other_name_of_a_user_is_refused(key: str, acts_for: str) -> None:
    with pytest.raises(BadInput, match="Plaza-User"):
        ask(key, LIKE, acts_for)
    assert mysql.fetch_all("SELECT 1 FROM user_identity") == []


def test_a_user_that_does_not_exist_or_was_erased_acts_no_more(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        ask(key, LIKE, "4711")
    assert ask(key).user_id == USER
    mysql.write("DELETE FROM user WHERE id = %s", (USER,))
    let_pass(monkeypatch, MAX_KEY_AGE_S + 1)
    with pytest.raises(BadInput, match="does not exist"):
        ask(key)


def test_without_a_user_a_key_reads_what_is_public(plaza: World, key: str) -> None:
    assert ask(key, READ, None) == Caller(key_id=id_of(key))
    refused = like(key, None)
    assert (refused.status, refused.problem) == (401, "unauthenticated")
    assert "Plaza-User" in refused.body["detail"]


def test_no_session_and_no_anonymous_caller_acts_for_another_user(plaza: World) -> None:
    for header in (None, "Bearer " + "A" * 43, "Basic x"):
        assert identify(header, HOME, LIKE, str(USER)).refusal == "no key"


# ---------------------------------------------------------------- scopes


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        (("read",), {READ, "POST /reactions/query"}),
        (("act",), {LIKE}),
        (("moderate",), {"GET /ops/reports", "PUT /ops/posts/{post_id}/hidden"}),
        (("export",), {"GET /users/me/export"}),
        (("erase",), {"DELETE /users/me"}),
    ],
)
def test_a_scope_allows_its_routes_only(
    plaza: World, scopes: tuple[str, ...], allowed: set[str]
) -> None:
    add_moderator(USER)
    key = make(*scopes)
    for route in (READ, "POST /reactions/query", LIKE, "DELETE /users/me", "GET /ops/reports",
                  "GET /users/me/export", "PUT /ops/posts/{post_id}/hidden"):  # fmt: skip
        if route in allowed:
            assert ask(key, route).user_id == USER
        else:
            with pytest.raises(Forbidden):
                ask(key, route)


def test_no_key_has_a_role_but_on_the_routes_of_moderators(plaza: World) -> None:
    """Also for a user who is one."""
    add_users(USER)
    mysql.write("UPDATE user SET role = 'admin' WHERE id = %s", (USER,))
    key = make("read", "act", "moderate", "export", "erase")
    roles = {
        route: ask(key, route).role
        for path, methods in contract()["paths"].items()
        for method in methods
        for route in [f"{method.upper()} {path}"]
        if route != EVENTS
    }
    assert {route for route, role in roles.items() if role == "moderator"} == MODERATION
    assert {route for route, role in roles.items() if role == "server"} == FOR_NO_USER
    assert set(roles.values()) == {"user", "moderator", "server"}
    of_moderators = {
        f"{method.upper()} {path}"
        for path, methods in contract()["paths"].items()
        for method, operation in methods.items()
        if operation["security"] == routes.MODERATOR
    }
    assert of_moderators >= MODERATION


def add_moderator(user_id: int) -> None:
    add_users(user_id)
    mysql.write("UPDATE user SET role = 'moderator' WHERE id = %s", (user_id,))


def test_a_key_moderates_for_moderators_only(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    add_moderator(USER)
    add_users(OTHER)
    key = make("moderate")
    assert ask(key, "GET /ops/reports").role == "moderator"
    for acts_for in (str(OTHER), f"{ISSUER}|ann"):
        with pytest.raises(Forbidden, match="no moderator"):
            ask(key, "GET /ops/reports", acts_for)
    mysql.write("UPDATE user SET role = 'user' WHERE id = %s", (USER,))
    let_pass(monkeypatch, MAX_KEY_AGE_S + 1)
    with pytest.raises(Forbidden, match="no moderator"):
        ask(key, "GET /ops/reports")


def test_what_a_key_moderates_names_the_key_and_the_moderator(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    add_moderator(USER)
    add_users(OTHER)
    post_id = post(OTHER)
    key, named = make("moderate"), {"plaza-user": str(USER)}
    body = {"target": {"type": "post", "id": post_id}, "reason": "spam"}
    reported = content_ask("POST", "/reports", body, user=USER, folder="api/moderation")
    capsys.readouterr()
    for path, request in (
        (f"/ops/posts/{post_id}/hidden", None),
        (f"/ops/reports/{reported.body['id']}/outcome", {"outcome": "upheld"}),
    ):
        reply = send("PUT", path, request, token=key, headers=named, folder="api/moderation")
        assert reply.status == 200, reply.body
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    moderated = [
        (line["operator_id"], line["key_id"])
        for line in lines
        if line.get("event") in ("content_hidden", "report_resolved")
    ]
    assert moderated == [(USER, id_of(key))] * 2
    hidden = mysql.fetch_all(
        "SELECT hidden_by, hidden_by_key FROM content WHERE hidden_at IS NOT NULL"
    )
    resolved = mysql.fetch_all("SELECT resolved_by, resolved_by_key FROM report")
    assert hidden == resolved == [(USER, id_of(key))]


@pytest.mark.parametrize("begin", ["sk_", "SK_", "sK_"])
def test_a_session_whose_token_begins_like_a_key_is_one(
    plaza: World, monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    """One of 65,536 random tokens does."""
    monkeypatch.setattr(
        "plaza.people.auth.sessions.secrets.token_urlsafe", lambda size: f"{begin:a<43}"
    )
    [token] = new_session.open_sessions([USER])
    assert ask(token, acts_for=None).user_id == USER


def test_a_key_is_refused_by_a_route_of_operators(key: str) -> None:
    full = make("read", "act", "moderate", name="full")
    named = {"plaza-user": str(USER)}
    for method, path in (("GET", "/ops/queues"), ("POST", "/ops/sweeps"), ("GET", "/ops/health")):
        refused = send(method, path, {}, token=full, headers=named, folder="api/operations")
        assert (refused.status, refused.problem) == (403, "forbidden")


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize(
    "change",
    [
        lambda key: key[:-1] + ("A" if key[-1] != "A" else "B"),
        lambda key: key + "A",
        lambda key: key[:-1],
        lambda key: key.replace(id_of(key), "A" * 16),
        lambda key: key.replace("sk_", "sk_live_"),
        lambda key: key.upper(),
        lambda key: "sk_",
        lambda key: f"{key} {key}",
    ],
)
def test_any_other_key_is_refused(key: str, change: Callable[[str], str]) -> None:
    assert ask(key).user_id == USER
    caller = ask(change(key))
    assert caller.refusal in ("unknown", "malformed")
    assert (caller.user_id, caller.role, caller.key_id) == (None, None, None)


def test_a_wrong_secret_takes_nothing_from_the_rate_of_a_key(plaza: World) -> None:
    add_users(USER)
    key = make("act", per_s=1)
    ask(key)
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    for _ in range(20):
        assert ask(wrong).refusal == "unknown"
    assert ask(key).wait_ms == 0


def test_invented_keys_are_limited_for_their_network(
    plaza: World, set_up: Callable[..., None]
) -> None:
    set_up(anonymous_per_s=0.001, anonymous_burst=5)
    callers = [ask(f"sk_{n:016}_{'A' * 43}") for n in range(10)]
    assert sum(caller.wait_ms > 0 for caller in callers) == 5


def test_a_key_has_a_rate_of_its_own(plaza: World) -> None:
    add_users(USER)
    slow, fast = make("act", per_s=1), make("act", per_s=100, name="other")
    assert [ask(slow).wait_ms > 0 for _ in range(6)] == [False] * 5 + [True]
    assert ask(fast).wait_ms == 0
    assert like(slow).problem == "too-many-requests"


def test_an_ended_key_is_refused_within_a_minute(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(key).user_id == USER
    end_server_key(id_of(key), operator_id="test")
    end_server_key(id_of(key), operator_id="test")
    let_pass(monkeypatch, MAX_KEY_AGE_S + 1)
    assert ask(key).refusal == "unknown"
    clear_caches()
    assert ask(key).refusal == "unknown"
    with pytest.raises(NotFound):
        end_server_key("A" * 16, operator_id="test")


def test_without_mysql_a_known_key_works_for_an_hour(
    key: str, mysql_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(key)
    with mysql_away():
        let_pass(monkeypatch, MAX_KEY_AGE_S + 1)
        assert ask(key, READ, None).key_id == id_of(key)
        let_pass(monkeypatch, MAX_KEY_AGE_WITHOUT_MYSQL_S)
        assert ask(key, READ, None).refusal == "unavailable"


def test_two_keys_of_a_name_are_valid_at_a_time(plaza: World) -> None:
    first, second = make("read"), make("act")
    with pytest.raises(Conflict):
        make("read")
    assert make("read", name="other")
    end_server_key(id_of(first), operator_id="test")
    third = make("read")
    assert len({first, second, third}) == 3
    assert [row["ended_at"] is None for row in list_server_keys()] == [True, True, True, False]


def test_two_of_the_first_keys_of_a_name_that_are_made_at_once_are_valid(
    plaza: World, mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = (
        "INSERT INTO server_key (key_id, secret_sha256, name, scopes, requests_per_s)"
        " VALUES (%s, '', 'web', 'read', 1)"
    )
    with closing(connect_mysql(mysql_url)) as other, other.cursor() as cursor:

        def insert_two() -> None:
            cursor.executemany(insert, ["a", "b"])

        run_after_statement(monkeypatch, insert_two)
        with pytest.raises(Conflict):
            make("read")
    assert len(list_server_keys()) == 2


@pytest.mark.parametrize(
    ("name", "scopes", "per_s"),
    [("", ["read"], 1), ("Web", ["read"], 1), ("a" * 33, ["read"], 1), ("web", [], 1),
     ("web", ["admin"], 1), ("web", ["read"], 0), ("web", ["read"], 10_001)],
)  # fmt: skip
def test_no_other_key_is_made(plaza: World, name: str, scopes: list[str], per_s: int) -> None:
    with pytest.raises(BadInput):
        make_server_key(name, scopes, per_s, operator_id="test")


def test_the_last_use_is_stored_every_ten_minutes(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list_server_keys()[0]["used_at"] is None
    ask(key[:-1] + ("A" if key[-1] != "A" else "B"))
    assert list_server_keys()[0]["used_at"] is None, "a wrong secret is no use"
    clear_caches()
    ask(key)
    used_at = list_server_keys()[0]["used_at"]
    assert used_at is not None
    mysql.write("UPDATE server_key SET used_at = '2026-01-01'")
    ask(key)
    assert list_server_keys()[0]["used_at"].startswith("2026-01-01"), "not with each request"
    let_pass(monkeypatch, MAX_KEY_AGE_S + 1)
    ask(key)
    assert list_server_keys()[0]["used_at"] >= used_at


def test_only_the_hash_of_a_key_is_stored_and_no_line_has_it(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    add_users(USER)
    plaza.add(POST)
    capsys.readouterr()
    arguments = {"name": "web", "scopes": "read,act"}
    made = commands.run({"command": "make-server-key", "arguments": arguments, "caller": "ada"})
    key, secret = made["key"], made["key"].split("_", 2)[2]
    assert like(key).status == 200
    assert like(key[:-1] + ("A" if key[-1] != "A" else "B")).status == 401
    listed = commands.run({"command": "list-server-keys", "caller": "ada"})
    commands.run(
        {"command": "end-server-key", "arguments": {"key_id": made["key_id"]}, "caller": "ada"}
    )
    lines = capsys.readouterr().out
    served = [line for line in map(json.loads, lines.splitlines()) if "route" in line]
    assert [line.get("key_id") for line in served] == [made["key_id"], None]
    assert "server_key_made" in lines
    assert "server_key_ended" in lines
    rows = repr(mysql.fetch_all("SELECT * FROM server_key"))
    for part in (key, secret, secret[:-1]):
        assert part not in lines
        assert part not in rows
        assert part not in json.dumps(listed)


# ---------------------------------------------------------------- cost


def test_a_like_for_a_known_user_costs_two_round_trips(plaza: World, key: str) -> None:
    """As one with a session: the key and the rate in one, the gate in the other."""
    acts_for = f"{ISSUER}|ann"
    for name in (str(USER), acts_for):
        ask(key, LIKE, name)
        assert count_trips(lambda name=name: ask(key, LIKE, name)) == 1  # type: ignore[misc]


def count_trips(call: Callable[[], Any]) -> int:
    """Return how many round trips to Redis a call makes; it may make no statement."""
    from bench.round_trips import count_round_trips

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mysql, "fetch_all", lambda *_: pytest.fail("a statement"))
        with count_round_trips() as counter:
            call()
    return counter.sent


def test_keys_have_258_random_bits() -> None:
    keys = {make_key()[0] for _ in range(100)}
    assert len(keys) == 100
    for key in keys:
        assert re.fullmatch(r"sk_[A-Za-z0-9]{16}_[A-Za-z0-9_-]{43}", key)
