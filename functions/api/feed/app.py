"""The feed: posts of the users whom the caller follows."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.http.cursors import BadCursor, unpack_cursor
from plaza.infra.http.resolver import PlazaResolver, require_caller
from plaza.infra.http.responses import encode_page
from plaza.infra.http.routes import BEARER, BodyOf, Responses
from plaza.infra.http.schemas import Cursor, Limit, Page
from plaza.infra.runtime.observability import logger, metrics
from plaza.people.auth.caller_identity import identify
from plaza.social.content.encoder import encode_preview
from plaza.social.content.model import ListCursor
from plaza.social.content.schemas import PostPreview
from plaza.social.feed import queries

app = PlazaResolver(identify, tag="feed")


@app.get(
    "/feed",
    security=BEARER,
    responses=Responses("A page of posts. It may be shorter than `limit`."),
)
def list_feed_posts(
    limit: Limit = 20, cursor: Cursor = None
) -> Annotated[str, BodyOf(Page[PostPreview])]:
    """List the posts of the caller's feed.

    Returns previews of the posts of the users whom the caller follows, newest first. A new post
    appears within seconds, and a new follow brings the posts of the followed user.
    """
    user_id = require_caller(app)
    page = queries.read_feed(user_id, _parse_cursor(cursor), limit, app.charge)
    return encode_page([encode_preview(view, user_id) for view in page.items], page.last)


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request for the feed."""
    return app.resolve(event, context)


def _parse_cursor(cursor: str | None) -> ListCursor | None:
    if cursor is None:
        return None
    after = ListCursor(*unpack_cursor(cursor, (int, int)))
    if not after.is_valid:
        raise BadCursor
    return after
