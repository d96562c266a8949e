"""Following: who is followed comes into the inbox, who isn't any more leaves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from plaza.feed import mysql_store, redis_store
from plaza.feed.model import INBOX, Timeline, floor_of
from plaza.feed.mysql_store import FollowState
from plaza.feed.redis_store import Push
from plaza.infra.errors import Unavailable
from plaza.infra.observability import record
from plaza.reactions.queues import FOLLOWS

__all__ = ["BACKFILL", "FOLLOWS", "FollowsKeepChanging", "apply_follow_changes"]

BACKFILL = 100
_AT_ONCE = 1_000
_MAX_ATTEMPTS = 5

Pair = tuple[int, int]


class FollowsKeepChanging(Unavailable):
    """Follows changed each time they were applied; later they will stand still."""


@FOLLOWS.consumer
def apply_follow_changes(batches: Sequence[Sequence[Pair]]) -> None:
    """Let the inboxes have what MySQL says of these (who, whom).

    Safe to repeat, in any order. Raises MysqlDown, RedisDown, FollowsKeepChanging.
    """
    pairs = sorted(set(chain.from_iterable(batches)))
    for start in range(0, len(pairs), _AT_ONCE):
        _apply(pairs[start : start + _AT_ONCE])
    record("follows_applied", {"follows_applied": len(pairs)})


def _apply(pairs: Sequence[Pair]) -> None:
    """Apply, and look again: another consumer may have applied something newer in between, which
    what was read before would undo. Whoever applies last has looked last."""
    inboxes = redis_store.find_existing([Timeline(INBOX, who) for who in dict(pairs)])
    kept = {timeline.user_id for timeline in inboxes}
    todo = [pair for pair in pairs if pair[0] in kept]
    following = mysql_store.read_follow_states(todo) if todo else {}
    for _ in range(_MAX_ATTEMPTS):
        if not todo:
            return
        _apply_states(following, todo)
        now = mysql_store.read_follow_states(todo)
        todo = [pair for pair in todo if now[pair] != following[pair]]
        following = now
    raise FollowsKeepChanging("Follows changed each time they were applied")


def _apply_states(following: Mapping[Pair, FollowState], pairs: Sequence[Pair]) -> None:
    """One statement, two round trips to Redis."""
    authors = {whom for who, whom in pairs if following[who, whom] == FollowState(True, False)}
    newest = mysql_store.read_newest(authors, BACKFILL)
    pushes, removed = [], []
    for who, whom in pairs:
        inbox = Timeline(INBOX, who)
        match following[who, whom]:
            case FollowState(on=False):
                removed.append((inbox, whom))
            case FollowState(star=True):
                pushes.append(Push(inbox, [], stars=[whom]))
            case _:
                posts = newest[whom]
                pushes.append(Push(inbox, posts, floor_us=floor_of(posts, BACKFILL)))
    redis_store.push_all(pushes)
    redis_store.remove_authors(removed)
