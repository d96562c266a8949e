"""Posts, comments and reviews, together *texts*. Authors edit posts, moderators hide texts.
No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from json.encoder import encode_basestring_ascii
from typing import NamedTuple
from unicodedata import category

from plaza.core.reactions import Target
from plaza.core.reactions.model import Count
from plaza.infra.mysql.participants import GroupKey, Move
from plaza.infra.runtime.codec import or_deleted, record_codec
from plaza.infra.runtime.errors import (
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    Unavailable,
)
from plaza.people.users import Card

MAX_PREVIEW = 300  # characters
FIRST_LIKERS = 5  # of a post
_WORDS = re.compile(r".{200,}(?=\s)", re.DOTALL)  # a word that is longer than a third is cut
_MAX_JOINED = 32  # characters that are displayed as one
_MARKS = {"Mn", "Mc", "Me", "Cf"}  # categories of characters that continue the one before
_ZWJ = "\u200d"
# A load balancer takes 1 MB from a function, in which JSON doubles each backslash of a body.
MAX_PAGE_BYTES = 400_000
_OTHER_FIELDS_BYTES = 1_000  # of a text in a list: counts, times, the author
DELETED_VERSION = 2**53 - 1  # of a cached text: newer than all others, because deletion is final
MAX_CREATED_US = (
    datetime(9999, 12, 31, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
) // timedelta(microseconds=1)


class ContentMissing(NotFound):
    """The post, comment or review, or the user whose posts are listed, does not exist."""


class ContentDeleted(Gone):
    """The post, comment or review was deleted."""


class ContentListsBusy(Unavailable):
    """This process has used up its budget of list pages read from MySQL."""


class OrderUnusable(Conflict):
    """The order of a review is no used order of its author in the shop."""

    slug = "not-reviewable"
    title = "Order cannot be reviewed"
    example = "You have used no order 121007125353431041 in this shop."


class AlreadyReviewed(Conflict):
    """The author has a review of this order, or one of this shop without an order."""

    slug = "already-reviewed"
    title = "Already reviewed"
    example = "You have reviewed this shop. Delete that review, or name an order that you used."


class NotAuthor(Forbidden):
    """The caller is not the author."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A text before it is stored. ``parent_id`` is the post of a comment or the shop of a review;
    ``kind`` is of posts, ``title`` and ``images`` of posts and reviews; ``score`` (1 to 5) and
    ``order_id``, the used order that it is about, are of reviews."""

    type: str
    author_id: int
    body: str
    parent_id: int | None = None
    kind: str | None = None
    title: str | None = None
    images: tuple[str, ...] = ()
    score: int | None = None
    order_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Draft):
    """A stored text. ``created_us`` and ``edited_us`` (None: never edited) are microseconds since
    1970, by the clock of MySQL; ``version`` rises with each change; ``hidden``: by a
    moderator, or as long as the account of its author is closed."""

    id: int
    created_us: int
    version: int = 1
    edited_us: int | None = None
    hidden: bool = False

    @property
    def target(self) -> Target:
        return Target(self.type, self.id)

    def is_visible_to(self, reader_id: int | None) -> bool:
        """Return whether a reader may see the text: a hidden one is for its author only."""
        return not self.hidden or self.author_id == reader_id


TEXT = or_deleted(record_codec("content_texts", Text))


class StoredText(NamedTuple):
    text: Text
    deleted: bool


class ListCursor(NamedTuple):
    """The cursor of a text in a list, ordered by time, then by id."""

    created_us: int
    id: int

    @property
    def is_valid(self) -> bool:
        """Return False for a time outside of MySQL's range, or an id below 1."""
        return 0 <= self.created_us <= MAX_CREATED_US and self.id > 0


@dataclass(frozen=True, slots=True)
class ContentView:
    """A text with its author, counts and the caller's ``viewer_state``.

    ``author`` is None for an id without a user; ``counts`` has each kind of reaction that the text
    takes; ``comments`` and ``viewers`` are of posts; ``viewers`` is None and ``exact`` false while
    Redis is unavailable.
    """

    text: Text
    author: Card | None
    counts: Mapping[str, Count]
    comments: int
    viewers: int | None
    exact: bool


class ContentPage(NamedTuple):
    """A page, and the cursor after which the next page begins (None: the end)."""

    items: list[ContentView]
    last: ListCursor | None


def count_fitting(texts: Sequence[Text]) -> int:
    """Return how many of the first ``texts`` fit into a response; at least one, if any. Of posts a
    list has previews."""
    size = 0
    for count, text in enumerate(texts):
        body = text.body[:MAX_PREVIEW] if text.type == "post" else text.body
        size += len(encode_basestring_ascii(body)) + len(encode_basestring_ascii(text.title or ""))
        size += sum(map(len, text.images)) + _OTHER_FIELDS_BYTES
        if count and size > MAX_PAGE_BYTES:
            return count
    return len(texts)


def paginate(texts: Sequence[Text], limit: int) -> tuple[list[Text], ListCursor | None]:
    """Return at most ``limit`` of ``texts``, fewer if they are too long for one response, and the
    cursor after which the next page begins (None: the end)."""
    page = list(texts[: count_fitting(texts[:limit])])
    more = len(texts) > len(page)
    return page, ListCursor(page[-1].created_us, page[-1].id) if more else None


def cut_preview(body: str) -> str:
    """Return the beginning of ``body``: all of it, or at most ``MAX_PREVIEW`` characters to the end
    of a word. Text without spaces is cut between two characters as a reader sees them."""
    if len(body) <= MAX_PREVIEW:
        return body
    words = _WORDS.match(body, 0, MAX_PREVIEW + 1)
    if words and not words[0].isspace():
        return words[0].rstrip()
    end = MAX_PREVIEW
    while end > MAX_PREVIEW - _MAX_JOINED and _is_joined(body, end):
        end -= 1
    return body[:end]


def _is_joined(body: str, at: int) -> bool:
    """Return whether the characters before and after ``at`` are displayed as one."""
    before, after = body[at - 1], body[at]
    if category(after) in _MARKS or before == _ZWJ or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True  # the range has the skin tones
    if not (_is_flag(before) and _is_flag(after)):
        return False
    flags = 0  # a flag is two regional indicators: count those before
    while flags < at and _is_flag(body[at - 1 - flags]):
        flags += 1
    return flags % 2 == 1


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def move_of(
    recipient: int, post_id: int, author_id: int, *, on: bool, notified_at: int = 0
) -> Move:
    """Return what a comment on a post of ``recipient`` is to the participant of its transaction."""
    return Move(GroupKey(recipient, "comment", "post", post_id), author_id, on, notified_at)
