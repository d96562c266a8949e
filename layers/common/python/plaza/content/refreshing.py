"""Telling Redis what MySQL has of texts and of what is counted about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pymysql.cursors import Cursor

from plaza import counters
from plaza.content import mysql_content, publishing, redis_content
from plaza.content.content import Stored
from plaza.infra import mysql
from plaza.infra.observability import record
from plaza.reactions import Target, reacting
from plaza.targets import marking
from plaza.targets.queues import REFRESHES, Refresh
from plaza.users import cards

__all__ = ["REFRESHES", "refresh", "tell"]


@REFRESHES.consumer
def refresh(refreshes: Sequence[Refresh]) -> None:
    """Make the projections of all of ``refreshes`` again; what isn't there is passed over.

    Safe to repeat, in any order. As many statements and round trips for a hundred as for ten.
    Raises MysqlDown, RedisDown.
    """
    wanted = set(refreshes)
    stored = mysql_content.read({Target(*one) for one in wanted if one.type != "user"})
    _count_put_off({t.parent_id for t, _ in stored.values() if t.type == "comment" and t.parent_id})
    tell(stored.values())
    publishing.publish_missing(
        [text.id for text, deleted in stored.values() if text.type == "post" and not deleted]
    )
    cards.refresh_cards(sorted(one.id for one in wanted if one.type == "user"))
    record("projections_refreshed", {"refreshed": len(refreshes)}, found=len(stored))


def _count_put_off(post_ids: Iterable[int]) -> None:
    """Move the counters of posts that were locked when somebody commented. Raises MysqlDown."""

    def move(cursor: Cursor, post_id: int) -> int:
        by = mysql_content.take_put_off(cursor, post_id)
        if by:
            counters.add_to_content(cursor, {("post", post_id): {"comment_total": by}})
        return by

    for post_id in mysql_content.find_put_off(post_ids):
        by = mysql.atomically(lambda cursor, post_id=post_id: move(cursor, post_id))  # type: ignore[misc]
        record("comments_counted_later", {"comments_counted_later": abs(by)}, post_id=post_id)


def tell(stored: Iterable[Stored]) -> None:
    """Tell Redis about texts that were just made or deleted, gates first.

    Two statements and seven round trips to Redis at most. Raises RedisDown, MysqlDown.
    """
    known = list(stored)
    live = [text for text, deleted in known if not deleted]
    if deleted := [text.target for text, deleted in known if deleted]:
        reacting.tombstone(deleted)
    redis_content.keep_texts(known)
    redis_content.drop_lists(text for text, _ in known)
    marking.mark_all_made([text.target for text in live])
    counters.project_again(
        sorted({text.author_id for text, _ in known if text.type == "post"}),
        sorted({text.parent_id for text, _ in known if text.type == "comment" and text.parent_id}),
    )
