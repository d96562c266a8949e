"""The post of the canary (``operate.accounts.canary``). It is hidden: it takes the reactions of its
author, and no list, feed or ranking shows it to others."""

from __future__ import annotations

from plaza.core.targets import Existence, lookup
from plaza.social.content import commands
from plaza.social.content.model import Draft


def make_post(author_id: int, current_id: int) -> int:
    """Return ``current_id``, or the id of a new post unless that post is live. Raises MysqlDown,
    RedisDown."""
    if current_id and lookup.find_in_mysql("post", current_id) is Existence.LIVE:
        return current_id
    return commands.create_hidden(
        Draft(
            type="post",
            author_id=author_id,
            kind="note",
            title="Canary",
            body="Read by a monitor.",
        )
    )
