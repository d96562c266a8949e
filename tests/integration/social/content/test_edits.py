"""Edits of posts: who may, what is accepted, and that all readers follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plaza.core.reactions import Target
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.social.content import commands, mysql_store, refresh
from plaza.social.content.model import ContentDeleted
from tests.support.content_api import POST, as_another_process, ask, comment, create, post
from tests.support.plaza import World

pytestmark = pytest.mark.usefixtures("world")


def edit(post_id: str, user: int | None = 7, **changes: Any) -> Any:
    return ask("PATCH", f"/posts/{post_id}", changes, user=user)


def test_an_edit_changes_only_the_fields_that_are_sent() -> None:
    post_id = create("/posts", POST | {"images": ["https://pics.example/a.png"]})
    before = ask("GET", f"/posts/{post_id}").body
    edited = edit(post_id, title="Soba", images=[])
    assert edited.status == 200
    assert edited.body.pop("edited_at") > before["created_at"]
    expected = before | {"title": "Soba", "images": []}
    assert edited.body == {k: v for k, v in expected.items() if k not in ("likers", "edited_at")}
    for forget in (as_another_process, lambda: redis.execute("FLUSHALL")):
        forget()
        as_another_process()
        read = ask("GET", f"/posts/{post_id}").body
        assert (read["title"], read["body"], read["images"]) == ("Soba", POST["body"], [])


def test_a_repeated_edit_changes_nothing() -> None:
    post_id = post()
    first = edit(post_id, title="Soba")
    assert edit(post_id, title="Soba").body == first.body


def test_lists_feeds_and_reads_by_id_have_the_edited_post(world: World) -> None:
    post_id = post()
    paths = ["/users/7/posts", f"/posts?ids={post_id}"]
    for path in paths:
        assert ask("GET", path, user=None).body["items"][0]["title"] == POST["title"]
    edit(post_id, title="Soba")
    as_another_process()
    for path in paths:
        assert ask("GET", path, user=None).body["items"][0]["title"] == "Soba"


@pytest.mark.parametrize("user", [None, 8])
def test_only_the_author_edits(user: int | None) -> None:
    post_id = post()
    assert edit(post_id, user=user, title="Mine").status == (401 if user is None else 403)
    assert ask("GET", f"/posts/{post_id}").body["title"] == POST["title"]


def test_what_cannot_be_created_cannot_be_edited() -> None:
    post_id = post()
    bad: list[dict[str, Any]] = [
        {},
        {"title": ""},
        {"title": "a\nb"},
        {"title": None},
        {"body": " "},
        {"kind": "blog"},
        {"images": ["http://a.example"]},
        {"images": None},
    ]
    for changes in bad:
        assert edit(post_id, **changes).slug == "invalid-request", changes
    assert edit("4711", title="x").status == 404
    ask("DELETE", f"/posts/{post_id}")
    assert edit(post_id, title="x").status == 410


def test_a_reader_with_an_older_snapshot_does_not_undo_an_edit() -> None:
    post_id = post()
    target = Target("post", int(post_id))
    older = mysql_store.read([target])
    edit(post_id, title="Soba")
    refresh.project_texts(older.values())
    as_another_process()
    assert ask("GET", f"/posts/{post_id}").body["title"] == "Soba"


def test_the_refresh_repairs_an_edit_whose_projection_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    post_id = post()
    ask("GET", f"/posts/{post_id}")
    world.queues.drain()
    with monkeypatch.context() as patch:
        patch.setattr(refresh, "project_texts", lambda _: (_ for _ in ()).throw(RedisDown("away")))
        assert edit(post_id, title="Soba").status == 200
    as_another_process()
    assert ask("GET", f"/posts/{post_id}").body["title"] == POST["title"], "still cached"
    world.queues.drain()
    as_another_process()
    assert ask("GET", f"/posts/{post_id}").body["title"] == "Soba"


def before_the_lock(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Run ``work``, once, between the check of the author and the lock."""
    lock = mysql_store.lock

    def work_first(*args: Any) -> Any:
        monkeypatch.setattr(mysql_store, "lock", lock)
        work()
        return lock(*args)

    monkeypatch.setattr(mysql_store, "lock", work_first)


def test_an_edit_after_the_deletion_does_not_bring_the_post_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    post_id = post()
    before_the_lock(monkeypatch, lambda: commands.delete(Target("post", int(post_id)), 7))
    assert edit(post_id, title="Soba").status == 410
    as_another_process()
    assert ask("GET", f"/posts/{post_id}").status == 410


def test_concurrent_edits_of_different_fields_are_both_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    post_id = post()
    before_the_lock(monkeypatch, lambda: commands.edit(int(post_id), 7, {"body": "Udon"}))
    assert edit(post_id, title="Soba").status == 200
    as_another_process()
    read = ask("GET", f"/posts/{post_id}").body
    assert (read["title"], read["body"]) == ("Soba", "Udon")
    assert mysql.fetch_all("SELECT version FROM content") == [(3,)]


# ---------------------------------------------------------------- hidden


def hide(target_type: str, target_id: str) -> None:
    commands.hide(Target(target_type, int(target_id)), 1)
    as_another_process()


def test_a_hidden_post_is_for_its_author_only() -> None:
    post_id = post()
    hide("post", post_id)
    for user in (8, None):
        for path in (f"/posts/{post_id}", f"/posts/{post_id}/comments"):
            refused = ask("GET", path, user=user)
            assert (refused.status, refused.slug) == (410, "hidden")
        for path in ("/users/7/posts", f"/posts?ids={post_id}"):
            assert ask("GET", path, user=user).body["items"] == []
    refused = ask("POST", f"/posts/{post_id}/comments", {"body": "Why?"}, user=8)
    assert (refused.status, refused.slug) == (410, "hidden")
    own = ask("GET", f"/posts/{post_id}", user=7)
    assert (own.status, own.body["hidden"]) == (200, True)
    assert [item["hidden"] for item in ask("GET", "/users/7/posts").body["items"]] == [True]
    assert mysql.fetch_all("SELECT posts_total FROM user_counter WHERE user_id = 7") == [(1,)]


def test_a_post_that_is_shown_again_is_as_before() -> None:
    post_id = post()
    before = ask("GET", f"/posts/{post_id}", user=8).body
    hide("post", post_id)
    commands.show(Target("post", int(post_id)), 1)
    commands.show(Target("post", int(post_id)), 1)
    as_another_process()
    assert ask("GET", f"/posts/{post_id}", user=8).body == before
    assert [item["id"] for item in ask("GET", "/users/7/posts", user=8).body["items"]] == [post_id]


def test_a_hidden_comment_leaves_the_list_and_stays_counted() -> None:
    post_id = post()
    comments = [comment(post_id, 8), comment(post_id, 7)]
    hide("comment", comments[0])
    listed = ask("GET", f"/posts/{post_id}/comments", user=7).body["items"]
    assert [item["id"] for item in listed] == [comments[1]]
    assert ask("GET", f"/posts/{post_id}").body["comments"] == 2
    assert len(ask("GET", f"/posts/{post_id}/comments", user=8).body["items"]) == 2


def test_hidden_and_deleted_is_deleted() -> None:
    post_id = post()
    hide("post", post_id)
    assert ask("DELETE", f"/posts/{post_id}").status == 204
    as_another_process()
    assert ask("GET", f"/posts/{post_id}", user=8).slug == "gone"
    with pytest.raises(ContentDeleted):
        commands.hide(Target("post", int(post_id)), 1)
