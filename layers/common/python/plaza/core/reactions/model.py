"""Types of reactions: kinds, targets, events; and how events change counts. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal, NamedTuple

from plaza.core.reactions.kinds import KINDS, Kind
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.runtime.codec import MAX_ID as MAX_ID
from plaza.infra.runtime.codec import MAX_VERSION
from plaza.infra.runtime.errors import (
    Conflict,
    Gone,
    NotFound,
    PlazaError,
    TooManyRequests,
    Unavailable,
)

PROTOCOL = 2  # of messages and of targets in Redis
MAX_VERSION_US = MAX_VERSION
MAX_ROWS = 250  # of a target in one call of a script
MAX_UNSORTED = 2_000  # active actors of a target that each reader sorts

Window = Literal["hot", "day", "week", "all"]
MAX_RANKING_LISTED = 1_000
MAX_RANKED = 1_500  # more than are listed: posts that fall out are replaced by the next ones
TOMBSTONE_VERSION = 2**53  # above every version, so a late write does not restore deleted content


class TargetMissing(NotFound):
    """The post, comment, review or user does not exist."""


class TargetDeleted(Gone):
    """The post, comment or review was deleted."""


class ReactionListsBusy(Unavailable):
    """The budget for reading lists from MySQL is empty; try again."""


class KindClosed(Conflict):
    """The deployment closed this kind of reaction: it takes no new ones."""

    slug = "kind-closed"
    title = "Kind closed"
    example = "Bookmark takes no new reactions."


class OutboxFull(Unavailable):
    """The outbox of the target has reached its limit; try again when its entries are saved."""


class ReactionUndecided(Unavailable):
    """The target changed or was loaded during every attempt; try again."""


class NotRepeated(PlazaError):
    """The reaction is not a repeat of the present state, which stays as it is."""


class TooManyChanges(TooManyRequests):
    """The actor turned one reaction on and off too often within a minute."""


def require_kind(kind: str, target_type: str) -> None:
    """Raise InvalidMessage when targets of this type take no reactions of this kind."""
    if kind not in KINDS or target_type not in KINDS[kind].targets:
        raise InvalidMessage(f"a {target_type} takes no {kind}")


class Target(NamedTuple):
    """A target; sorts as its primary key."""

    type: str
    id: int

    def __str__(self) -> str:
        return f"{self.type}:{self.id}"


class ReactionKey(NamedTuple):
    """One actor's reaction of one kind to one target: the primary key of ``reaction``."""

    target_type: str
    target_id: int
    kind: str
    actor_id: int

    @property
    def target(self) -> Target:
        return Target(self.target_type, self.target_id)


class ReactionRow(NamedTuple):
    """The state of a reaction in MySQL. ``notified_sequence``: at which it notified for the owner,
    or 0."""

    on: bool
    version_us: int
    notified_sequence: int = 0


_NEVER = ReactionRow(False, 0)


@dataclass(frozen=True, slots=True)
class ReactionEvent:
    """The absolute state of one reaction, on or off; never a change.

    ``version_us`` (microseconds since 1970) orders the events of one key: the newest wins, in any
    order of arrival. It is None for a provisional event, accepted while Redis was unavailable.
    ``deadline_ms`` is the latest time at which a provisional event is ordered: SQS may store it
    after its sender gave up. None: not limited. ``request_id`` and ``sent_ms``,
    when the queue took the event, are attributes of the message, not of its body.
    """

    key: ReactionKey
    on: bool
    version_us: int | None
    request_id: str | None = None
    sent_ms: int | None = None
    deadline_ms: int | None = None

    @property
    def effective_version_us(self) -> int:
        """Return the gate's version; for a provisional event the last microsecond of ``sent_ms``,
        or of its deadline if that was before. Raises InvalidMessage without either."""
        if self.version_us is not None:
            return self.version_us
        if self.sent_ms is None:
            raise InvalidMessage("neither a version nor the time when the queue took the event")
        return min(self.sent_ms, self.deadline_ms or self.sent_ms) * 1000 + 999


class Commit(NamedTuple):
    """What one transaction did to one target and kind, or read of it.

    ``db_version``: version of the counter after it, with the epoch; ``total``: the counter.
    ``is_new``: the transaction raised the version to ``db_version``; else it changed nothing, and
    ``rows`` are as of ``db_version``. ``rows``: (actor, version_us, on), one for each actor.
    """

    kind: Kind
    target: Target
    db_version: int
    total: int
    is_new: bool
    rows: Sequence[tuple[int, int, bool]]


LogEntry = tuple[ReactionEvent, int, int]
"""A row of the log: an event, its version, and its change of the total, -1, 0 or 1."""


class SavedActor(NamedTuple):
    """An actor of a batch and the state of the row after it. ``change``: what all events of the
    actor change the total by. ``is_newer``: the row has to be written."""

    actor_id: int
    version_us: int
    on: bool
    change: int
    is_newer: bool


EventGroups = Sequence[tuple[tuple[str, int, str], Sequence[tuple[tuple[int, int], ReactionEvent]]]]
"""Type and id of a target, and kind -> its events: (actor, version), event."""


@dataclass(slots=True)
class CounterChange:
    """What a batch does to at most 250 actors of one target and kind, in the order of the primary
    key: the rows of the log, and the state of each actor after them.

    ``delta`` is the change of the total. ``is_new``: a row changes, also where the delta is 0.
    """

    target: Target
    kind: Kind
    entries: list[LogEntry] = field(default_factory=list)
    actors: list[SavedActor] = field(default_factory=list)
    delta: int = 0
    is_new: bool = False


class Snapshot(NamedTuple):
    """The state of a target and kind in MySQL at one instant.

    ``db_version``: version of the counter ``total``. ``last_version_us``: the newest version of any
    row. ``newest``: (actor, version_us) of actors that are on, newest first; ``is_complete``: of
    all. ``rows``: (actor, version_us, on) of the requested actors, 0 and off without a row.
    ``loaded_us``: the time of the snapshot, by the clock of MySQL.
    """

    total: int
    db_version: int
    last_version_us: int
    newest: list[tuple[int, int]]
    is_complete: bool
    rows: list[tuple[int, int, bool]]
    loaded_us: int


class Size(NamedTuple):
    """What a snapshot of a target and kind has to read: so many actors that are on, from the sorted
    list or from ``reaction``."""

    total: int
    is_sorted: bool


class Reactor(NamedTuple):
    """An actor of a target, and the version of the reaction."""

    actor_id: int
    version_us: int


class ReactedTarget(NamedTuple):
    """A target of an actor, and the version of the reaction."""

    target: Target
    version_us: int


class Fingerprint(NamedTuple):
    """The number of some actors, and the sums of their ids and their versions, each mod 10^9."""

    actors: int
    ids: int
    versions: int


class CachedTarget(NamedTuple):
    """The state of a target and kind in Redis that can be compared with MySQL.

    ``base``: the counter at version ``db_version``. ``outbox_count``: entries according to meta;
    ``entries``: in the outbox itself. ``newest``: fingerprint of the actors in recent with a
    version above ``floor_us`` (None: no floor). ``blocked``: a commit is missing.
    """

    base: int
    db_version: int
    delta: int
    outbox_count: int
    entries: int
    complete: bool
    bloom: int
    floor_us: int | None
    blocked: bool
    newest: Fingerprint


class Unreadable(NamedTuple):
    """The data of a target in Redis is invalid; ``detail`` shows it."""

    detail: str


class PostRank(NamedTuple):
    """A post and its likes, of all time or within the window; in ``hot``, its decayed likes."""

    likes: int
    post_id: int


class PostLikes(NamedTuple):
    """The likes of a post in MySQL, and the version of its counter."""

    post_id: int
    likes: int
    version: int


class Outcome(NamedTuple):
    """The result of a reaction. ``at``: the order token of ``total``. These two and ``changed`` are
    None for a provisional one."""

    on: bool
    total: int | None
    changed: bool | None
    at: str | None = None

    @property
    def exact(self) -> bool:
        """Return False for a provisional reaction: accepted, decided later."""
        return self.total is not None


class Count(NamedTuple):
    """The total of a target, whether the caller reacted (False for an anonymous caller), and the
    order token of the total, None of one that may lack recent reactions."""

    total: int
    viewer_state: bool
    at: str | None = None


def group_events(events: Iterable[ReactionEvent]) -> EventGroups:
    """Return the events of each target and kind by actor and version, in the order of the keys.
    Each version of a key counts once."""
    groups: dict[tuple[str, int, str], dict[tuple[int, int], ReactionEvent]] = {}
    for event in events:
        key = event.key
        at_us = event.version_us or event.effective_version_us
        groups.setdefault(key[:3], {}).setdefault((key[3], at_us), event)
    return [(of, sorted(group.items(), key=itemgetter(0))) for of, group in sorted(groups.items())]


def replay(before: Mapping[ReactionKey, ReactionRow], groups: EventGroups) -> list[CounterChange]:
    """Return what the events of ``groups`` change, in the order of the keys; ``before``: the rows
    that exist. An event that is not newer than the row of its key is logged with a change of 0."""
    changes: list[CounterChange] = []
    for (target_type, target_id, kind), group in groups:
        target = Target(target_type, target_id)
        state = CounterChange(target, KINDS[kind])
        changes.append(state)
        was_on, on, version_us, is_newer, last_actor = False, False, 0, False, -1
        for (actor_id, at_us), event in group:
            if actor_id != last_actor:
                if last_actor >= 0:
                    state.actors.append(
                        SavedActor(last_actor, version_us, on, on - was_on, is_newer)
                    )
                if len(state.actors) == MAX_ROWS:
                    state = CounterChange(target, KINDS[kind])
                    changes.append(state)
                was_on, version_us, _ = before.get(event.key, _NEVER)
                on, is_newer, last_actor = was_on, False, actor_id
            change = 0
            if at_us > version_us:
                change = event.on - on
                on, version_us, is_newer = event.on, at_us, True
                state.delta += change
                state.is_new = True
            state.entries.append((event, at_us, change))
        state.actors.append(SavedActor(last_actor, version_us, on, on - was_on, is_newer))
    return changes
