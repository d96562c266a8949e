"""The feed on the deployed stack: follow, post, read, unfollow, delete."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from plaza_client import models
from tests.e2e.client import Client, problem, wait_until

POST: models.PostRequest = {
    "kind": "note",
    "title": "Noodles",
    "body": "Ask for the thick ones.",
    "images": [],
}
IDS = count(5_800_001)


def write(client: Client) -> str:
    return client.plaza.posts.create(POST)["id"]


def feed(client: Client) -> list[str]:
    """Return the ids of all pages of a feed."""
    return [item["id"] for item in client.plaza.feed.list_posts(limit=2)]


def test_a_feed_has_the_posts_of_followed_authors_until_deletion_or_unfollow(
    make_users: Callable[[int], list[tuple[int, Client]]],
) -> None:
    (ada_id, ada), (bo_id, bo), (_, me) = make_users(3)
    plaza = me.plaza
    assert feed(me) == []
    before = write(ada)
    plaza.users.follow(str(ada_id))
    # The first start of some functions is slow on a busy machine.
    wait_until("older posts of ada are in the feed", lambda: feed(me) == [before], 120)
    first, second = write(ada), write(ada)
    wait_until("new posts of ada are in the feed", lambda: feed(me) == [second, first, before])
    plaza.users.follow(str(bo_id))
    third = write(bo)
    wait_until("the post of bo is first", lambda: feed(me) == [third, second, first, before])

    [item] = plaza.feed.list_posts(limit=1).first()["items"]
    assert item["author"]["id"] == str(bo_id)
    assert (item["likes"], item["mine"]) == (0, {"liked": False, "collected": False})
    plaza.posts.like(third)
    [item] = plaza.feed.list_posts(limit=1).first()["items"]
    assert (item["likes"], item["mine"]) == (1, {"liked": True, "collected": False})

    ada.plaza.posts.delete(second)
    wait_until("the deleted post is not in the feed", lambda: feed(me) == [third, first, before])
    plaza.users.unfollow(str(ada_id))
    assert feed(me) == [third], "at once"


def test_a_feed_request_without_session_or_with_invalid_query_is_refused(
    anonymous: Client, make_users: Callable[[int], list[tuple[int, Client]]]
) -> None:
    [(_, me)] = make_users(1)
    refused = anonymous("GET", "/feed")
    assert (refused.status, problem(refused)) == (401, "unauthenticated")
    for query in ("limit=0", "limit=101", "cursor=abc"):
        refused = me("GET", f"/feed?{query}")
        assert (refused.status, problem(refused)) == (400, "invalid-request")
