"""Each function in this process, invoked with its sample event."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.core.reactions import COLLECT, LIKE, Target, react
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from tests.integration.conftest import Away
from tests.support.functions import ask, event, handler
from tests.support.plaza import World
from tests.support.routes import find_match, match
from tests.support.stores import (
    ORDER_TOKEN,
    POST,
    counter,
    insert_rows,
    keys,
    meta,
    put,
    reactions_of,
    recent,
    rows,
)
from tests.unit.policy import template

COMMENT = Target("comment", 21)


@pytest.fixture
def content(plaza: World) -> World:
    plaza.add(POST, COMMENT)
    return plaza


# ---------------------------------------------------------------- api/reactions


def test_a_post_is_liked_and_unliked(content: World) -> None:
    liked = {"liked": True, "likes": 1, "likes_at": ORDER_TOKEN, "changed": True, "exact": True}
    assert ask("reactions.like_post") == (200, liked)
    assert ask("reactions.like_post") == (200, liked | {"changed": False})
    assert ask("reactions.unlike_post") == (
        200,
        {"liked": False, "likes": 0, "likes_at": ORDER_TOKEN, "changed": True, "exact": True},
    )
    content.queues.drain()
    assert counter() == 0


def test_a_comment_is_liked_and_a_post_is_collected(content: World) -> None:
    assert ask("reactions.like_comment")[1]["likes"] == 1
    collected = {
        "collected": True,
        "collects": 1,
        "collects_at": ORDER_TOKEN,
        "changed": True,
        "exact": True,
    }
    assert ask("reactions.collect_post") == (200, collected)
    content.queues.drain()
    assert (counter(COMMENT), counter(kind=COLLECT)) == (1, 1)


def test_a_like_needs_a_session_and_a_post(plaza: World) -> None:
    assert ask("reactions.like_post_without_session")[0] == 401
    assert ask("reactions.like_post")[0] == 404
    plaza.add(POST)
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    redis.execute("FLUSHALL")
    assert ask("reactions.like_post")[0] == 410


def test_an_actor_who_toggles_too_often_gets_429(content: World) -> None:
    names = ["reactions.like_post", "reactions.unlike_post"]
    codes: list[int] = []
    while not codes or codes[-1] == 200:
        answer = handler("api/reactions")(event(names[len(codes) % 2]), None)
        codes.append(answer["statusCode"])
        assert len(codes) < 40
    assert (len(codes), codes[-1]) == (22, 429), "a like, and 20 changes of it within a minute"
    assert int(answer["headers"]["retry-after"]) == 60
    assert json.loads(answer["body"])["type"].rpartition("/")[2] == "too-many-requests"
    content.queues.drain()
    assert counter() == 1


def test_likers_and_own_likes_are_listed(content: World) -> None:
    for actor in (8, 7):
        react.react(LIKE, POST, actor, True)
    content.queues.drain()
    status, page = ask("reactions.list_post_likers", "api/reactions")
    assert status == 200
    assert [item["user_id"] for item in page["items"]] == ["7", "8"]
    assert page["next"] is None
    status, page = ask("reactions.list_my_likes", "api/reactions")
    assert [(item["type"], item["id"]) for item in page["items"]] == [("post", "11")]


@pytest.mark.parametrize("of_type", ["\ud800", "é", "日本", "\x00", "x'y", "user", ""])
def test_a_forged_cursor_is_a_400_or_a_page(content: World, of_type: str) -> None:
    insert_rows([(Target("post", n), 7, 1, 1_000 + n) for n in range(1, 120)])
    request = event("reactions.list_my_likes")
    request["queryStringParameters"] = {"cursor": pack_cursor(1_010, of_type, 5)}
    assert handler("api/reactions")(request, None)["statusCode"] in (200, 400)


def test_totals_of_many_targets_come_in_one_response(content: World) -> None:
    react.react(LIKE, POST, 7, True)
    assert ask("reactions.query_reactions") == (
        200,
        {
            "items": [
                {
                    "type": "post",
                    "id": "11",
                    "likes": 1,
                    "likes_at": ORDER_TOKEN,
                    "collects": 0,
                    "collects_at": ORDER_TOKEN,
                    "mine": {"liked": True, "collected": False},
                    "reactions": reactions_of("post", like=(1, True)),
                },
                {
                    "type": "comment",
                    "id": "21",
                    "likes": 0,
                    "likes_at": ORDER_TOKEN,
                    "collects": 0,
                    "collects_at": ORDER_TOKEN,
                    "mine": {"liked": False, "collected": False},
                    "reactions": reactions_of("comment"),
                },
            ],
            "exact": True,
        },
    )


def test_a_like_while_redis_is_unavailable_is_a_202(content: World, redis_away: Away) -> None:
    with redis_away():
        assert ask("reactions.like_post") == (
            202,
            {"liked": True, "likes": None, "likes_at": None, "changed": None, "exact": False},
        )


# ---------------------------------------------------------------- api/system


def test_health_is_constant_and_asks_no_store(plaza: World) -> None:
    with count_round_trips() as counter:
        assert ask("system.get_health", "api/system") == (200, {"status": "up"})
    assert counter.sent == 0


def test_an_admin_reads_the_state_of_each_store(plaza: World, mysql_away: Away) -> None:
    up = {"status": "up", "redis": "up", "mysql": "up", "queue": "up"}
    assert ask("operations.get_store_health", "api/operations") == (200, up)
    plaza.queues.away = True
    degraded = up | {"status": "degraded", "queue": "down"}
    assert ask("operations.get_store_health", "api/operations") == (200, degraded)
    with mysql_away():
        degraded |= {"mysql": "down"}
        assert ask("operations.get_store_health", "api/operations") == (200, degraded)


def test_the_contract_is_served_and_other_paths_and_methods_are_refused(plaza: World) -> None:
    status, contract = ask("system.get_contract", "api/system")
    assert (status, contract["openapi"][:3]) == (200, "3.1")
    assert ask("system.nothing_there", "api/system")[0] == 404
    answer = handler("api/system")(event("system.wrong_method"), None)
    assert (answer["statusCode"], answer["headers"]["allow"]) == (405, "DELETE, PUT")


def names_taken_for_ids() -> list[tuple[str, str]]:
    """Return (method, path without a parameter) of all requests that API Gateway sends to a route
    with a parameter, because the path itself has other methods."""
    methods = {method for method, _ in template.routes()}
    paths = {path for _, path in template.routes() if "{" not in path}
    return sorted(
        (method, path)
        for method, path in product(methods, paths)
        if (method, path) not in template.routes() and "{" in find_match(method, path).route.key
    )


@pytest.mark.parametrize(("method", "path"), names_taken_for_ids())
def test_another_method_of_a_path_that_fits_a_route_with_an_id_is_a_405(
    plaza: World, method: str, path: str
) -> None:
    """``PUT /shops/search``, which API Gateway takes for ``PUT /shops/{shop_id}``."""
    assert path in ("/posts/ranking", "/shops/search", "/users/me/sessions")
    sent = event("system.wrong_method") | {"rawPath": path} | match(method, path)
    sent["requestContext"]["http"]["method"] = method
    function = template.routes()[tuple(sent["routeKey"].split(" "))]
    folder = template.folder_of(function).relative_to(template.FUNCTIONS)
    answer = handler(str(folder))(sent, None)
    assert (answer["statusCode"], answer["headers"]["allow"]) == (405, "GET, HEAD")
    assert json.loads(answer["body"])["detail"] == f"{path} allows GET, HEAD, not {method}."


# ---------------------------------------------------------------- queue, schedule, ops


def test_a_batch_of_events_is_stored(content: World) -> None:
    response = handler("queue/save_reactions")(event("save_reactions.batch"), None)
    assert response == {"batchItemFailures": []}
    assert {actor: on for actor, (on, _) in rows().items()} == {7: False, 8: True, 9: True}
    assert (counter(), counter(kind=COLLECT)) == (2, 1)


def test_an_invalid_message_fails_if_the_dlq_refuses_it_and_the_rest_is_stored(
    content: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.infra.queues.dead_letters.dead_letter", lambda *_: False)
    response = handler("queue/save_reactions")(event("save_reactions.poison"), None)
    [failure] = response["batchItemFailures"]
    assert failure["itemIdentifier"] == event("save_reactions.poison")["Records"][1]["messageId"]
    assert {actor for actor, (on, _) in rows().items() if on} == {7, 8}


def test_acknowledgements_are_repeated(content: World) -> None:
    put()
    insert_rows([(POST, 7, 1, 10), (POST, 8, 1, 20)])
    response = handler("queue/acknowledge_reactions")(event("acknowledge_reactions.batch"), None)
    assert response == {"batchItemFailures": []}
    assert (recent(), meta()["db_version"]) == ([7], 1), (
        "the commit; the keys only report that there is more"
    )
    redis.execute("HSET", keys().meta, "blocked", meta()["blocked"] - 2_000_000)
    content.let_sweeps_be_due()
    handler("schedule/sweep_outbox")(event("sweep_outbox.schedule"), None)
    assert (recent(), meta()["db_version"]) == ([7, 8], 2)


def test_a_rebuild_begins_and_a_step_of_a_lost_build_ends_without_error(content: World) -> None:
    insert_rows([(POST, 7, 1, 10)])
    put(total=1, n=1, complete=False)
    for name in ("begin", "next_step"):
        response = handler("queue/rebuild_target")(event(f"rebuild_target.{name}"), None)
        assert response == {"batchItemFailures": []}
    assert meta()["bloom"] > 0


def test_the_sweep_and_the_migrations_report_what_they_did(plaza: World) -> None:
    assert handler("schedule/sweep_outbox")(event("sweep_outbox.schedule"), None) == {
        "republished": 0,
        "checkins_republished": 0,
        "warm_ups_started": 1,
        "acknowledged_again": 0,
    }
    assert handler("ops/migrate")(event("migrate.deploy"), None) == {"applied": []}


def test_the_functions_of_the_feed_accept_their_samples(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    asked: dict[str, list[Any]] = {"batchItemFailures": []}
    for _ in range(2):
        status, page = ask("feed.list_feed_posts", "api/feed")
        assert (status, page) == (200, {"items": [], "next": None})
    assert ask("feed.list_feed_posts_next_page", "api/feed")[0] == 200
    assert ask("feed.list_feed_posts_without_session", "api/feed")[0] == 401
    for name in ("rebuild_inboxes.asked", "apply_follow_changes.batch", "fan_out_post.batch"):
        folder = f"queue/{name.partition('.')[0]}"
        assert handler(folder)(event(name), None) == asked
    monkeypatch.setattr("plaza.infra.queues.dead_letters.dead_letter", lambda *_: False)
    poison = event("fan_out_post.poison")
    [failure] = handler("queue/fan_out_post")(poison, None)["batchItemFailures"]
    assert failure["itemIdentifier"] == poison["Records"][1]["messageId"]
    sample = event("publish_unsent.schedule")
    assert handler("schedule/publish_unsent")(sample, None) == {"published": 0}
