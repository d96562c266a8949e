"""Lists of reactions for readers: likers with their cards, the caller's reactions with their posts.

The number of round trips does not grow with the length of a page.
"""

from __future__ import annotations

from typing import NamedTuple

from plaza.content import queries
from plaza.content.model import ContentView
from plaza.infra.errors import Gone, Unavailable
from plaza.infra.observability import error_fields, record
from plaza.infra.process import HotCache
from plaza.reactions import LIKE, Kind, Target
from plaza.reactions import queries as reaction_queries
from plaza.reactions.model import ReactedTarget, Reactor
from plaza.users import Card, cards

FIRST_LIKERS = 5
# Of hot posts, for anonymous callers only, for 1 s.
_first_likers: HotCache[int, list[Card]] = HotCache(max_entries=1_000)


class ListedLiker(NamedTuple):
    """A user who likes a target; ``card`` has only the id if the user does not exist."""

    card: Card
    version_us: int


class ListedReaction(NamedTuple):
    """A target that an actor reacted to; ``post``: None unless requested and visible."""

    reacted: ReactedTarget
    post: ContentView | None


def list_likers(
    target: Target, after: Reactor | None, latest: bool, limit: int
) -> tuple[list[ListedLiker], Reactor | None]:
    """Return a page of the users who like a target, and the next page's ``after``. One round trip
    more than ``reactions.queries.list_reactors``, with its errors."""
    page, last = reaction_queries.list_reactors(LIKE, target, after, latest, limit)
    found = cards.read_cards(reactor.actor_id for reactor in page)
    return [
        ListedLiker(found.get(r.actor_id) or Card.unknown(r.actor_id), r.version_us) for r in page
    ], last


def read_first_likers(post_id: int, actor_id: int | None) -> list[Card] | None:
    """Return the cards of the first users who like a post; None while the list is unavailable: that
    does not fail the post."""
    if actor_id is None and (hot := _first_likers.get(post_id)) is not None:
        return hot
    try:
        likers, _ = list_likers(Target("post", post_id), None, False, FIRST_LIKERS)
    except (Gone, Unavailable) as error:  # gone: this process may cache the post for 1 s
        record("first_likers_unavailable", post_id=post_id, **error_fields(error))
        return None
    found = [liker.card for liker in likers]
    if actor_id is None:
        _first_likers.put(post_id, found)
    return found


def list_reacted(
    kind: Kind, actor_id: int, after: ReactedTarget | None, limit: int, with_posts: bool
) -> tuple[list[ListedReaction], ReactedTarget | None]:
    """Return a page of the actor's reactions, latest first, and the next page's ``after``.

    As ``reactions.queries.list_reacted``. ``with_posts`` adds the round trips of
    ``queries.read_posts``.
    """
    page, last = reaction_queries.list_reacted(kind, actor_id, after, limit)
    if not with_posts:
        return [ListedReaction(reacted, None) for reacted in page], last
    posts = queries.read_posts([r.target.id for r in page if r.target.type == "post"], actor_id)
    return [
        ListedReaction(r, posts.get(r.target.id) if r.target.type == "post" else None) for r in page
    ], last
