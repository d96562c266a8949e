"""The index by_target of ``reaction``, by which versions without sorted lists read all lists.

A version that forces it fails without it, so an operator drops it when none of them can run again
(docs/decisions/0072-sort-reactions-to-large-targets-only.md).
"""

from __future__ import annotations

from plaza.infra.mysql import migrations, mysql
from plaza.infra.runtime.observability import record
from plaza.reactions.model import IndexNeeded

MIN_AGE_S = 3_600
_MIGRATION = "0010_sorted_reactions"


def drop_index() -> bool:
    """Drop the index; return whether it existed. All sorted lists are complete.

    Takes no time for each row. Raises IndexNeeded less than an hour after the migration, while its
    deploy may be rolled back; MysqlDown.
    """
    if not _exists():
        return False
    age_s = migrations.read_age_s(_MIGRATION)
    if age_s is None or age_s < MIN_AGE_S:
        raise IndexNeeded(
            "the version before may still run, and reads by_target: try again"
            f" {MIN_AGE_S // 60} minutes after the deploy that created sorted_reaction"
        )
    mysql.write("DROP INDEX by_target ON reaction")
    record("index_dropped", index="by_target")
    return True


def _exists() -> bool:
    [(columns,)] = mysql.fetch_all(
        """
        SELECT COUNT(*)
        FROM information_schema.statistics
        WHERE table_schema = DATABASE()
          AND table_name = 'reaction'
          AND index_name = 'by_target'
        """
    )
    return bool(columns)
