"""What people write: posts, comments on posts, reviews of shops. No I/O.

A text never changes: it is made, and it may be deleted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from plaza.infra.errors import Forbidden, Gone, NotFound, Unavailable
from plaza.infra.networks import network_of
from plaza.reactions import Target
from plaza.reactions.model import Count
from plaza.users import Card

# Lambda answers with 6 MB at most. In there each backslash of a body stands twice.
MAX_PAGE_BYTES = 2_500_000
LIVE, DELETED = 1, 2  # the versions of a text
MAX_CREATED_US = (
    datetime(9999, 12, 31, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
) // timedelta(microseconds=1)


class ContentMissing(NotFound):
    """There is no such post, comment or review, or nothing that it could be written about."""


class ContentDeleted(Gone):
    """The post, comment or review was deleted."""


class ContentListsBusy(Unavailable):
    """This process has used up its budget of pages that it may read from MySQL."""


class NotAuthor(Forbidden):
    """Somebody else wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What somebody wants to write. ``parent_id`` is the post of a comment, the shop of a review;
    ``kind``, ``title`` and ``images`` are of posts, ``score`` (1 to 5) is of reviews."""

    type: str
    author_id: int
    body: str
    parent_id: int | None = None
    kind: str | None = None
    title: str | None = None
    images: tuple[str, ...] = ()
    score: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Draft):
    """What was written. ``created_us``: microseconds since 1970, by the database's clock."""

    id: int
    created_us: int

    @property
    def target(self) -> Target:
        """What it is to reactions."""
        return Target(self.type, self.id)

    def to_json(self) -> str:
        """As it stands in Redis."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, encoded: str) -> Text:
        """What ``to_json`` wrote."""
        fields = json.loads(encoded)
        return cls(**fields | {"images": tuple(fields["images"])})


class StoredText(NamedTuple):
    """A text as MySQL has it."""

    text: Text
    deleted: bool


class ListPosition(NamedTuple):
    """Where in a list a text stands: by time, and by id among those of one time."""

    created_us: int
    id: int

    @property
    def is_valid(self) -> bool:
        """False for a time that no database would keep."""
        return 0 <= self.created_us <= MAX_CREATED_US and self.id > 0


@dataclass(frozen=True, slots=True)
class ContentView:
    """A text with everything that is shown of it. ``mine`` of the counts is about who asks.

    ``author`` is None for an id without a user; ``collects``, ``comments`` and ``viewers`` are of
    posts; ``viewers`` is None and ``exact`` false while Redis is away.
    """

    text: Text
    author: Card | None
    likes: Count
    collects: Count
    comments: int
    viewers: int | None
    exact: bool


class ContentPage(NamedTuple):
    """A page, and where the next begins (None: the end)."""

    items: list[ContentView]
    last: ListPosition | None


def hash_viewer(actor_id: int | None, source_ip: str) -> str:
    """A name for a viewer of a post: a user, or all callers of a network without a session.

    Nothing that a client can choose, such as a header, makes another viewer. Nobody can tell a
    person from it.
    """
    seen = f"network:{network_of(source_ip)}" if actor_id is None else f"user:{actor_id}"
    return hashlib.sha256(seen.encode()).hexdigest()[:16]


def count_fitting(texts: Sequence[Text]) -> int:
    """How many of ``texts``, from the first on, one answer may hold: one at least, if there are."""
    size = 0
    for count, text in enumerate(texts):
        size += len(text.to_json())
        if count and size > MAX_PAGE_BYTES:
            return count
    return len(texts)


def paginate(texts: Sequence[Text], limit: int) -> tuple[list[Text], ListPosition | None]:
    """A page of ``texts``, and where the next begins (None: the end).

    At most ``limit``, and no more than an answer may hold: long texts make short pages.
    """
    page = list(texts[: count_fitting(texts[:limit])])
    more = len(texts) > len(page)
    return page, ListPosition(page[-1].created_us, page[-1].id) if more else None
