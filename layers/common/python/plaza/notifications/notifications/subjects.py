"""The subjects of notifications: what they are about, as it is now."""

from __future__ import annotations

from collections.abc import Iterable

from plaza.core.targets import descriptions
from plaza.core.targets.types import TypedId
from plaza.infra.mysql.participants import GroupKey
from plaza.notifications.notifications.listed import MAX_TEXT, GroupSubject


def read_subjects(keys: Iterable[GroupKey]) -> dict[TypedId, GroupSubject]:
    """Return the subjects of groups, without those that are deleted. A statement for texts, and one
    for targets of the app, if there are some. Raises MysqlDown."""
    described = descriptions.describe_all(key.subject for key in keys)
    return {
        target: GroupSubject(of.id, of.text and of.text[:MAX_TEXT], of.url)
        for target, of in described.items()
    }
