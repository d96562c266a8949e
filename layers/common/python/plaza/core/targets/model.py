"""The existence and the visibility of targets. No I/O."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from plaza.infra.runtime.errors import Gone


class TargetHidden(Gone):
    """A moderator hid the post, comment or review, or the account of its author is closed. Only its
    author may read it and react to it."""

    slug = "hidden"
    title = "Hidden"
    example = "Post 1 is hidden."


class Existence(Enum):
    """Whether a target can be reacted to; the values are stored in the marker in Redis."""

    LIVE = "live"
    MISSING = "missing"
    DELETED = "deleted"


class Mark(NamedTuple):
    """What the marker of a target stores: its existence, and the id of a live target of the app,
    empty for others."""

    existence: Existence
    external_id: str = ""

    def __str__(self) -> str:
        return f"{self.existence.value}:{self.external_id}".rstrip(":")


class Description(NamedTuple):
    """What a target is, to its owner: its id as views have it; of a text its title or body; of a
    target of the app where it is shown."""

    id: str
    text: str | None = None
    url: str | None = None


class Visibility(NamedTuple):
    """Whether a text is hidden, at a ``version`` of it: ``hidden_author_id`` is its author, None
    when the text is visible."""

    version: int
    hidden_author_id: int | None
