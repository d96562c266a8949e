"""The queues of reactions and their messages: events, commits, steps of builds, follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plaza.infra import messages
from plaza.infra.messages import ID, InvalidMessage, boolean, integer, list_of, read, text, tuple_of
from plaza.infra.queues import Queue
from plaza.infra.retries import RetryPolicy
from plaza.reactions.model import (
    KIND,
    KINDS,
    MAX_ID,
    MAX_VERSION_US,
    PROTOCOL,
    TARGET_TYPE,
    Commit,
    Kind,
    ReactionEvent,
    ReactionKey,
    Target,
    require_kind,
)

MAX_PAIRS = 1_000  # in a message
MAX_BUILD = 64  # characters in the name of a build
_MAX_KEYS = 1_000  # in a message
_DB_VERSION = integer(0, MAX_VERSION_US)
_TOTAL = integer(-MAX_ID, MAX_ID)
_ROWS = list_of(tuple_of(ID, _DB_VERSION, boolean), 0, _MAX_KEYS)
_COMMITS = list_of(
    tuple_of(KIND, TARGET_TYPE, ID, _DB_VERSION, _TOTAL, boolean, _ROWS), 0, _MAX_KEYS
)
_KEYS = list_of(tuple_of(TARGET_TYPE, ID, KIND, ID), 0, _MAX_KEYS)
_PAIRS = list_of(tuple_of(ID, ID), 1, MAX_PAIRS)

Pair = tuple[int, int]
"""(actor, followed user) of a follow that may have changed."""


@dataclass(frozen=True, slots=True)
class Unacknowledged:
    """A message of ACKNOWLEDGEMENTS: commits that Redis did not accept, or keys to read again."""

    commits: Sequence[Commit] = ()
    keys: Sequence[ReactionKey] = ()

    def to_json(self) -> str:
        fields: dict[str, Any] = {"protocol": PROTOCOL, "keys": self.keys}
        fields["commits"] = [[c.kind.name, *c.target, *c[2:]] for c in self.commits]
        return messages.encode(fields)

    @classmethod
    def from_json(cls, body: str) -> Unacknowledged:
        """Parse the body of a message. Raises InvalidMessage, UnknownProtocol."""
        fields = messages.read_object(body)
        messages.require_protocol(fields, PROTOCOL)
        commits = [_commit(*values) for values in read(fields, "commits", _COMMITS)]
        keys = [ReactionKey(*values) for values in read(fields, "keys", _KEYS)]
        for key in keys:
            require_kind(key.kind, key.target_type)
        count = sum(len(commit.rows) for commit in commits) + len(keys)
        if not 0 < count <= _MAX_KEYS:
            raise InvalidMessage(f"{count} rows and keys, not 1 to {_MAX_KEYS}")
        return cls(commits, keys)


def _commit(
    kind: str,
    target_type: str,
    target_id: int,
    db_version: int,
    total: int,
    is_new: bool,
    rows: list[tuple[int, int, bool]],
) -> Commit:
    require_kind(kind, target_type)
    return Commit(KINDS[kind], Target(target_type, target_id), db_version, total, is_new, rows)


@dataclass(frozen=True, slots=True)
class BloomBuildStep:
    """The progress of a build: its name in Redis, '' before its start, and the last added actor."""

    kind: Kind
    target: Target
    build: str = ""
    after_id: int = 0

    def to_json(self) -> str:
        fields: dict[str, Any] = {
            "kind": self.kind.name,
            "target_type": self.target.type,
            "target_id": self.target.id,
        }
        if self.build:
            fields |= {"build": self.build, "after_id": self.after_id}
        return messages.encode(fields)

    @classmethod
    def from_json(cls, body: str) -> BloomBuildStep:
        """Parse the body of a message. Raises InvalidMessage."""
        fields = messages.read_object(body)
        kind, target_type = read(fields, "kind", KIND), read(fields, "target_type", TARGET_TYPE)
        require_kind(kind, target_type)
        target = Target(target_type, read(fields, "target_id", ID))
        build = read(fields, "build", text(0, MAX_BUILD), default="")
        after_id = read(fields, "after_id", integer(0, MAX_ID), default=0)
        if after_id and not build:  # a new filter would lack the actors up to after_id
            raise InvalidMessage("after_id without a build")
        return cls(KINDS[kind], target, build, after_id)


def write_pairs(pairs: Sequence[Pair]) -> str:
    """Return the body of a message of FOLLOWS."""
    return messages.encode(pairs)


def read_pairs(body: str) -> Sequence[Pair]:
    """Parse what ``write_pairs`` returned. Raises InvalidMessage."""
    return [(actor_id, user_id) for actor_id, user_id in messages.read_body(body, _PAIRS)]


REACTIONS = Queue(
    "reactions", ReactionEvent.to_json, ReactionEvent.from_json, batch_size=4_000, window_s=1
)
"""Events, in any order: versions order them."""

ACKNOWLEDGEMENTS = Queue("acknowledgements", Unacknowledged.to_json, Unacknowledged.from_json)
"""Commits that Redis did not accept, and keys to read again."""

REBUILDS = Queue(
    "rebuilds",
    BloomBuildStep.to_json,
    BloomBuildStep.from_json,
    batch_size=1,
    visibility_s=361,
    retry=RetryPolicy(max_wait_s=4 * 3_600),  # the gate requests the build again
)
"""Targets whose Bloom filter has to be built."""

FOLLOWS = Queue("follows", write_pairs, read_pairs)
"""Follows that may have changed; the feed consumes it."""
