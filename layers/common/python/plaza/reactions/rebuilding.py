"""Rebuilding: the Bloom filter of a big target, from MySQL, in bounded steps."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from plaza.infra import messages, queues
from plaza.infra.messages import ID, BadRecord, read, text, whole
from plaza.infra.observability import record
from plaza.reactions import mysql_reactions, redis_reactions
from plaza.reactions.reacting import REBUILDS
from plaza.reactions.reactions import KIND, KINDS, MOST_ID, TARGET_TYPE, Kind, Target, require_kind

PAGE = 250
PAGES_PER_STEP = 200
MAX_BUILD = 64  # characters of the name of a build


@dataclass(frozen=True, slots=True)
class Step:
    """Where a build stands: the name it has in Redis ('' not begun) and the last actor it added."""

    kind: Kind
    target: Target
    build: str
    after_id: int

    def to_json(self) -> str:
        """The step as it stands on the queue."""
        fields: dict[str, Any] = {
            "kind": self.kind.name,
            "target_type": self.target.type,
            "target_id": self.target.id,
        }
        if self.build:
            fields |= {"build": self.build, "after_id": self.after_id}
        return messages.encode(fields)


def read_step(body: str) -> Step:
    """The step in ``body``. Raises BadRecord."""
    fields = messages.read_object(body)
    kind, target_type = read(fields, "kind", KIND), read(fields, "target_type", TARGET_TYPE)
    require_kind(kind, target_type)
    target = Target(target_type, read(fields, "target_id", ID))
    build = read(fields, "build", text(0, MAX_BUILD), default="")
    after_id = read(fields, "after_id", whole(0, MOST_ID), default=0)
    if after_id and not build:  # its filter would lack the actors up to there
        raise BadRecord("after_id is of a build without a name")
    return Step(KINDS[kind], target, build, after_id)


def rebuild(steps: list[Step]) -> None:
    """Take each build one step further: 50,000 actors, then the rest through the queue again.

    Safe to repeat. Raises RedisDown, MysqlDown, QueueDown.
    """
    for step in steps:
        _take(step)


def _take(step: Step) -> None:
    build, after_id = step.build, step.after_id
    if not build:
        build = secrets.token_hex(8)
        total, _ = mysql_reactions.read_counters([(step.kind, step.target)])[0]
        code = redis_reactions.begin_bloom(step.kind, step.target, build, total)
        if code != "BEGUN":
            record("rebuild_refused", target=str(step.target), code=code)
            return
    code = "FILLED"
    for _ in range(PAGES_PER_STEP):
        actor_ids = mysql_reactions.read_actors(step.kind, step.target, after_id, PAGE)
        last = len(actor_ids) < PAGE
        code = redis_reactions.fill_bloom(step.kind, step.target, build, actor_ids, last)
        if code != "FILLED":
            break
        after_id = actor_ids[-1]
    else:
        queues.send(REBUILDS, Step(step.kind, step.target, build, after_id).to_json())
    record("rebuild_stepped", target=str(step.target), code=code, after_id=after_id)
