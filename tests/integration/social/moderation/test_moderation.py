"""Reports and their queue, and hidden content in lists, feeds, rankings and recommendations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from plaza.core.reactions import LIKE, Target, hydration, react, redis_hydration
from plaza.core.targets import Visibility
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.people.follows import follow
from plaza.social.content import commands
from plaza.social.recommendations import like_roll_up, post_rankings, recommend
from plaza.social.recommendations.model import RecommendedCursor
from tests.support.content_api import (
    SHOP,
    Reply,
    add_shop,
    add_users,
    as_another_process,
    ask,
    comment,
    post,
    review,
)
from tests.support.failures import failing
from tests.support.keyspace import find_keys
from tests.support.plaza import World

ADMIN, ADA, BOB, ME = 1, 8, 9, 7
FOLDER = "api/moderation"


@pytest.fixture(autouse=True)
def world(plaza: World) -> None:
    add_users(ME, ADA, BOB)
    add_shop()


def report(target_type: str, target_id: str, user: int = ADA, **options: Any) -> Reply:
    body = {"target": {"type": target_type, "id": target_id}, "reason": "spam"}
    return ask("POST", "/reports", body, user=user, folder=FOLDER, **options)


def admin(method: str, path: str, body: Any = None) -> Reply:
    return ask(method, path, body, user=ADMIN, role="admin", folder=FOLDER)


def queue() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = admin("GET", "/ops/reports").body["items"]
    return items


# ---------------------------------------------------------------- reports


def test_a_report_is_read_by_its_reporter_only() -> None:
    post_id = post()
    created = report("post", post_id)
    assert (created.status, created.headers["location"]) == (201, f"/reports/{created.body['id']}")
    assert created.body["target"] == {"type": "post", "id": post_id}
    path = created.headers["location"]
    assert ask("GET", path, user=ADA, folder=FOLDER).body == created.body
    assert ask("GET", path, user=ME, folder=FOLDER).status == 404


def test_a_reason_of_another_version_is_listed_as_other() -> None:
    """Given a reason that the version after has, and a rollback."""
    created = report("post", post())
    mysql.write("UPDATE report SET reason = 'gambling'")
    assert (
        ask("GET", created.headers["location"], user=ADA, folder=FOLDER).body["reason"] == "other"
    )
    assert [item["reason"] for item in queue()] == ["other"]


def test_a_reporter_has_one_open_report_of_a_target() -> None:
    post_id = post()
    first = report("post", post_id)
    assert report("post", post_id).slug == "already-reported"
    assert report("post", post_id, user=9).status == 201
    assert report("user", str(ME)).status == 201
    path = f"/ops/reports/{first.body['id']}/outcome"
    assert admin("PUT", path, {"outcome": "dismissed"}).body["outcome"] == "dismissed"
    assert report("post", post_id).status == 201, "the first one is resolved"


def test_a_key_creates_one_report() -> None:
    post_id = post()
    first = report("post", post_id, key="once")
    assert report("post", post_id, key="once").body == first.body
    assert report("post", post(), key="once").slug == "idempotency-key-reused"
    assert mysql.fetch_all("SELECT COUNT(*) FROM report") == [(1,)]


def test_what_does_not_exist_cannot_be_reported() -> None:
    assert report("post", "4711").status == 404
    post_id = post()
    ask("DELETE", f"/posts/{post_id}")
    as_another_process()
    assert report("post", post_id).status == 410


def test_the_queue_has_open_reports_with_their_content_oldest_first() -> None:
    post_id = post()
    of_post = report("post", post_id).body
    of_user = report("user", str(ME)).body
    page = admin("GET", "/ops/reports?limit=1").body
    assert page["items"] == [
        of_post
        | {
            "reporter_id": str(ADA),
            "content": {
                "author_id": str(ME),
                "title": "Noodles",
                "body": "Ask for the thick ones.",
                "hidden": False,
                "deleted": False,
            },
            "url": None,
        }
    ]
    rest = admin("GET", f"/ops/reports?cursor={page['next']}").body
    assert [(item["id"], item["content"]) for item in rest["items"]] == [(of_user["id"], None)]
    admin("PUT", f"/ops/posts/{post_id}/hidden")
    assert queue()[0]["content"]["hidden"] is True
    admin("PUT", f"/ops/reports/{of_post['id']}/outcome", {"outcome": "upheld"})
    assert [item["id"] for item in queue()] == [of_user["id"]]


def test_an_outcome_is_final_and_its_repeat_is_not_an_error() -> None:
    path = f"/ops/reports/{report('post', post()).body['id']}/outcome"
    first = admin("PUT", path, {"outcome": "upheld"})
    assert admin("PUT", path, {"outcome": "upheld"}).body == first.body
    assert admin("PUT", path, {"outcome": "dismissed"}).slug == "report-resolved"
    assert admin("PUT", "/ops/reports/4711/outcome", {"outcome": "upheld"}).status == 404


# ---------------------------------------------------------------- hidden


def test_moderators_hide_content_and_show_it_again() -> None:
    of = post()
    for kind, content_id in (("post", of), ("comment", comment(of, ME)), ("review", review())):
        path = f"/ops/{kind}s/{content_id}/hidden"
        for _ in range(2):
            assert admin("PUT", path).body == {"hidden": True}
        as_another_process()
        assert ask("GET", f"/{kind}s/{content_id}", user=ADA).slug == "hidden"
        assert ask("GET", f"/{kind}s/{content_id}", user=ME).body["hidden"] is True
        for _ in range(2):
            assert admin("DELETE", path).body == {"hidden": False}
        as_another_process()
        assert ask("GET", f"/{kind}s/{content_id}", user=ADA).body["hidden"] is False
    assert admin("PUT", "/ops/posts/4711/hidden").status == 404


def react_to(kind: str, content_id: str, user: int, method: str = "PUT") -> tuple[int, str]:
    """Like, or unlike, and return the status and the slug of the problem."""
    path = f"/{kind}s/{content_id}/likes/me"
    answer = ask(method, path, user=user, folder="api/reactions")
    return answer.status, answer.slug if answer.status >= 400 else ""


@pytest.mark.parametrize("is_loaded", [True, False], ids=["loaded", "not loaded"])
@pytest.mark.parametrize("kind", ["post", "comment", "review"])
def test_a_hidden_text_takes_reactions_of_its_author_only(
    plaza: World, kind: str, is_loaded: bool
) -> None:
    content_id = {"post": post, "comment": lambda: comment(post(), ME), "review": review}[kind]()
    assert react_to(kind, content_id, ADA) == (200, "")
    plaza.queues.drain()
    admin("PUT", f"/ops/{kind}s/{content_id}/hidden")
    if not is_loaded:
        redis.execute("FLUSHALL")
    as_another_process()
    for _ in range(2):
        assert react_to(kind, content_id, BOB) == (410, "hidden")
    assert react_to(kind, content_id, ADA, "DELETE") == (200, "")
    assert react_to(kind, content_id, ADA) == (410, "hidden")
    assert react_to(kind, content_id, ME) == (200, "")
    assert ask("GET", f"/{kind}s/{content_id}/likers", user=BOB).slug == "hidden"
    assert ask("GET", f"/{kind}s/{content_id}/likers", user=None).slug == "hidden"
    plaza.queues.drain()
    likers = ask("GET", f"/{kind}s/{content_id}/likers", user=ME).body["items"]
    assert [liker["user"]["id"] for liker in likers] == [str(ME)]
    admin("DELETE", f"/ops/{kind}s/{content_id}/hidden")
    as_another_process()
    assert react_to(kind, content_id, BOB) == (200, "")
    assert ask("GET", f"/{kind}s/{content_id}/likers", user=BOB).status == 200


def test_a_hidden_post_takes_no_collects_and_comments_of_strangers(plaza: World) -> None:
    post_id = post()
    admin("PUT", f"/ops/posts/{post_id}/hidden")
    as_another_process()
    assert (
        ask("PUT", f"/posts/{post_id}/collects/me", user=ADA, folder="api/reactions").slug
        == "hidden"
    )
    assert ask("POST", f"/posts/{post_id}/comments", {"body": "Hi"}, user=ADA).slug == "hidden"
    assert ask("POST", f"/posts/{post_id}/comments", {"body": "Hi"}, user=ME).status == 201


def test_a_post_that_was_shown_without_a_mark_takes_reactions(plaza: World) -> None:
    """Given a process that was killed after it showed a text in MySQL."""
    post_id = post()
    assert react_to("post", post_id, ADA) == (200, "")
    admin("PUT", f"/ops/posts/{post_id}/hidden")
    assert react_to("post", post_id, BOB) == (410, "hidden")
    mysql.write("UPDATE content SET hidden_at = NULL WHERE content_id = %s", (post_id,))
    assert react_to("post", post_id, BOB) == (200, "")


def test_a_provisional_like_of_a_hidden_post_is_refused(
    plaza: World, redis_away: Callable[[], AbstractContextManager[None]]
) -> None:
    post_id = post()
    admin("PUT", f"/ops/posts/{post_id}/hidden")
    as_another_process()
    with redis_away():
        assert react_to("post", post_id, ADA) == (410, "hidden")
        assert react_to("post", post_id, ADA, "DELETE") == (202, "")
        as_another_process()
        assert react_to("post", post_id, ME) == (202, "")


@pytest.mark.parametrize("order", ["hidden, shown", "shown, hidden"])
def test_the_newer_visibility_of_a_loaded_post_stays(plaza: World, order: str) -> None:
    """Given the projection of a hiding that comes after the projection of the showing."""
    post_id = post()
    target = Target("post", int(post_id))
    react_to("post", post_id, ADA)
    marks = {"hidden": Visibility(2, ME), "shown": Visibility(3, None)}
    for name in order.split(", "):
        hydration.set_visibility({target: marks[name]})
    assert react_to("post", post_id, BOB) == (200, "")


def test_a_post_that_is_hidden_while_it_is_loaded_is_marked(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    post_id = post()
    hydrate_all = redis_hydration.hydrate_all

    def hide_first(result: Any) -> list[str]:
        monkeypatch.setattr(redis_hydration, "hydrate_all", hydrate_all)
        admin("PUT", f"/ops/posts/{post_id}/hidden")
        return hydrate_all(result)

    monkeypatch.setattr(redis_hydration, "hydrate_all", hide_first)
    assert react_to("post", post_id, BOB) == (410, "hidden")


def test_a_hidden_post_can_be_deleted(plaza: World) -> None:
    post_id = post()
    react_to("post", post_id, ADA)
    admin("PUT", f"/ops/posts/{post_id}/hidden")
    assert ask("DELETE", f"/posts/{post_id}", user=ME).status == 204
    as_another_process()
    assert react_to("post", post_id, ADA) == (410, "gone")


def test_a_hidden_post_leaves_feeds_and_rankings_and_returns(plaza: World) -> None:
    follow(ME, ADA)
    posts = [post(), post()]
    for post_id in posts:
        react.react(LIKE, Target("post", int(post_id)), 9, True)
    plaza.queues.drain()
    like_roll_up.roll_up_likes()
    post_rankings.refresh_rankings()
    paths = [("/feed", "api/feed")] + [
        (f"/posts/ranking?window={window}", "api/recommendations") for window in ("all", "day")
    ]

    def listed() -> list[list[str]]:
        as_another_process()
        return [
            [item["id"] for item in ask("GET", path, user=ADA, folder=folder).body["items"]]
            for path, folder in paths
        ]

    listed()
    plaza.queues.drain()
    assert listed() == [posts[::-1]] * 3
    admin("PUT", f"/ops/posts/{posts[1]}/hidden")
    assert listed() == [posts[:1]] * 3
    post_rankings.refresh_rankings()
    plaza.queues.drain()
    assert listed() == [posts[:1]] * 3
    admin("DELETE", f"/ops/posts/{posts[1]}/hidden")
    assert listed() == [posts[::-1]] * 3
    assert ask("GET", f"/posts/{posts[1]}").body["likes"] == 1


def test_a_hidden_review_leaves_lists_and_recommendations(plaza: World) -> None:
    reviews = [review(), review(ADA)]
    path = f"/shops/{SHOP}/reviews"
    recommend.recommend(SHOP, RecommendedCursor(0, 0), 20, None)
    plaza.queues.drain()
    admin("PUT", f"/ops/reviews/{reviews[0]}/hidden")
    as_another_process()
    for url, folder in ((path, "api/content"), (f"{path}/recommended", "api/recommendations")):
        items = ask("GET", url, user=ADA, folder=folder).body["items"]
        assert [item["id"] for item in items] == reviews[1:]


def test_the_refresh_repairs_what_hiding_left_in_redis(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a process that ended after its commit, and a text that Redis has cached."""
    post_id = post()
    plaza.queues.drain()

    with monkeypatch.context() as patch:
        patch.setattr(commands, "_project", failing(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            commands.hide(Target("post", int(post_id)), ADMIN)
    as_another_process()
    assert find_keys("*:text")
    assert ask("GET", f"/posts/{post_id}", user=ADA).status == 200
    plaza.queues.drain()
    as_another_process()
    assert ask("GET", f"/posts/{post_id}", user=ADA).slug == "hidden"
    redis.execute("FLUSHALL")
    assert ask("GET", f"/posts/{post_id}", user=ADA).slug == "hidden"


def test_a_report_of_oneself_or_of_an_own_text_is_refused() -> None:
    post_id = post()
    texts = {"post": post_id, "comment": comment(post_id, 7), "review": review()}
    for kind, target in {"user": "7", **texts}.items():
        body = {"reason": "spam", "target": {"type": kind, "id": target}}
        refused = ask("POST", "/reports", body, user=7, folder="api/moderation")
        assert (refused.status, refused.body["errors"][0]["code"]) == (400, "not-listed"), kind
