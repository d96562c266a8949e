"""The feed: posts of the users whom the caller follows."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.auth.caller_identity import identify
from plaza.content import ListPosition
from plaza.content.encoder import encode_preview
from plaza.content.schemas import PostPreview
from plaza.feed import queries
from plaza.infra.http.resolver import (
    BEARER,
    PlazaResolver,
    encode_page,
    require_caller,
    unpack_cursor,
)
from plaza.infra.http.schemas import Cursor, Limit, Page, describe_problems, describe_response
from plaza.infra.runtime.errors import BadInput
from plaza.infra.runtime.observability import CORRELATION_ID, logger, metrics

app = PlazaResolver(identify)

_FEED: dict[str, Any] = {
    "tags": ["feed"],
    "security": BEARER,
    "responses": describe_response(200, Page[PostPreview], "A page of posts.")
    | describe_problems(400, 401),
}


@app.get("/feed", **_FEED)
def list_feed_posts(limit: Limit = 20, cursor: Cursor = None) -> str:
    """List the posts of the caller's feed.

    Returns previews of the posts of the users whom the caller follows, newest first. A new post
    appears within seconds, and a new follow brings the posts of the followed user.
    """
    user_id = require_caller(app)
    page = queries.read_feed(user_id, _parse_cursor(cursor), limit)
    return encode_page([encode_preview(view, user_id) for view in page.items], page.last)


@logger.inject_lambda_context(correlation_id_path=CORRELATION_ID)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request for the feed."""
    return app.resolve(event, context)


def _parse_cursor(cursor: str | None) -> ListPosition | None:
    if cursor is None:
        return None
    position = ListPosition(*unpack_cursor(cursor, (int, int)))
    if not position.is_valid:
        raise BadInput("cursor", "was not returned by this API")
    return position
