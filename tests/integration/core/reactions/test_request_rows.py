"""The request id in the rows that a request created; the recorded acknowledgement lag."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from plaza.core.reactions import LIKE, Target
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS
from plaza.core.reactions.react import react
from plaza.core.reactions.sweep import sweep_outbox
from plaza.infra.mysql import mysql
from tests.support.functions import event, handler
from tests.support.logs import read_log
from tests.support.plaza import World

POST = Target("post", 11)


def batch(body: str, request_id: str | None, queue: str = "reactions") -> dict[str, Any]:
    """Return the event of Lambda with one message."""
    attributes = {"request_id": {"stringValue": request_id, "dataType": "String"}}
    return {
        "Records": [
            {
                "messageId": "m1",
                "receiptHandle": "r1",
                "body": str(body),
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": str(int(time.time() * 1000)),
                },
                "messageAttributes": attributes if request_id else {},
            }
        ]
    }


def read_column(sql: str) -> list[Any]:
    return [row[0] for row in mysql.fetch_all(sql)]


def make_body(actor: int = 7, version: int = 1_795_169_730_000_000) -> str:
    return REACTIONS.encode(ReactionEvent(ReactionKey(*POST, "like", actor), True, version))


@pytest.fixture
def content(plaza: World) -> World:
    plaza.add(POST)
    return plaza


def test_a_like_is_logged_with_its_request(content: World) -> None:
    save = handler("queue/save_reactions")
    assert save(batch(make_body(7), "my-like-0001"), None) == {"batchItemFailures": []}
    assert save(batch(make_body(8), None), None) == {"batchItemFailures": []}
    sql = "SELECT request_id FROM reaction_log ORDER BY actor_id"
    assert read_column(sql) == ["my-like-0001", None]


def test_a_repeated_event_keeps_its_first_request(content: World) -> None:
    save = handler("queue/save_reactions")
    for request_id in ("my-like-0001", "another-0001", None):
        save(batch(make_body(), request_id), None)
    assert read_column("SELECT request_id FROM reaction_log") == ["my-like-0001"]


def test_a_forged_request_id_is_not_stored(content: World) -> None:
    forged = "x',NOW()),('post',1,'like',1,1,1,1,'2026-01-01','y"
    handler("queue/save_reactions")(batch(make_body(), forged), None)
    assert read_column("SELECT request_id FROM reaction_log") == [None]


def test_an_event_sent_by_the_sweeper_has_no_request(content: World) -> None:
    content.queues.away = True
    react(LIKE, POST, 7, True)
    content.queues.away = False
    content.let_sweeps_be_due()
    sweep_outbox(resend_after_us=0)
    content.queues.drain()
    assert read_column("SELECT request_id FROM reaction_log") == [None]


def test_a_like_that_the_queue_refused_is_logged_with_its_request(content: World) -> None:
    like = event("reactions.like_post")
    like["headers"]["x-request-id"] = "my-like-0001"
    content.queues.away = True
    assert handler("api/reactions")(like, None)["statusCode"] == 200
    content.queues.away = False
    assert (
        handler("schedule/sweep_outbox")(event("sweep_outbox.schedule"), None)["republished"] == 1
    )
    content.queues.drain()
    assert read_column("SELECT request_id FROM reaction_log") == ["my-like-0001"]


def test_orders_check_ins_and_posts_are_stored_with_their_request(content: World) -> None:
    order = {"order_id": 1795169730 << 32, "voucher_id": 3, "buyer_id": 7, "generation": 1}
    handler("queue/save_orders")(batch(json.dumps(order), "my-order-001", "orders"), None)
    assert read_column("SELECT request_id FROM voucher_order") == ["my-order-001"]
    order["order_id"] += 1
    handler("queue/decide_dead_orders")(
        batch(json.dumps(order), "my-order-002", "orders_dlq"), None
    )
    assert read_column("SELECT request_id FROM voucher_order ORDER BY order_id DESC LIMIT 1") == [
        "my-order-002"
    ]
    checkin = {"user_id": 7, "day": "2026-11-20", "version": 1_795_169_730_000_000}
    handler("queue/save_checkins")(batch(json.dumps(checkin), "my-day-00001", "checkins"), None)
    assert read_column("SELECT request_id FROM checkin") == ["my-day-00001"]
    mysql.write("INSERT INTO user (id, nickname) VALUES (7, 'ada')")
    request = event("content.create_post")
    request["headers"]["x-request-id"] = "my-post-0001"
    response = handler("api/content")(request, None)
    assert response["headers"]["x-request-id"] == "my-post-0001"
    post_id = json.loads(response["body"])["id"]
    assert read_column(f"SELECT request_id FROM content WHERE content_id = {post_id}") == [
        "my-post-0001"
    ]


def test_the_acknowledgement_lag_is_recorded_for_changed_rows(
    content: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for actor in (7, 8, 9):
        react(LIKE, POST, actor, True)
    bodies = content.queues.take("reactions")
    events = [REACTIONS.decode(str(body)) for body in bodies]
    records = [batch(body, None)["Records"][0] | {"messageId": body} for body in bodies]
    save = handler("queue/save_reactions")
    capsys.readouterr()
    began_s = time.time()
    save({"Records": records}, None)
    [acknowledged] = read_log(capsys, "reactions_acknowledged")
    oldest_s = time.time() - events[0].effective_version_us / 1e6
    assert (
        0
        <= acknowledged["acknowledge_lag_p50_s"]
        <= acknowledged["acknowledge_lag_max_s"]
        <= oldest_s + 0.01
    )
    assert (
        acknowledged["acknowledge_lag_max_s"]
        >= began_s - events[0].effective_version_us / 1e6 - 0.01
    )
    save({"Records": records}, None)  # a repeated batch changes no rows
    assert read_log(capsys, "reactions_acknowledged") == []


def test_the_maximum_of_the_lag_is_that_of_the_oldest_reaction(
    content: World, capsys: pytest.CaptureFixture[str]
) -> None:
    now_us = time.time_ns() // 1000
    versions_us = (now_us, now_us - 100_000_000, now_us - 50_000_000)
    bodies = [make_body(actor, version) for actor, version in enumerate(versions_us, 1)]
    records = [batch(body, None)["Records"][0] | {"messageId": body} for body in bodies]
    handler("queue/save_reactions")({"Records": records}, None)
    [acknowledged] = read_log(capsys, "reactions_acknowledged")
    assert acknowledged["acknowledge_lag_max_s"] == pytest.approx(100, abs=20)
    assert acknowledged["acknowledge_lag_p50_s"] == pytest.approx(50, abs=20)
