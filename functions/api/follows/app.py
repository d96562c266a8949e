"""Following people, and lists of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query

from plaza import follows
from plaza.follows import Person, Place
from plaza.follows.contract import Followed, Listed
from plaza.infra.http import (
    BEARER,
    Cursor,
    Id,
    Limit,
    Page,
    answers,
    api,
    caller,
    caller_if_any,
    pack_cursor,
    problems,
    read_id,
    serve,
    unpack_cursor,
)
from plaza.reactions import Outcome

Order = Annotated[Literal["earliest", "latest"], Query(description="by when they followed")]

app = api()

_OWN: dict[str, Any] = {"security": [BEARER], "tags": ["follows"]}
_DONE = answers(200, Followed, "done") | answers(
    202, Followed, "taken as a wish while Redis is away"
)
_FOLLOW = _OWN | {"responses": _DONE | problems(401, 404, 409)}
_UNFOLLOW = _OWN | {"responses": _DONE | problems(401, 404)}
_PAGE = {"responses": answers(200, Page[Listed], "a page") | problems(400, 401, 404)}
_LIST: dict[str, Any] = _PAGE | {"security": [{}, BEARER], "tags": ["follows"]}
_LIST_OWN: dict[str, Any] = _PAGE | _OWN


@app.put("/users/<user_id>/followers/me", **_FOLLOW)
def follow_user(user_id: Id) -> tuple[Followed, int]:
    """Follow a user."""
    actor_id = caller(app)
    return _followed(follows.follow(read_id(user_id, "user"), actor_id))


@app.delete("/users/<user_id>/followers/me", **_UNFOLLOW)
def unfollow_user(user_id: Id) -> tuple[Followed, int]:
    """Follow a user no more."""
    actor_id = caller(app)
    return _followed(follows.unfollow(read_id(user_id, "user"), actor_id))


@app.get("/users/<user_id>/followers", **_LIST)
def list_followers(
    user_id: Id, limit: Limit = 20, cursor: Cursor = None, order: Order = "latest"
) -> Page[Listed]:
    """Who follows a user, and since when."""
    actor_id, of_id = caller_if_any(app), read_id(user_id, "user")
    latest = order == "latest"
    return _page(follows.list_followers(of_id, actor_id, _place(cursor), latest, limit))


@app.get("/users/<user_id>/following", **_LIST)
def list_following(user_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[Listed]:
    """Whom a user follows, newest first."""
    actor_id, of_id = caller_if_any(app), read_id(user_id, "user")
    return _page(follows.list_following(of_id, actor_id, _place(cursor), limit))


@app.get("/users/<user_id>/common-follows", **_LIST_OWN)
def list_common_follows(user_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[Listed]:
    """Whom both a user and I follow, my newest first."""
    actor_id, of_id = caller(app), read_id(user_id, "user")
    return _page(follows.list_common(of_id, actor_id, _place(cursor), limit))


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about follows."""
    return serve(app, event, context)


def _followed(outcome: Outcome) -> tuple[Followed, int]:
    return Followed.of(outcome), 200 if outcome.exact else 202


def _place(cursor: str | None) -> Place | None:
    return Place(*unpack_cursor(cursor, (int, int))) if cursor else None


def _page(page: tuple[list[Person], Place | None]) -> Page[Listed]:
    people, last = page
    items = [Listed.of(person) for person in people]
    return Page(items=items, next=pack_cursor(*last) if last else None)
