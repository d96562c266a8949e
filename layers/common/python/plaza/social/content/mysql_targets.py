"""SELECTs of texts as targets of reactions; see ``TargetSelects``."""

from __future__ import annotations

from plaza.core.targets.types import TargetSelects
from plaza.infra.mysql import sql

_OF_IDS = "FROM content WHERE content_type = '{type}' AND content_id IN ({ids})"
POST = COMMENT = REVIEW = TargetSelects(
    existing=f"SELECT content_type, content_id, deleted_at IS NOT NULL, '' {_OF_IDS}",
    owners=f"SELECT '{{type}}', {sql.concat_rows('content_id', 'author_id')} {_OF_IDS}",
    hidden=f"""
        SELECT content_type, content_id, version, author_id
        {_OF_IDS}
          AND hidden_at IS NOT NULL
        """,
    rows="""
        SELECT content_type AS type, content_id AS id, author_id AS owner_id, deleted_at
        FROM content FORCE INDEX (PRIMARY)
        """,
    describe="content.descriptions:describe",
)
