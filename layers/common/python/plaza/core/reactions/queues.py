"""The queues of reactions and their messages: events, commits, steps of builds, follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import (
    MAX_VERSION_US,
    PROTOCOL,
    Commit,
    ReactionEvent,
    ReactionKey,
    Target,
    require_kind,
)
from plaza.infra.queues.messages import InvalidMessage, message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.retries import RetryPolicy
from plaza.infra.runtime.codec import ID, MAX_ID, VERSION, Meta, Struct

MAX_PAIRS = 1_000  # in a message
MAX_BUILD = 64  # characters in the name of a build
_MAX_KEYS = 1_000  # in a message
_Protocol = Annotated[int, Meta(ge=PROTOCOL, le=PROTOCOL)]
_Ms = Annotated[int, Meta(ge=1, le=MAX_VERSION_US // 1000)]
_DbVersion = Annotated[int, Meta(ge=0, le=MAX_VERSION_US)]
_Total = Annotated[int, Meta(ge=-MAX_ID, le=MAX_ID)]
_Rows = Annotated[Sequence[tuple[ID, _DbVersion, bool]], Meta(max_length=_MAX_KEYS)]
_Commit = tuple[str, str, ID, _DbVersion, _Total, bool, _Rows]
_Key = tuple[str, ID, str, ID]

Pair = tuple[int, int]
"""(actor, followed user) of a follow that may have changed."""


class _ReactionBody(Struct, frozen=True, gc=False, omit_defaults=True):
    protocol: _Protocol
    target_type: str
    target_id: ID
    kind: str
    actor_id: ID
    state: Annotated[int, Meta(ge=0, le=1)]
    version: VERSION | None
    deadline: _Ms | None = None


def _pack_event(event: ReactionEvent) -> _ReactionBody:
    key = event.key
    return _ReactionBody(
        PROTOCOL,
        key.target_type,
        key.target_id,
        key.kind,
        key.actor_id,
        int(event.on),
        event.version_us,
        event.deadline_ms,
    )


def _unpack_event(body: _ReactionBody) -> ReactionEvent:
    require_kind(body.kind, body.target_type)
    key = ReactionKey(body.target_type, body.target_id, body.kind, body.actor_id)
    return ReactionEvent(key, body.state == 1, body.version, deadline_ms=body.deadline)


class Unacknowledged(NamedTuple):
    """A message of ACKNOWLEDGEMENTS: commits that Redis did not accept, or keys to read again."""

    commits: Sequence[Commit] = ()
    keys: Sequence[ReactionKey] = ()


class _UnacknowledgedBody(Struct, frozen=True):
    protocol: _Protocol
    keys: Annotated[list[_Key], Meta(max_length=_MAX_KEYS)]
    commits: Annotated[list[_Commit], Meta(max_length=_MAX_KEYS)]


def _pack_unacknowledged(message: Unacknowledged) -> _UnacknowledgedBody:
    commits = [(c.kind.name, *c.target, *c[2:]) for c in message.commits]
    return _UnacknowledgedBody(PROTOCOL, list(message.keys), commits)


def _unpack_unacknowledged(body: _UnacknowledgedBody) -> Unacknowledged:
    commits = [_commit(*values) for values in body.commits]
    keys = [ReactionKey(*values) for values in body.keys]
    for key in keys:
        require_kind(key.kind, key.target_type)
    count = sum(len(commit.rows) for commit in commits) + len(keys)
    if not 0 < count <= _MAX_KEYS:
        raise InvalidMessage(f"{count} rows and keys, not 1 to {_MAX_KEYS}")
    return Unacknowledged(commits, keys)


def _commit(
    kind: str,
    target_type: str,
    target_id: int,
    db_version: int,
    total: int,
    is_new: bool,
    rows: Sequence[tuple[int, int, bool]],
) -> Commit:
    require_kind(kind, target_type)
    return Commit(KINDS[kind], Target(target_type, target_id), db_version, total, is_new, rows)


class BloomBuildStep(NamedTuple):
    """The progress of a build: its name in Redis, '' before its start, and the last added actor."""

    kind: Kind
    target: Target
    build: str = ""
    after_id: int = 0


class _StepBody(Struct, frozen=True, omit_defaults=True):
    kind: str
    target_type: str
    target_id: ID
    build: Annotated[str, Meta(max_length=MAX_BUILD)] = ""
    after_id: Annotated[int, Meta(ge=0, le=MAX_ID)] = 0


def _pack_step(step: BloomBuildStep) -> _StepBody:
    return _StepBody(step.kind.name, *step.target, step.build, step.after_id)


def _unpack_step(body: _StepBody) -> BloomBuildStep:
    require_kind(body.kind, body.target_type)
    if body.after_id and not body.build:  # a new filter would lack the actors up to after_id
        raise InvalidMessage("after_id without a build")
    target = Target(body.target_type, body.target_id)
    return BloomBuildStep(KINDS[body.kind], target, body.build, body.after_id)


REACTIONS: Queue[ReactionEvent] = Queue(
    message_codec("reactions", _ReactionBody, _unpack_event, _pack_event, protocol=PROTOCOL),
    batch_size=4_000,  # several transactions, between which Redis and MySQL overlap
    window_s=1,
    max_concurrency=8,
)
"""Events, in any order: versions order them."""

ACKNOWLEDGEMENTS: Queue[Unacknowledged] = Queue(
    message_codec(
        "acknowledgements",
        _UnacknowledgedBody,
        _unpack_unacknowledged,
        _pack_unacknowledged,
        protocol=PROTOCOL,
    )
)
"""Commits that Redis did not accept, and keys to read again."""

REBUILDS: Queue[BloomBuildStep] = Queue(
    message_codec("rebuilds", _StepBody, _unpack_step, _pack_step),
    batch_size=1,
    visibility_s=361,
    max_concurrency=2,
    retention_days=4,
    retry=RetryPolicy(max_wait_s=4 * 3_600),  # the gate requests the build again
)
"""Targets whose Bloom filter has to be built."""

FOLLOWS: Queue[Sequence[Pair]] = Queue(
    message_codec(
        "follows", Annotated[list[tuple[ID, ID]], Meta(min_length=1, max_length=MAX_PAIRS)]
    )
)
"""Follows that may have changed; the feed consumes it."""
