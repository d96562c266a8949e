"""The subjects of notifications: what they are about, as it is now."""

from __future__ import annotations

from collections.abc import Iterable

from plaza.core.reactions import Target
from plaza.core.reactions.kinds import CONTENT_TYPES
from plaza.core.targets import external_targets
from plaza.core.targets.types import EXTERNAL, TypedId
from plaza.notifications.notifications.model import MAX_TEXT, GroupSubject
from plaza.notifications.unread import GroupKey
from plaza.social.content import queries

USER = "user"


def read_subjects(keys: Iterable[GroupKey]) -> dict[TypedId, GroupSubject]:
    """Return the subjects of groups, without those that are deleted. A statement for texts, and one
    for targets of the app, if there are some. Raises MysqlDown."""
    about = {key.subject for key in keys}
    texts = {Target(*subject) for subject in about if subject[0] in CONTENT_TYPES}
    stored = queries.read_all_stored(texts) if texts else {}
    external = external_targets.read_all({subject for subject in about if subject[0] in EXTERNAL})
    return (
        {subject: GroupSubject(str(subject[1])) for subject in about if subject[0] == USER}
        | {
            target: GroupSubject(str(target.id), (text.title or text.body)[:MAX_TEXT])
            for target, (text, deleted) in stored.items()
            if not deleted
        }
        | {
            target: GroupSubject(row.external_id, url=row.url)
            for target, row in external.items()
            if not row.is_deleted
        }
    )
