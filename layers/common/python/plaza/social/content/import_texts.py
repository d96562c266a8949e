"""Store posts and comments of another system, with its ids and times. They notify no user, are no
outgoing events and are pushed to no feed; the rebuild of an inbox finds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from plaza.core import counters
from plaza.core.reactions import Target
from plaza.infra.mysql.mysql import Cursor
from plaza.social.content import mysql_imports, mysql_store, refresh
from plaza.social.content.mysql_imports import ImportedText


def import_texts(texts: Sequence[ImportedText]) -> dict[int, str]:
    """Store texts of one type that do not exist, and count them once; return id -> why one was left
    out: its post does not exist, or its id has another author or post. One transaction of five
    statements, then as ``refresh.project_texts``. Safe to repeat. Raises MysqlDown, RedisDown:
    repeat it then."""
    refused = counters.run_in_transaction(lambda cursor: _store(cursor, texts))
    stored = [Target(t.draft.type, t.id) for t in texts if t.id not in refused]
    refresh.project_texts(mysql_store.read(stored).values())
    return refused


def _position(text: ImportedText) -> tuple[int, int | None]:
    return text.draft.author_id, text.draft.parent_id


def _store(cursor: Cursor, texts: Sequence[ImportedText]) -> dict[int, str]:
    refused: dict[int, str] = {}
    if texts[0].draft.type == "comment":
        live = mysql_imports.lock_posts(cursor, {t.draft.parent_id or 0 for t in texts})
        refused = {
            text.id: "its post does not exist" for text in texts if text.draft.parent_id not in live
        }
    existing = mysql_imports.find_existing(cursor, texts[0].draft.type, [t.id for t in texts])
    refused |= {
        text.id: f"its id is the one of another {text.draft.type}"
        for text in texts
        if existing.get(text.id, _position(text)) != _position(text)
    }
    new = [
        text
        for text in sorted(texts, key=lambda text: text.id)
        if text.id not in refused and text.id not in existing
    ]
    if not new:
        return refused
    mysql_imports.insert(cursor, new)
    if new[0].draft.type == "post":
        of_authors = Counter(text.draft.author_id for text in new)
        counters.add_to_users(
            cursor, {(author_id,): {"posts_total": n} for author_id, n in of_authors.items()}
        )
    else:
        of_posts = Counter(text.draft.parent_id or 0 for text in new)
        deltas = {
            ("post", post_id, counters.COMMENT): counters.CounterDelta(n)
            for post_id, n in of_posts.items()
        }
        counters.lock_targets(cursor, sorted(deltas))
        counters.add_to_targets(cursor, deltas)
    return refused
