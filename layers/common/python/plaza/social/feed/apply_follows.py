"""Apply changed follows to inboxes: add and remove posts of the authors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from plaza.core.reactions.queues import FOLLOWS
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import record
from plaza.social.feed import mysql_store, redis_store
from plaza.social.feed.model import INBOX, Timeline, floor_of
from plaza.social.feed.mysql_store import FollowState
from plaza.social.feed.redis_store import Push

__all__ = ["BACKFILL", "FOLLOWS", "FollowsKeepChanging", "apply_follow_changes"]

BACKFILL = 100
_MAX_PAIRS_PER_STEP = 1_000
_MAX_ATTEMPTS = 5

Pair = tuple[int, int]


class FollowsKeepChanging(Unavailable):
    """The follow graph changed on every attempt; retry later."""


@FOLLOWS.consumer
def apply_follow_changes(batches: Sequence[Sequence[Pair]]) -> None:
    """Apply the state in MySQL of each pair (reader, author) to the reader's inbox. Safe to repeat,
    in any order. Raises MysqlDown, RedisDown, FollowsKeepChanging."""
    pairs = sorted(set(chain.from_iterable(batches)))
    for start in range(0, len(pairs), _MAX_PAIRS_PER_STEP):
        _apply(pairs[start : start + _MAX_PAIRS_PER_STEP])
    record("follows_applied", {"follows_applied": len(pairs)})


def _apply(pairs: Sequence[Pair]) -> None:
    """Apply the states, read them again and repeat for those that changed.

    A concurrent consumer may have applied a newer state in between, which this one's older state
    undoes. The consumer that writes last also reads last, and so corrects it.
    """
    readers = redis_store.mark_follows(dict(pairs))
    todo = [pair for pair in pairs if pair[0] in readers]
    states = mysql_store.read_follow_states(todo) if todo else {}
    for _ in range(_MAX_ATTEMPTS):
        if not todo:
            return
        _apply_states(states, todo)
        now = mysql_store.read_follow_states(todo)
        todo = [pair for pair in todo if now[pair] != states[pair]]
        states = now
    raise FollowsKeepChanging("The follows changed on every attempt.")


def _apply_states(states: Mapping[Pair, FollowState], pairs: Sequence[Pair]) -> None:
    """Apply the states. One statement, two round trips to Redis."""
    authors = {pair[1] for pair in pairs if states[pair] == FollowState(True, False)}
    newest = mysql_store.read_newest(authors, BACKFILL)
    pushes, removed = [], []
    for reader_id, author_id in pairs:
        inbox = Timeline(INBOX, reader_id)
        match states[reader_id, author_id]:
            case FollowState(on=False):
                removed.append((inbox, author_id))
            case FollowState(celebrity=True):
                pushes.append(Push(inbox, [], celebrities=[author_id]))
            case _:
                posts = newest[author_id]
                pushes.append(Push(inbox, posts, floor_us=floor_of(posts, BACKFILL)))
    redis_store.push_all(pushes)
    redis_store.remove_authors(removed)
