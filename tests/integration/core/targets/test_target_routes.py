"""Targets of the app through the API: made by servers, reacted to, listed, reported and erased."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from plaza.core.event_log import mysql_events, read_events
from plaza.core.reaction_log import Scope, recount
from plaza.core.targets import external_targets, markers
from plaza.core.targets.external_targets import ExternalTarget
from plaza.core.targets.types import number_of
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.process import clear_caches
from plaza.operate.accounts import export
from plaza.people.auth.new_session import open_session
from plaza.people.auth.operate_server_keys import make_server_key
from plaza.people.auth.request_erasure import erase_now
from tests.integration.conftest import Away
from tests.support.accounts import run_until_erased
from tests.support.audits import Audit
from tests.support.content_api import ask as ask_function
from tests.support.plaza import World
from tests.support.reconciliations import run
from tests.support.sign_in_client import Reply, send
from tests.support.stores import ORDER_TOKEN, add_users

ME, ADA, BO = 7, 8, 9
URL = "https://app.example/articles/8f3a"
ARTICLE = "/targets/article/8f3a"
LIKE = f"{ARTICLE}/reactions/like"
OWNED = {"owner": str(ADA), "url": URL}


@pytest.fixture(autouse=True)
def world(plaza: World) -> World:
    add_users(ME, ADA, BO)
    return plaza


@pytest.fixture
def key() -> str:
    return make_server_key("app", {"act", "read"}, 1_000, operator_id="test")[1]


def serve(key: str, method: str, path: str, body: Any = None, **headers: str) -> Reply:
    return send(method, path, body, token=key, headers=headers)


def ask(
    method: str,
    path: str,
    body: Any = None,
    user: int | None = ME,
    role: str = "user",
) -> tuple[int, Any]:
    reply = ask_function(method, path, body, user=user, role=role)
    return reply.status, reply.body


def like(user: int = ME, path: str = LIKE) -> Any:
    status, body = ask("PUT", f"{path}/me", user=user)
    assert status == 200, body
    return body


def slug(reply: Reply) -> str:
    return str(reply.body["type"]).rpartition("/")[2]


def test_a_server_makes_a_target_that_users_react_to(world: World, key: str) -> None:
    assert ask("PUT", f"{LIKE}/me")[0] == 404
    created = serve(key, "PUT", ARTICLE, OWNED)
    assert (created.status, created.body) == (
        200,
        {"type": "article", "id": "8f3a", "result": "live"},
    )
    assert like()["total"] == 1
    assert like(BO)["total"] == 2
    assert ask("DELETE", f"{LIKE}/me", user=BO)[1]["total"] == 1
    world.queues.drain()
    state = {"total": 1, "at": ORDER_TOKEN, "mine": True, "exact": True}
    assert ask("GET", f"{LIKE}/me") == (200, state)
    received = "SELECT likes_received_total FROM user_counter WHERE user_id = 8"
    assert mysql.fetch_all(received) == [(1,)]


def test_lists_totals_and_queries_have_the_ids_of_the_app(world: World, key: str) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    like()
    like(path="/targets/clip/12/reactions/collect")
    world.queues.drain()
    for _ in range(2):  # from the marker, and from the row without one
        _, page = ask("GET", "/users/me/likes?limit=5")
        assert [(item["type"], item["id"]) for item in page["items"]] == [("article", "8f3a")]
        _, page = ask("GET", "/users/me/reactions/collect?expand=target")
        assert [(item["type"], item["id"]) for item in page["items"]] == [("clip", "12")]
        redis.execute("DEL", markers.existence_key("article", number_of("article", "8f3a")))
        clear_caches()
    _, likers = ask("GET", LIKE)
    assert [item["user_id"] for item in likers["items"]] == [str(ME)]
    _, totals = ask("GET", "/totals?of=article:8f3a,clip:12,article:8F3A", None)
    assert [(item["id"], item["likes"], item["collects"]) for item in totals["items"]] == [
        ("8f3a", 1, 0),
        ("12", 0, 1),
        ("8F3A", 0, 0),
    ]
    _, queried = ask("POST", "/reactions/query", {"targets": [{"type": "article", "id": "8f3a"}]})
    [item] = queried["items"]
    assert (item["id"], item["likes"], item["mine"]["liked"]) == ("8f3a", 1, True)


def test_the_owner_is_notified_with_the_url(world: World, key: str) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    like()
    world.queues.drain()
    path = "/users/me/notifications"
    _, page = ask("GET", path, user=ADA)
    [item] = page["items"]
    assert item["subject"] == {"type": "article", "id": "8f3a", "text": None, "url": URL}
    read = {"kind": "like", "subject": {"type": "article", "id": "8f3a"}}
    body = {"at": page["at"], "groups": [read]}
    status, marked = ask("PUT", f"{path}/read", body, ADA)
    assert (status, marked["unread"]) == (200, 0)
    assert serve(key, "DELETE", ARTICLE).status == 204
    world.queues.drain()
    assert ask("GET", path, user=ADA)[1]["items"] == []


def test_likes_one_after_another_are_one_notification(
    world: World, key: str, redis_url: str, mysql_url: str
) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    for user in (ME, BO, ADA):
        like(user)
        world.queues.drain()
    _, page = ask("GET", "/users/me/notifications", user=ADA)
    [item] = page["items"]
    assert (item["total"], item["fresh"], page["unread"]) == (2, 2, 1)
    ask("DELETE", f"{LIKE}/me")
    world.queues.drain()
    _, page = ask("GET", "/users/me/notifications", user=ADA)
    assert (page["items"][0]["total"], page["items"][0]["fresh"]) == (1, 1)
    assert Audit(redis_url, mysql_url)().differences == []


def test_a_recount_has_what_owners_received(world: World, key: str) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    like()
    world.queues.drain()
    mysql.write("UPDATE user_counter SET likes_received_total = 5 WHERE user_id = 8")
    assert recount.recount_rows(Scope()).differing
    mysql.write("UPDATE user_counter SET likes_received_total = 1 WHERE user_id = 8")
    assert not recount.recount_rows(Scope(user_id=ADA)).differing


def test_events_name_the_target_as_the_app_does(
    world: World, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_events, "MIN_HEAD_AGE_S", 0)
    serve(key, "PUT", ARTICLE, OWNED)
    like()
    world.queues.drain()
    [event] = read_events.read_page(None, 10).events
    assert event.to_dict()["data"]["target"] == {"type": "article", "id": "8f3a"}
    assert "." not in event.id


def test_a_report_reaches_moderators_with_the_url(key: str) -> None:
    report = {"reason": "spam", "target": {"type": "article", "id": "8f3a"}}
    assert ask("POST", "/reports", report)[0] == 404
    serve(key, "PUT", ARTICLE, OWNED)
    assert ask("POST", "/reports", report, ADA)[0] == 400, "its own"
    status, made = ask("POST", "/reports", report)
    assert (status, made["target"]) == (201, {"type": "article", "id": "8f3a"})
    _, queue = ask("GET", "/ops/reports", None, 1, "moderator")
    [shown] = queue["items"]
    assert (shown["target"]["id"], shown["url"], shown["content"]) == ("8f3a", URL, None)
    outcome = {"outcome": "upheld"}
    path = f"/ops/reports/{made['id']}/outcome"
    _, resolved = ask("PUT", path, outcome, 1, "moderator")
    assert resolved["target"]["id"] == "8f3a"


def test_creations_at_once_have_a_result_each(key: str) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    serve(key, "PUT", "/targets/article/gone", {})
    assert serve(key, "DELETE", "/targets/article/gone").status == 204
    named = [
        {"type": "article", "id": "8f3a", **OWNED},
        {"type": "article", "id": "8f3a", "owner": str(BO)},
        {"type": "article", "id": "gone"},
        {"type": "article", "id": "new", "owner": "my-app|ann"},
        {"type": "article", "id": "unowned", "owner": "123456789"},
        {"type": "clip", "id": "12"},
    ]
    reply = serve(key, "POST", "/targets", {"targets": named})
    assert [(item["id"], item["result"]) for item in reply.body["items"]] == [
        ("8f3a", "live"),
        ("8f3a", "owner-fixed"),
        ("gone", "deleted"),
        ("new", "live"),
        ("unowned", "unknown-owner"),
        ("12", "live"),
    ]
    owner = mysql.fetch_all(
        """
        SELECT owner_id
        FROM external_target
        JOIN user_identity ON user_identity.user_id = external_target.owner_id
        WHERE external_id = 'new'
          AND subject = 'ann'
        """
    )
    assert len(owner) == 1
    assert (
        serve(key, "POST", "/targets", {"targets": named[3:4]}).body["items"][0]["result"] == "live"
    )


@pytest.mark.parametrize(
    ("path", "body", "status", "problem"),
    [
        (ARTICLE, {"owner": str(BO)}, 409, "owner-fixed"),
        (ARTICLE, {}, 409, "owner-fixed"),
        (ARTICLE, {"owner": "123456789"}, 400, "invalid-request"),
        (ARTICLE, {"owner": "no identity"}, 400, "invalid-request"),
        (ARTICLE, {"url": "javascript:alert(1)"}, 400, "invalid-request"),
        (ARTICLE, {"url": "http://app.example/"}, 400, "invalid-request"),
        ("/targets/post/11", {}, 404, "not-found"),
        ("/targets/nothing/11", {}, 404, "not-found"),
        ("/targets/article/-a", {}, 404, "not-found"),
        ("/targets/clip/a", {}, 404, "not-found"),
        ("/targets/article/gone", {}, 410, "gone"),
    ],
)
def test_a_creation_is_refused(
    key: str, path: str, body: dict[str, str], status: int, problem: str
) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    serve(key, "PUT", "/targets/article/gone", {})
    serve(key, "DELETE", "/targets/article/gone")
    reply = serve(key, "PUT", path, body)
    assert (reply.status, slug(reply)) == (status, problem), reply.body


def test_only_keys_that_act_make_and_delete_targets(key: str) -> None:
    reader = make_server_key("reader", {"read"}, 100, operator_id="test")[1]
    for method in ("PUT", "DELETE"):
        body: dict[str, str] | None = {} if method == "PUT" else None
        assert serve(reader, method, ARTICLE, body).status == 403
        assert ask(method, ARTICLE, body)[0] == 403
        assert ask(method, ARTICLE, body, None)[0] == 401
        assert ask(method, ARTICLE, body, 1, role="admin")[0] == 403
    assert serve(key, "PUT", ARTICLE, {}, **{"plaza-user": "my-app|ann"}).status == 200
    assert mysql.fetch_all("SELECT * FROM user_identity") == [], "it names no user"


def test_a_deleted_target_refuses_reactions_and_keeps_its_rows(world: World, key: str) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    like()
    world.queues.drain()
    assert serve(key, "DELETE", ARTICLE).status == 204
    for _ in range(2):  # by its marker, and by its row
        assert ask("PUT", f"{LIKE}/me", user=BO)[0] == 410
        redis.execute("DEL", markers.existence_key("article", number_of("article", "8f3a")))
        clear_caches()
    assert serve(key, "DELETE", ARTICLE).status == 410
    assert serve(key, "DELETE", "/targets/article/other").status == 404
    _, totals = ask("GET", "/totals?of=article:8f3a", None)
    assert totals["items"][0]["likes"] == 1
    _, page = ask("GET", "/users/me/likes")
    assert [item["id"] for item in page["items"]] == ["8f3a"]


def test_a_deletion_whose_marker_was_lost_is_marked_by_its_message(
    world: World, key: str, redis_away: Away
) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    with redis_away():
        assert serve(key, "DELETE", ARTICLE).status == 204
    target = "article", number_of("article", "8f3a")
    redis.execute("SET", markers.existence_key(*target), "live:8f3a", "EX", 3600)
    world.queues.drain()
    assert ask("PUT", f"{LIKE}/me")[0] == 410


def test_a_first_reaction_costs_ten_tokens_and_others_one() -> None:
    token = open_session(ME)

    def remaining(clip: int) -> int:
        path = f"/targets/clip/{clip}/reactions/like/me"
        reply = send("PUT", path, token=token)
        assert reply.status == 200, reply.body
        return int(reply.headers["ratelimit"].partition("r=")[2].partition(";")[0])

    left = [remaining(clip) for clip in (12, 12, 13, 13)]
    assert left[1] >= left[0] - 1
    assert left[1] - left[2] >= 8, "some come back with time"
    assert left[3] >= left[2] - 1


def test_64_callers_at_once_make_one_target_and_count_each(world: World) -> None:
    add_users(*range(100, 164))
    path = "/targets/clip/12/reactions/like"
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda user: like(user, path), range(100, 164)))
    world.queues.drain()
    assert max(answer["total"] for answer in answers) == 64
    assert mysql.fetch_all("SELECT external_id FROM external_target") == [("12",)]
    assert mysql.fetch_all("SELECT total FROM counter WHERE target_type = 'clip'") == [(64,)]


def test_a_reaction_without_redis_is_counted_later(
    world: World, key: str, redis_away: Away
) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    with redis_away():
        status, body = ask("PUT", f"{LIKE}/me")
        assert (status, body["exact"]) == (202, False)
        assert ask("PUT", "/targets/clip/12/reactions/like/me")[0] == 202
        assert ask("PUT", "/targets/article/other/reactions/like/me")[0] == 404
    world.queues.drain()
    assert ask("GET", f"{LIKE}/me")[1]["total"] == 1
    assert ask("GET", "/targets/clip/12/reactions/like/me")[1]["total"] == 1


def test_an_export_has_what_a_user_owns_and_reacted_to(world: World, key: str) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    like(ADA)
    world.queues.drain()
    rows, _ = export.read_page(ADA, None, 100)
    of = {row.section: row.fields for row in rows}
    assert (of["targets"]["external_id"], of["targets"]["url"]) == ("8f3a", URL)
    assert (of["likes"]["target_type"], of["likes"]["target_id"]) == ("article", "8f3a")


def test_the_targets_of_an_erased_owner_count_for_nobody(
    world: World, key: str, redis_url: str, mysql_url: str
) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    serve(key, "PUT", "/targets/article/other", {"owner": str(ADA)})
    like()
    world.queues.drain()
    erase_now(ADA)
    run_until_erased(world, ADA)
    assert mysql.fetch_all("SELECT DISTINCT owner_id, url FROM external_target") == [(None, None)]
    assert like(BO)["total"] == 2
    world.queues.drain()
    assert run(world).differing == 0
    assert Audit(redis_url, mysql_url)().differences == []


def test_stores_of_targets_of_the_app_agree_and_a_wrong_total_is_repaired(
    world: World, key: str, redis_url: str, mysql_url: str
) -> None:
    serve(key, "PUT", ARTICLE, OWNED)
    for user in (ME, BO):
        like(user)
    like(path="/targets/clip/12/reactions/collect")
    world.queues.drain()
    audit = Audit(redis_url, mysql_url)
    assert audit().differences == []
    mysql.write("UPDATE counter SET total = 5 WHERE target_type = 'article'")
    mysql.write("UPDATE user_counter SET likes_received_total = 5 WHERE user_id = 8")
    assert run(world).differing > 0
    assert run(world).differing == 0
    _, audited = ask("GET", "/ops/audit?target=article:8f3a", None, 1, "operator")
    assert {(item["id"], item["rows"]) for item in audited["items"]} == {("8f3a", 2), ("8f3a", 0)}


def test_two_ids_of_one_number_are_one_conflict(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from plaza.core.targets import external_targets as made

    monkeypatch.setattr(made, "number_of", lambda *_: 77)
    external_targets.create_all([ExternalTarget("article", "8f3a")])
    reply = serve(key, "PUT", "/targets/article/other", {})
    assert (reply.status, slug(reply)) == (409, "number-taken")
