"""The texts that notifications are about."""

from __future__ import annotations

from collections.abc import Iterable

from plaza.content import queries
from plaza.notifications.model import MAX_TEXT
from plaza.reactions import Target
from plaza.unread import GroupKey

USER = "user"


def read_texts(keys: Iterable[GroupKey]) -> dict[tuple[str, int], str]:
    """Return text -> its beginning, of texts that are not deleted. At most one statement. Raises
    MysqlDown."""
    targets = {Target(*key.subject) for key in keys if key.subject_type != USER}
    stored = queries.read_all_stored(targets) if targets else {}
    return {
        target: (text.title or text.body)[:MAX_TEXT]
        for target, (text, deleted) in stored.items()
        if not deleted
    }
