"""Rebuilding: the Bloom filter of a big target, from MySQL, in bounded steps."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

from plaza.infra import queues
from plaza.infra.observability import record
from plaza.infra.queues import BadRecord
from plaza.reactions import mysql_reactions, redis_reactions
from plaza.reactions.reacting import REBUILDS
from plaza.reactions.reactions import KINDS, MOST_ID, Kind, Target

PAGE = 250
PAGES_PER_STEP = 200


@dataclass(frozen=True, slots=True)
class Step:
    """Where a build stands: the name it has in Redis ('' not begun) and the last actor it added."""

    kind: Kind
    target: Target
    build: str
    after_id: int

    def to_json(self) -> str:
        """The step as it stands on the queue."""
        said: dict[str, Any] = {
            "kind": self.kind.name,
            "target_type": self.target.type,
            "target_id": self.target.id,
        }
        if self.build:
            said |= {"build": self.build, "after_id": self.after_id}
        return json.dumps(said, separators=(",", ":"))


def read_step(body: str) -> Step:
    """The step in ``body``. Raises BadRecord."""
    try:
        said: Any = json.loads(body)
        kind = KINDS[said["kind"]]
        target = Target(said["target_type"], said["target_id"])
        step = Step(kind, target, said.get("build", ""), said.get("after_id", 0))
        takes_it = target.type in kind.targets
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadRecord(f"no step of a rebuild: {type(error).__name__} {error}") from None
    ids_are_good = all(type(i) is int and 0 <= i <= MOST_ID for i in (target.id, step.after_id))
    has_begun = bool(step.build) or step.after_id == 0
    named = type(said.get("build", "")) is str
    if not (takes_it and ids_are_good and target.id > 0 and named and has_begun):
        raise BadRecord("no step of a rebuild")
    return step


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
