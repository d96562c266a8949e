"""Lists of the users who reacted to a target, with their cards. The number of round trips does not
grow with the length of a page."""

from __future__ import annotations

from typing import NamedTuple

from plaza.core.reactions import Kind, Target, queries
from plaza.core.reactions.model import Reactor
from plaza.infra.redis import redis
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.hot_reads import HotReads
from plaza.people.users import cards
from plaza.people.users.model import Card

LikersPage = tuple[list["ListedLiker"], Reactor | None]
_PageKey = tuple[Kind, Target, bool, int]
# First pages of hot targets, latest first or not, for anonymous callers only.
_hot_likers: HotReads[_PageKey, LikersPage] = HotReads(lambda key: queries.list_key(*key[:2]))


class ListedLiker(NamedTuple):
    """A user who reacted to a target; ``card`` has only the id if the user does not exist."""

    card: Card
    version_us: int


def list_likers(
    kind: Kind,
    target: Target,
    after: Reactor | None,
    latest: bool,
    limit: int,
    actor_id: int | None,
) -> LikersPage:
    """Return a page of the users who reacted to a visible target, and the next page's ``after``.
    One round trip more than ``reactions.queries.list_reactors``, with its errors. An anonymous
    caller gets the first page of a hot target up to 2 s late."""
    if actor_id is not None or after is not None:
        return _read_likers(kind, target, after, latest, limit)
    key = kind, target, latest, limit

    def load(_: object, source: RunAll) -> dict[_PageKey, LikersPage]:
        return {key: _read_likers(kind, target, None, latest, limit, source)}

    return _hot_likers.read_all([key], load)[key]


def _read_likers(
    kind: Kind,
    target: Target,
    after: Reactor | None,
    latest: bool,
    limit: int,
    source: RunAll = redis.run_all,
) -> LikersPage:
    page, last = queries.list_reactors(kind, target, after, latest, limit, source)
    cards_by_id = cards.read_cards((reactor.actor_id for reactor in page), source)
    return [
        ListedLiker(cards_by_id.get(r.actor_id) or Card.unknown(r.actor_id), r.version_us)
        for r in page
    ], last
