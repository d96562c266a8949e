"""Descriptions of texts, for notifications."""

from __future__ import annotations

from collections.abc import Collection

from plaza.core.reactions import Target
from plaza.core.targets import Description
from plaza.core.targets.types import TypedId
from plaza.social.content import mysql_store


def describe(targets: Collection[TypedId]) -> dict[TypedId, Description]:
    """Return the title or the body of each of ``targets`` that is not deleted. One statement.
    Raises MysqlDown."""
    return {
        target: Description(str(target.id), text.title or text.body)
        for target, (text, deleted) in mysql_store.read({Target(*of) for of in targets}).items()
        if not deleted
    }
