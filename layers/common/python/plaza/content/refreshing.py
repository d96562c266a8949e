"""Telling Redis what MySQL has of texts and of what is counted about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plaza import counters, reactions, targets, users
from plaza.content import mysql_content, publishing, redis_content
from plaza.content.content import Stored
from plaza.infra.observability import record
from plaza.reactions import Target
from plaza.targets import Refresh


def refresh(refreshes: Sequence[Refresh]) -> None:
    """Make the projections of all of ``refreshes`` again; what isn't there is passed over.

    Safe to repeat, in any order. As many statements and round trips for a hundred as for ten.
    Raises MysqlDown, RedisDown.
    """
    wanted = set(refreshes)
    stored = mysql_content.read({Target(*one) for one in wanted if one.type != "user"})
    tell(stored.values())
    publishing.publish_missing(
        [text.id for text, deleted in stored.values() if text.type == "post" and not deleted]
    )
    users.refresh_cards(sorted(one.id for one in wanted if one.type == "user"))
    record("projections_refreshed", {"refreshed": len(refreshes)}, found=len(stored))


def tell(stored: Iterable[Stored]) -> None:
    """Tell Redis about texts that were just made or deleted, gates first.

    Two statements and six round trips to Redis at most. Raises RedisDown, MysqlDown.
    """
    known = list(stored)
    live = [text for text, deleted in known if not deleted]
    if deleted := [text.target for text, deleted in known if deleted]:
        reactions.tombstone(deleted)
    redis_content.keep_texts(known)
    targets.mark_all_made([text.target for text in live])
    counters.project_again(
        sorted({text.author_id for text, _ in known if text.type == "post"}),
        sorted({text.parent_id for text, _ in known if text.type == "comment" and text.parent_id}),
    )
