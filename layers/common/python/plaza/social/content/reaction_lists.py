"""Lists of reactions for readers: likers with their cards, the caller's reactions with their texts.

The number of round trips does not grow with the length of a page.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from plaza.core.reactions import LIKE, Kind, Target
from plaza.core.reactions import queries as reaction_queries
from plaza.core.reactions.kinds import CONTENT_TYPES
from plaza.core.reactions.model import ReactedTarget, Reactor
from plaza.core.targets import target_ids
from plaza.infra.redis import redis
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.hot_reads import HotReads
from plaza.infra.runtime.errors import Gone, Unavailable
from plaza.infra.runtime.observability import error_fields, record
from plaza.people.users import Card, cards
from plaza.social.content import queries
from plaza.social.content.model import ContentView, count_fitting

FIRST_LIKERS = 5
_LikersPage = tuple[list["ListedLiker"], Reactor | None]
_PageKey = tuple[Kind, Target, bool, int]
# First pages of hot targets, latest first or not, for anonymous callers only.
_hot_likers: HotReads[_PageKey, _LikersPage] = HotReads(
    lambda key: reaction_queries.list_key(*key[:2])
)


class ListedLiker(NamedTuple):
    """A user who reacted to a target; ``card`` has only the id if the user does not exist."""

    card: Card
    version_us: int


class ListedReaction(NamedTuple):
    """A target that an actor reacted to, with its id as views have it; ``view``: None unless
    requested and visible."""

    reacted: ReactedTarget
    id: str
    view: ContentView | None


def list_likers(
    kind: Kind,
    target: Target,
    after: Reactor | None,
    latest: bool,
    limit: int,
    actor_id: int | None,
) -> _LikersPage:
    """Return a page of the users who reacted to a target, and the next page's ``after``. One round
    trip more than ``reactions.queries.list_reactors``, with its errors, and one unless this
    process read the text within 1 s. An anonymous caller gets the first page of a hot target up to
    2 s late. Raises TargetHidden unless the caller is the author."""
    if target.type in CONTENT_TYPES:
        queries.read(target, actor_id)
    return _list_likers(kind, target, after, latest, limit, actor_id)


def _list_likers(
    kind: Kind,
    target: Target,
    after: Reactor | None,
    latest: bool,
    limit: int,
    actor_id: int | None,
) -> _LikersPage:
    if actor_id is not None or after is not None:
        return _read_likers(kind, target, after, latest, limit)
    key = kind, target, latest, limit

    def load(_: object, source: RunAll) -> dict[_PageKey, _LikersPage]:
        return {key: _read_likers(kind, target, None, latest, limit, source)}

    return _hot_likers.read_all([key], load)[key]


def _read_likers(
    kind: Kind,
    target: Target,
    after: Reactor | None,
    latest: bool,
    limit: int,
    source: RunAll = redis.run_all,
) -> _LikersPage:
    page, last = reaction_queries.list_reactors(kind, target, after, latest, limit, source)
    cards_by_id = cards.read_cards((reactor.actor_id for reactor in page), source)
    return [
        ListedLiker(cards_by_id.get(r.actor_id) or Card.unknown(r.actor_id), r.version_us)
        for r in page
    ], last


def read_first_likers(post_id: int, actor_id: int | None) -> list[Card] | None:
    """Return the cards of the first users who like a post; None while the list is unavailable: that
    does not fail the post."""
    try:
        likers, _ = _list_likers(LIKE, Target("post", post_id), None, False, FIRST_LIKERS, actor_id)
    except (Gone, Unavailable) as error:  # gone: this process may cache the post for 1 s
        record("first_likers_unavailable", post_id=post_id, **error_fields(error))
        return None
    return [liker.card for liker in likers]


def list_reacted(
    kind: Kind, actor_id: int, after: ReactedTarget | None, limit: int, types: Collection[str]
) -> tuple[list[ListedReaction], ReactedTarget | None]:
    """Return a page of the actor's reactions, latest first, and the next page's ``after``.

    As ``reactions.queries.list_reacted``. With ``types``, targets of these types have their texts:
    it adds the round trips of ``queries.read_views``, and shortens the page to what fits into a
    response. ``target_ids.render_ids`` adds what it costs.
    """
    page, last = reaction_queries.list_reacted(kind, actor_id, after, limit)
    ids = target_ids.render_ids(reacted.target for reacted in page)
    shown = [reacted.target for reacted in page if reacted.target.type in types]
    views = queries.read_views(shown, actor_id) if shown else {}
    listed = [ListedReaction(r, ids[r.target], views.get(r.target)) for r in page]
    with_text = [item for item in listed if item.view]
    fitting = count_fitting([item.view.text for item in with_text if item.view])
    if fitting < len(with_text):
        listed = listed[: listed.index(with_text[fitting])]
        last = listed[-1].reacted
    return listed, last
