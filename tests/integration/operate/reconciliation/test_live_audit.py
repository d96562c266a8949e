"""The live audit on a real Redis and MariaDB: it finds drift and nothing that is in transit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.core.reactions import (
    COLLECT,
    LIKE,
    Target,
    inspection,
    kinds,
    persist,
    queries,
    react,
)
from plaza.core.reactions.mysql_counts import CountedState
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.operate.reconciliation import live_audit
from plaza.operate.reconciliation.live_audit import TargetAudit
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.functions import ask, authorization, event, handler
from tests.support.plaza import World
from tests.support.stores import keys

POST, OTHER_POST, COMMENT, USER = (
    Target("post", 7),
    Target("post", 8),
    Target("comment", 20),
    Target("user", 1),
)


@pytest.fixture
def liked(plaza: World) -> World:
    """Users 2 to 6 like a post and two of them collect it; nothing waits on a queue."""
    plaza.add(POST, OTHER_POST, COMMENT)
    for actor in range(2, 7):
        react.react(LIKE, POST, actor, True)
    for actor in (2, 3):
        react.react(COLLECT, POST, actor, True)
    react.react(LIKE, COMMENT, 2, True)
    plaza.queues.drain()
    return plaza


def audit(target: Target = POST) -> TargetAudit:
    """Return the audit of the likes of a target."""
    [result] = [item for item in live_audit.audit_targets([target]) if item.kind == LIKE]
    return result


def numbers(result: TargetAudit) -> tuple[int | None, int, int | None, int]:
    return result.total, result.counter, result.rows, result.drift


def test_stores_that_agree_have_no_drift(liked: World) -> None:
    assert numbers(audit()) == (5, 5, 5, 0)
    assert audit().reasons == ()


def test_reactions_on_their_way_are_no_drift(liked: World) -> None:
    react.react(LIKE, POST, 9, True)
    react.react(LIKE, POST, 2, False)
    react.react(LIKE, POST, 3, False)
    report = audit()
    assert numbers(report) == (4, 5, 5, 0)
    assert report.cached is not None
    assert (report.cached.entries, report.cached.delta) == (3, -1)
    liked.queues.drain()
    assert numbers(audit()) == (4, 4, 4, 0)


def test_commits_that_redis_has_not_applied_are_no_drift(
    liked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(persist, "acknowledge", lambda _: None)
        react.react(LIKE, POST, 9, True)
        liked.queues.drain()
    report = audit()
    assert (report.behind, report.drift, report.reasons) == (1, 0, ())
    assert (report.total, report.counter, report.rows) == (6, 6, 6)


def test_a_wrong_counter_is_drift(liked: World) -> None:
    mysql.write("UPDATE counter SET total = 9 WHERE target_id = %s AND kind = 'like'", (POST.id,))
    report = audit()
    assert (report.counter, report.rows) == (9, 5)
    assert set(report.reasons) == {"counter", "total"}
    assert report.drift == 8  # four reactions in MySQL, and the same four in Redis


def test_a_lost_row_is_drift(liked: World) -> None:
    mysql.write("DELETE FROM reaction WHERE target_id = %s AND actor_id = 2", (POST.id,))
    assert numbers(audit()) == (5, 5, 4, 1)


def test_a_wrong_total_in_redis_is_drift(liked: World) -> None:
    redis.execute("HSET", keys(POST).meta, "base", 8)
    report = audit()
    assert (report.total, report.drift, report.reasons) == (8, 3, ("total",))


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("base", "many", "unreadable"),
        ("accepted", "0:3:1", "stuck"),
        ("accepted", "many", "unreadable"),
        ("mode", "2", "unreadable"),
        ("db_version", "4503599627370496", "ahead"),
    ],
)
def test_invalid_data_in_redis_is_at_least_one_of_drift(
    liked: World, field: str, value: str, reason: str
) -> None:
    redis.execute("HSET", keys(POST).meta, field, value)
    report = audit()
    assert reason in report.reasons
    assert report.drift >= 1


def test_a_target_that_redis_does_not_have_is_audited_in_mysql(liked: World) -> None:
    inspection.evict_all([(LIKE, POST, None)])
    assert numbers(audit()) == (None, 5, 5, 0)
    assert numbers(audit(OTHER_POST)) == (None, 0, 0, 0)


def test_all_kinds_of_a_target_are_audited(liked: World) -> None:
    result = live_audit.audit_targets([POST, USER, COMMENT])
    counted = {(LIKE, POST): 5, (COLLECT, POST): 2, (LIKE, COMMENT): 1}
    assert [(item.kind, item.target, item.counter) for item in result] == [
        (kind, target, counted.get((kind, target), 0))
        for target in (POST, USER, COMMENT)
        for kind in kinds.kinds_of(target.type)
    ]


def test_the_most_active_targets_are_first_and_an_outbox_counts(liked: World) -> None:
    liked.add(Target("post", 30))
    react.react(LIKE, Target("post", 30), 2, True)
    active = live_audit.audit_active(3)
    assert [(item.kind, item.target) for item in active][:2] == [(LIKE, POST), (COLLECT, POST)]
    everything = [(item.kind, item.target) for item in live_audit.audit_active(100)]
    assert (LIKE, Target("post", 30)) in everything
    assert len(everything) == 4


def test_rows_beyond_the_budget_are_not_counted(liked: World) -> None:
    for actor in (2, 3):
        react.react(LIKE, OTHER_POST, actor, True)
    liked.queues.drain()
    results = {(a.kind, a.target): a for a in live_audit.audit_active(10, max_rows=6)}
    assert results[LIKE, POST].rows is None
    assert results[LIKE, OTHER_POST].rows == 2
    assert results[LIKE, POST].drift == 0


def test_an_audit_costs_the_same_for_any_number_of_targets(liked: World) -> None:
    many = [Target("post", number) for number in range(100, 150)]
    liked.add(*many)
    for target in many:
        react.react(LIKE, target, 2, True)
    liked.queues.drain()
    live_audit.audit_active(100)  # all nodes have the scripts
    taken = []
    for limit in (1, 100):
        with count_round_trips() as trips:
            before = statements()
            assert len(live_audit.audit_active(limit)) >= min(limit, 50)
            taken.append((statements() - before - 1, trips.sent))
    assert taken[0] == taken[1] == (3, 3)


def test_an_audit_of_nothing_is_empty(plaza: World) -> None:
    assert live_audit.audit_active(20) == []


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("step", ["like", "store", "commit only", "evict", "load"])
def test_what_happens_between_the_reads_of_an_audit_is_no_drift(
    liked: World, monkeypatch: pytest.MonkeyPatch, step: str, is_before: bool
) -> None:
    read_counted = inspection.read_counted
    if step == "load":
        inspection.evict_all([(LIKE, POST, None)])

    def happen() -> None:
        if step in ("like", "store", "commit only"):
            react.react(LIKE, POST, 9, True)
        if step == "commit only":
            monkeypatch.setattr(persist, "acknowledge", lambda _: None)
        if step in ("store", "commit only"):
            liked.queues.drain()
        if step == "evict":
            inspection.evict_all([(LIKE, POST, None)])
        if step == "load":
            queries.read_counts([(LIKE, POST)], 1)

    def read(*args: Any) -> list[CountedState]:
        if is_before:
            happen()
        states = read_counted(*args)
        if not is_before:
            happen()
        return states

    monkeypatch.setattr(inspection, "read_counted", read)
    report = audit()
    assert (report.drift, report.reasons) == (0, ())
    assert report.counter == report.rows


OPS = "api/reconciliation"


def test_an_admin_reads_the_audit(liked: World) -> None:
    react.react(LIKE, POST, 9, True)
    status, body = ask("reconciliation.get_audit", OPS)
    assert status == 200
    assert body["totals"] == {
        "targets": 3,
        "differing": 0,
        "total": 9,
        "outbox": 1,
        "counter": 8,
        "rows": 8,
        "drift": 0,
    }
    [likes] = [items for items in body["items"] if (items["kind"], items["id"]) == ("like", "7")]
    assert (likes["state"], likes["total"], likes["outbox"], likes["delta"]) == ("agrees", 6, 1, 1)
    status, body = ask("reconciliation.get_audit_of_targets", OPS)
    assert [(items["kind"], items["type"], items["state"]) for items in body["items"]] == [
        *(
            (kind.name, "post", "agrees" if kind in (LIKE, COLLECT) else "not-loaded")
            for kind in kinds.kinds_of("post")
        ),
        ("follow", "user", "not-loaded"),
    ]
    mysql.write("UPDATE counter SET total = 4 WHERE target_id = %s AND kind = 'like'", (POST.id,))
    _, body = ask("reconciliation.get_audit_of_targets", OPS)
    assert (body["items"][0]["state"], body["totals"]["differing"]) == ("differs", 1)


@pytest.mark.parametrize(
    "target",
    [
        "",
        "shop:7",
        "post:0",
        "post:9223372036854775808",
        "post",
        "post:7,",
        "post:7 ",
        "post:1," * 60,
    ],
)
def test_an_invalid_target_is_refused(plaza: World, target: str) -> None:
    request = event("reconciliation.get_audit_of_targets")
    request["queryStringParameters"] = {"target": target}
    response = handler(OPS)(request, None)
    assert response["statusCode"] == 400
    assert json.loads(response["body"])["errors"][0]["field"].startswith("query.target")


def test_an_audit_is_for_admins_and_is_not_stored(plaza: World) -> None:
    request = event("reconciliation.get_audit")
    assert handler(OPS)(request, None)["headers"]["cache-control"] == "no-store"
    request["headers"] |= authorization(7)
    assert handler(OPS)(request, None)["statusCode"] == 403


def test_an_audit_needs_redis(liked: World, redis_away: Away) -> None:
    with redis_away():
        assert ask("reconciliation.get_audit", OPS)[0] == 503
    assert audit().drift == 0


def test_an_audit_is_charged_by_the_rows_that_it_counts(
    liked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[int] = []
    live_audit.audit_targets([POST, COMMENT], charged.append)
    assert charged == [], "few rows"
    monkeypatch.setattr(live_audit, "ROWS_PER_TOKEN", 4)
    live_audit.audit_targets([POST, COMMENT], charged.append)
    live_audit.audit_active(10, charge=charged.append)
    assert charged == [2, 2], "5 likes, 2 collects and a like"
    live_audit.audit_active(10, max_rows=3, charge=charged.append)
    assert charged == [2, 2], "the post is not counted"
