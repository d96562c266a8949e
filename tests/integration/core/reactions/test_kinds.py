"""Kinds of reactions, one of which a deployment adds: routes, views, lists, totals and stores."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from plaza.core.reactions import KINDS, Kind, declared_kinds, kinds
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.settings import BadSettings
from plaza.operate.accounts import export
from plaza.people.auth.request_erasure import erase_now
from tests.support.accounts import run_until_erased
from tests.support.audits import Audit
from tests.support.content_api import ask as ask_function
from tests.support.plaza import World, forget
from tests.support.reconciliations import findings_of, run
from tests.support.stores import ORDER_TOKEN, POST

ME, ADA, FRIEND = 7, 8, 9
BOOKMARK = KINDS["bookmark"]
OF_POSTS = [kind for kind in KINDS.values() if POST.type in kind.targets]
each_kind = pytest.mark.parametrize("kind", OF_POSTS, ids=lambda kind: kind.name)
PATH = f"/targets/post/{POST.id}/reactions/bookmark"


def add(patch: pytest.MonkeyPatch, kind: Kind) -> None:
    patch.setitem(kinds.KINDS, kind.name, kind)
    for target_type in kind.targets:
        others = [k for k in kinds.kinds_of(target_type) if k.name != kind.name]
        patch.setitem(kinds._OF_TYPE, target_type, (*others, kind))


@pytest.fixture(autouse=True)
def world(plaza: World) -> World:
    mysql.write("INSERT INTO user (id, nickname) VALUES (7, 'me'), (8, 'Ada'), (9, 'Bo')")
    plaza.add(POST, author_id=ADA)
    return plaza


def ask(method: str, path: str, user: int | None = ME, folder: str = "api/reactions") -> Any:
    reply = ask_function(method, path, None, user=user, folder=folder)
    return reply.status, reply.body


def test_an_added_kind_is_set_and_taken_back(world: World) -> None:
    on = {"on": True, "total": 1, "at": ORDER_TOKEN, "changed": True, "exact": True}
    assert ask("PUT", f"{PATH}/me") == (200, on)
    assert ask("PUT", f"{PATH}/me") == (200, on | {"changed": False})
    state = {"total": 1, "at": ORDER_TOKEN, "mine": True, "exact": True}
    assert ask("GET", f"{PATH}/me") == (200, state)
    world.queues.drain()
    assert mysql.fetch_all("SELECT kind, total, ranked FROM counter") == [("bookmark", 1, None)]
    assert mysql.fetch_all("SELECT * FROM user_counter WHERE likes_received_total <> 0") == []
    assert ask("DELETE", f"{PATH}/me") == (200, on | {"on": False, "total": 0})
    world.queues.drain()
    assert mysql.fetch_all("SELECT total FROM counter WHERE kind = 'bookmark'") == [(0,)]


def test_views_lists_and_totals_have_an_added_kind(world: World) -> None:
    ask("PUT", f"{PATH}/me")
    world.queues.drain()
    _, post = ask("GET", f"/posts/{POST.id}", folder="api/content")
    assert post["reactions"]["bookmark"] == {"total": 1, "at": ORDER_TOKEN, "mine": True}
    assert post["reactions"]["like"]["total"] == post["likes"] == 0
    _, page = ask("GET", "/users/me/reactions/bookmark")
    assert [(item["type"], item["id"]) for item in page["items"]] == [("post", str(POST.id))]
    _, totals = ask("GET", f"/totals?of=post:{POST.id}", None, folder="api/totals")
    assert totals["items"][0]["reactions"]["bookmark"] == {"total": 1, "at": ORDER_TOKEN}


def test_actors_are_listed_only_if_they_are_public(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("PUT", f"{PATH}/me")
    world.queues.drain()
    assert ask("GET", PATH, ADA)[0] == 404
    add(monkeypatch, dataclasses.replace(BOOKMARK, is_public=True))
    status, page = ask("GET", PATH, ADA)
    assert (status, [item["user_id"] for item in page["items"]]) == (200, [str(ME)])


@pytest.mark.parametrize(
    "path",
    [
        f"/targets/user/{ADA}/reactions/bookmark/me",
        f"/targets/post/{POST.id}/reactions/follow/me",
        f"/targets/post/{POST.id}/reactions/nothing/me",
        "/targets/post/0/reactions/bookmark/me",
    ],
)
def test_a_kind_that_the_target_does_not_take_is_a_404(path: str) -> None:
    assert [ask(method, path)[0] for method in ("GET", "PUT", "DELETE")] == [404] * 3


def test_a_built_in_kind_is_the_same_by_both_routes(world: World) -> None:
    assert ask("PUT", f"/targets/post/{POST.id}/reactions/like/me")[1]["changed"] is True
    assert ask("PUT", f"/posts/{POST.id}/likes/me")[1]["changed"] is False
    assert ask("PUT", f"/targets/user/{ADA}/reactions/follow/me")[1]["total"] == 1
    assert ask("PUT", f"/targets/user/{ME}/reactions/follow/me")[0] == 409, "one's own user"
    world.queues.drain()


def test_a_closed_kind_takes_no_new_reactions_and_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("PUT", f"{PATH}/me")
    world.queues.drain()
    add(monkeypatch, dataclasses.replace(BOOKMARK, is_closed=True))
    assert ask("PUT", f"{PATH}/me", ADA)[0] == 409
    assert ask("GET", f"{PATH}/me")[1]["mine"] is True
    assert ask("DELETE", f"{PATH}/me")[1]["total"] == 0
    world.queues.drain()


def test_a_kind_with_reactions_does_not_disappear(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared_kinds.require_declared()
    ask("PUT", f"{PATH}/me")
    world.queues.drain()
    declared_kinds.require_declared()
    add(monkeypatch, dataclasses.replace(BOOKMARK, targets=frozenset({"review"})))
    with pytest.raises(BadSettings, match="bookmark of post"):
        declared_kinds.require_declared()
    monkeypatch.delitem(kinds.KINDS, "bookmark")
    with pytest.raises(BadSettings, match="bookmark of post"):
        declared_kinds.require_declared()


@pytest.fixture
def reacted(world: World, kind: Kind) -> World:
    """Two users react to a post of a third; all of it is stored."""
    mysql.write("INSERT INTO user_counter (user_id, posts_total) VALUES (%s, 1)", (ADA,))
    for user_id in (ME, FRIEND):
        status, answer = ask("PUT", f"/targets/post/{POST.id}/reactions/{kind.name}/me", user_id)
        assert (status, answer["changed"]) == (200, True)
    world.queues.drain()
    return world


@each_kind
def test_damage_is_found_and_repaired(kind: Kind, reacted: World, audit: Audit) -> None:
    report = audit()
    assert (report.clean, report.differences) == (True, [])
    assert report.totals[kind.name].rows == report.totals[kind.name].counters == 2
    mysql.write("UPDATE counter SET total = 3 WHERE kind = %s", (kind.name,))
    assert not audit().clean
    assert ("counter", kind.name, str(POST)) in findings_of(run(reacted))
    assert audit().clean
    assert mysql.fetch_all("SELECT total FROM counter WHERE kind = %s", (kind.name,)) == [(2,)]


@each_kind
def test_redis_is_loaded_again_from_the_rows(kind: Kind, reacted: World, audit: Audit) -> None:
    redis.execute("FLUSHALL")
    forget()
    state = ask("GET", f"/targets/post/{POST.id}/reactions/{kind.name}/me")[1]
    assert (state["total"], state["mine"]) == (2, True)
    assert audit().clean


@each_kind
def test_an_export_has_the_reactions_and_an_erasure_takes_them_back(
    kind: Kind, reacted: World, audit: Audit
) -> None:
    rows, _ = export.read_page(ME, None, 1_000)
    [row] = [row for row in rows if row.section == f"{kind.name}s"]
    assert row.fields["target_id"] == str(POST.id)
    erase_now(ME)
    run_until_erased(reacted, ME)
    rows, _ = export.read_page(ME, None, 1_000)
    assert [row for row in rows if row.section == f"{kind.name}s"] == []
    assert mysql.fetch_all("SELECT total FROM counter WHERE kind = %s", (kind.name,)) == [(1,)]
    assert audit().clean


@each_kind
def test_only_kinds_that_notify_do(kind: Kind, reacted: World) -> None:
    groups = mysql.fetch_all("SELECT kind FROM notification_group WHERE user_id = %s", (ADA,))
    assert groups == ([(kind.name,)] if kind.notifies else [])
