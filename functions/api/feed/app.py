"""The feed: what those whom I follow posted."""

from __future__ import annotations

from typing import Any

from plaza.content import Place
from plaza.content.contract import Post
from plaza.feed import reading
from plaza.infra.errors import BadInput
from plaza.infra.http import (
    BEARER,
    Cursor,
    Limit,
    Page,
    answers,
    api,
    caller,
    pack_cursor,
    problems,
    serve,
    unpack_cursor,
)

app = api()

_FEED: dict[str, Any] = {
    "tags": ["feed"],
    "security": [BEARER],
    "responses": answers(200, Page[Post], "a page") | problems(400, 401),
}


@app.get("/feed", **_FEED)
def read_feed(limit: Limit = 20, cursor: Cursor = None) -> Page[Post]:
    """What those whom I follow posted, newest first."""
    user_id = caller(app)
    page = reading.read_feed(user_id, _place(cursor), limit)
    return Page(
        items=[Post.of(whole, user_id) for whole in page.items],
        next=pack_cursor(*page.last) if page.last else None,
    )


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request for the feed."""
    return serve(app, event, context)


def _place(cursor: str | None) -> Place | None:
    if cursor is None:
        return None
    place = Place(*unpack_cursor(cursor, (int, int)))
    if not place.possible:
        raise BadInput("cursor", "is not one that we gave")
    return place
