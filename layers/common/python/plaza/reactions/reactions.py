"""What a reaction is: kinds, targets, facts, and how facts become counts. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from plaza.infra.errors import Gone, NotFound, Unavailable
from plaza.infra.queues import BadRecord

MOST_ID = 2**63 - 1
MOST_VER_US = 2**53 - 1
_encode = json.JSONEncoder(separators=(",", ":")).encode  # json.dumps would make one each time
CONTENT_TYPES = frozenset({"post", "comment", "review"})


class TargetMissing(NotFound):
    """There is no such post, comment, review or user."""


class TargetGone(Gone):
    """The post, comment or review was deleted."""


class OutboxFull(Unavailable):
    """A target has as many unsaved changes as Redis may hold; they drain, try again."""


class Undecided(Unavailable):
    """What was read moved on each time before it could be used; try again."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of reaction: what it may be given to and which counters it moves.

    ``total`` is its column in content_counter; ``received`` is its owner's and ``given`` the
    actor's in user_counter, None where nobody counts that.
    """

    name: str
    targets: frozenset[str]
    total: str
    received: str
    given: str | None = None


LIKE = Kind("like", CONTENT_TYPES, "like_total", "likes_received_total")
COLLECT = Kind("collect", frozenset({"post"}), "collect_total", "collects_received_total")
FOLLOW = Kind("follow", frozenset({"user"}), "follow_total", "followers_total", "following_total")
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (LIKE, COLLECT, FOLLOW)}


class Target(NamedTuple):
    """What is reacted to. Sorts as its primary key does."""

    type: str
    id: int

    def __str__(self) -> str:
        return f"{self.type}:{self.id}"


class Key(NamedTuple):
    """One actor's reaction of one kind to one target: the primary key of ``reaction``."""

    target_type: str
    target_id: int
    kind: str
    actor_id: int

    @property
    def target(self) -> Target:
        """The target of the reaction."""
        return Target(self.target_type, self.target_id)


class Row(NamedTuple):
    """The state of a reaction as MySQL has it."""

    on: bool
    ver_us: int


@dataclass(frozen=True, slots=True)
class ReactionChanged:
    """An actor's reaction to a target is now on or off.

    ``ver_us`` (microseconds since 1970) orders the facts about one key: the newest wins, however
    late or often the others arrive. ``total`` is the target's as Redis counted it, None for an
    intent that was taken while Redis was away. ``request_id`` is that of the request it came from,
    as far as anybody knows: an attribute of the message, not of its body.
    """

    key: Key
    on: bool
    ver_us: int
    total: int | None
    request_id: str | None = None

    def to_json(self) -> str:
        """The fact as it stands on the queue."""
        return _encode(
            {
                "target_type": self.key.target_type,
                "target_id": self.key.target_id,
                "kind": self.key.kind,
                "actor_id": self.key.actor_id,
                "state": int(self.on),
                "ver": self.ver_us,
                "total": self.total,
            }
        )

    @classmethod
    def from_json(cls, body: str) -> ReactionChanged:
        """The fact in ``body``. Raises BadRecord when it is none that we could have written."""
        try:
            said = json.loads(body)
            kind, target_type = said["kind"], said["target_type"]
            if target_type not in KINDS[kind].targets:
                raise BadRecord(f"a {target_type} takes no {kind}")
            state = _whole(said, "state", 0, 1)
            key = Key(
                target_type,
                _whole(said, "target_id", 1, MOST_ID),
                kind,
                _whole(said, "actor_id", 1, MOST_ID),
            )
            total = said.get("total")
            if total is not None:
                total = _whole(said, "total", -MOST_ID, MOST_ID)
            return cls(key, state == 1, _whole(said, "ver", 1, MOST_VER_US), total)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadRecord(f"no fact about a reaction: {type(error).__name__} {error}") from None


def _whole(said: Mapping[str, object], name: str, least: int, most: int) -> int:
    value = said[name]
    if type(value) is not int or not least <= value <= most:
        raise BadRecord(f"{name} is {str(value)[:40]!r}")
    return value


def newest(facts: Iterable[ReactionChanged]) -> dict[Key, ReactionChanged]:
    """The newest fact of each key, in the order of the keys."""
    last: dict[Key, ReactionChanged] = {}
    for fact in facts:
        held = last.get(fact.key)
        if held is None or held.ver_us < fact.ver_us:
            last[fact.key] = fact
    return dict(sorted(last.items()))


def applicable(
    before: Mapping[Key, Row], facts: Mapping[Key, ReactionChanged]
) -> dict[Key, ReactionChanged]:
    """Those of ``facts`` that are newer than the row before them."""
    return {
        key: fact
        for key, fact in facts.items()
        if key not in before or before[key].ver_us < fact.ver_us
    }


def turned(before: Mapping[Key, Row], applied: Mapping[Key, ReactionChanged]) -> dict[Key, int]:
    """Which reactions went on (1) or off (-1) when ``applied`` replaced the rows ``before``."""
    return {
        key: 1 if fact.on else -1
        for key, fact in applied.items()
        if fact.on != (key in before and before[key].on)
    }


def transitions(turns: Mapping[Key, int]) -> dict[tuple[Target, str], int]:
    """How much each (target, kind) total moves by ``turns``; 0 where they cancel out."""
    moves: dict[tuple[Target, str], int] = {}
    for key, by in turns.items():
        counted = (key.target, key.kind)
        moves[counted] = moves.get(counted, 0) + by
    return moves
