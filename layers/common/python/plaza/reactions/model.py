"""What a reaction is: kinds, targets, events, and how events become counts. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from plaza.infra import messages
from plaza.infra.errors import Gone, NotFound, TooManyRequests, Unavailable
from plaza.infra.messages import ID, InvalidMessage, integer, nullable, one_of, read

PROTOCOL = 2  # of messages and of what Redis holds of a target
MAX_ID = messages.MAX_ID
MAX_VERSION_US = messages.MAX_VERSION
CONTENT_TYPES = frozenset({"post", "comment", "review"})

Window = Literal["day", "week", "all"]
MAX_RANKING_LISTED = 1_000
MAX_RANKED = 1_500  # more than are shown: those who fall can be followed by who was next
TOMBSTONE_VERSION = 2**53  # newer than everything: what is deleted stays away


class TargetMissing(NotFound):
    """There is no such post, comment, review or user."""


class TargetDeleted(Gone):
    """The post, comment or review was deleted."""


class ReactionListsBusy(Unavailable):
    """More pages of lists are asked for than MySQL may be asked for."""


class OutboxFull(Unavailable):
    """The outbox of a target has as many entries as it may hold; try again when it has drained."""


class ReactionUndecided(Unavailable):
    """The target changed or was loaded during every attempt; try again."""


class TooManyChanges(TooManyRequests):
    """An actor turned one reaction on and off too often in a minute."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of reaction: what it may be given to and which counters it moves.

    ``total`` is its column in content_counter and ``version`` the column of that total's version;
    ``received`` is its owner's and ``given`` the actor's in user_counter, None if not counted.
    """

    name: str
    targets: frozenset[str]
    total: str
    version: str
    received: str
    given: str | None = None


LIKE = Kind("like", CONTENT_TYPES, "like_total", "like_version", "likes_received_total")
COLLECT = Kind(
    "collect", frozenset({"post"}), "collect_total", "collect_version", "collects_received_total"
)
FOLLOW = Kind(
    "follow",
    frozenset({"user"}),
    "follow_total",
    "follow_version",
    "followers_total",
    "following_total",
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (LIKE, COLLECT, FOLLOW)}


# Readers of what messages name.
KIND = one_of(KINDS)
TARGET_TYPE = one_of({target for kind in KINDS.values() for target in kind.targets})
_STATE = integer(0, 1)
_VERSION = nullable(integer(1, MAX_VERSION_US))


def require_kind(kind: str, target_type: str) -> None:
    """Raises InvalidMessage when a target of this type takes no reaction of this kind."""
    if target_type not in KINDS[kind].targets:
        raise InvalidMessage(f"a {target_type} takes no {kind}")


class Target(NamedTuple):
    """What is reacted to. Sorts as its primary key does."""

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
        """The target of the reaction."""
        return Target(self.target_type, self.target_id)


class ReactionRow(NamedTuple):
    """The state of a reaction as MySQL has it."""

    on: bool
    version_us: int


_NEVER = ReactionRow(False, 0)


@dataclass(frozen=True, slots=True)
class ReactionEvent:
    """An actor's reaction to a target is on or off: an absolute state, never a change.

    ``version_us`` (microseconds since 1970) orders the events of one key: the newest wins, however late
    or often the others arrive. It is None for a provisional event, which was accepted while Redis
    was unavailable: its version comes from ``sent_ms``, when the queue took it, see ``effective_version_us``.
    ``request_id`` and ``sent_ms`` are attributes of the message, not of its body.
    """

    key: ReactionKey
    on: bool
    version_us: int | None
    request_id: str | None = None
    sent_ms: int | None = None

    @property
    def effective_version_us(self) -> int:
        """The version: that of the gate, or of a provisional event the last microsecond of the
        millisecond in which the queue took it. Raises InvalidMessage without either."""
        if self.version_us is not None:
            return self.version_us
        if self.sent_ms is None:
            raise InvalidMessage("neither a version nor the time when the queue took the event")
        return self.sent_ms * 1000 + 999

    def to_json(self) -> str:
        """The body of the message."""
        return messages.encode(
            {
                "protocol": PROTOCOL,
                "target_type": self.key.target_type,
                "target_id": self.key.target_id,
                "kind": self.key.kind,
                "actor_id": self.key.actor_id,
                "state": int(self.on),
                "version": self.version_us,
            }
        )

    @classmethod
    def from_json(cls, body: str) -> ReactionEvent:
        """The event in ``body``.

        Raises InvalidMessage for a body that Plaza never wrote, UnknownProtocol for one of a version
        that this one does not know: it may be delivered again to one that does.
        """
        fields = messages.read_object(body)
        messages.require_protocol(fields, PROTOCOL)
        key = ReactionKey(
            read(fields, "target_type", TARGET_TYPE),
            read(fields, "target_id", ID),
            read(fields, "kind", KIND),
            read(fields, "actor_id", ID),
        )
        require_kind(key.kind, key.target_type)
        return cls(key, read(fields, "state", _STATE) == 1, read(fields, "version", _VERSION))


class Commit(NamedTuple):
    """What one transaction did to one target and kind, or what it found there.

    ``db_version`` is the version of the counter after it, with the epoch; ``total`` the counter. ``is_new``:
    the transaction raised the version to ``db_version``; else it changed nothing, and ``rows`` are as of
    ``db_version``. ``rows`` are (actor, version_us, on), one an actor.
    """

    kind: Kind
    target: Target
    db_version: int
    total: int
    is_new: bool
    rows: Sequence[tuple[int, int, bool]]


class LogEntry(NamedTuple):
    """A row of the log: an event, and what it changed in the count of its target and kind."""

    event: ReactionEvent
    version_us: int
    change: int


class Snapshot(NamedTuple):
    """A target and kind as MySQL had it at one instant.

    ``db_version`` is the version of its counter, ``total`` the counter. ``newest`` holds (actor, version_us),
    newest first; ``is_complete`` when those are all that are on. ``rows`` are (actor, version_us, on)
    of the actors that were asked for, 0 and off for one without a row.
    """

    total: int
    db_version: int
    last_version_us: int
    newest: list[tuple[int, int]]
    is_complete: bool
    rows: list[tuple[int, int, bool]]


class Reactor(NamedTuple):
    """Somebody who reacted to a target, and when."""

    actor_id: int
    version_us: int


class ReactedTarget(NamedTuple):
    """Something that an actor reacted to, and when."""

    target: Target
    version_us: int


class Fingerprint(NamedTuple):
    """Of some actors: how many, the sum of their ids and of their versions, each mod 10^9."""

    actors: int
    ids: int
    versions: int


class CachedTarget(NamedTuple):
    """What Redis holds of a target and kind, as far as it can be compared with MySQL.

    ``base`` is the counter at version ``db_version``. ``outbox_count`` and ``entries`` are how many the outbox
    has, by its meta and by itself. The fingerprint is of all actors in recent with a version above
    ``floor_us``; None: of none. ``blocked``: a commit is missing.
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
    """What Redis holds of a target is not what Plaza writes; ``detail`` shows it."""

    detail: str


class PostRank(NamedTuple):
    """A post and its likes, in all or within the window."""

    likes: int
    post_id: int


class PostLikes(NamedTuple):
    """The likes of a post in MySQL, and the version of its counter."""

    post_id: int
    likes: int
    version: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a reaction came to. ``total`` and ``changed`` are None for a provisional one."""

    on: bool
    total: int | None
    changed: bool | None

    @property
    def exact(self) -> bool:
        """False for a provisional reaction: accepted, decided later."""
        return self.total is not None


class Count(NamedTuple):
    """How many reacted, and whether the asking actor did (False for nobody)."""

    total: int
    viewer_state: bool


def replay(
    before: Mapping[ReactionKey, ReactionRow], events: Iterable[ReactionEvent]
) -> list[LogEntry]:
    """The log rows of ``events``, in the order of (key, version), each version of a key once.

    An event that is not newer than the row before it changes nothing.
    """
    entries = []
    rows = dict(before)
    ordered = sorted(
        ((event.key, event.effective_version_us, event) for event in events), key=lambda e: e[:2]
    )
    last = None
    for key, version_us, event in ordered:
        if (key, version_us) == last:
            continue
        last = key, version_us
        row = rows.get(key, _NEVER)
        change = 0
        if version_us > row.version_us:
            change = int(event.on) - int(row.on)
            rows[key] = ReactionRow(event.on, version_us)
        entries.append(LogEntry(event, version_us, change))
    return entries


def latest_rows(
    before: Mapping[ReactionKey, ReactionRow], entries: Iterable[LogEntry]
) -> dict[ReactionKey, ReactionRow]:
    """The rows that ``entries`` bring to a newer version, in the order of the keys."""
    rows: dict[ReactionKey, ReactionRow] = {}
    for event, version_us, _ in entries:
        key = event.key
        if version_us > (rows.get(key) or before.get(key, _NEVER)).version_us:
            rows[key] = ReactionRow(event.on, version_us)
    return rows


def sum_changes(entries: Iterable[LogEntry]) -> dict[ReactionKey, int]:
    """How much the entries of each key change the count, in all: 1, -1, or left out for 0."""
    changes: dict[ReactionKey, int] = {}
    for event, _, change in entries:
        if change:
            changes[event.key] = changes.get(event.key, 0) + change
    return {key: change for key, change in changes.items() if change}


def sum_by_counter(changes: Mapping[ReactionKey, int]) -> dict[tuple[str, int, str], int]:
    """How much each (type, id, kind) total moves by ``changes``; 0 where they cancel out."""
    moves: dict[tuple[str, int, str], int] = {}
    for key, by in changes.items():
        counted = key[:3]
        moves[counted] = moves.get(counted, 0) + by
    return moves
