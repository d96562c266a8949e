"""Calls of the gate, which decides reactions; see gate.lua."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from plaza.core.reactions.at import parse_order
from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import ReactionUndecided, Target
from plaza.core.reactions.redis_keys import TargetKeys, keys_of, term_of
from plaza.core.reactions.settings import reaction_settings
from plaza.infra.redis import masters
from plaza.infra.redis.commands import Argument
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.terms import Node
from plaza.infra.runtime import clock
from plaza.infra.runtime.settings import settings

GATE = load_script(Path(__file__).with_name("lua") / "gate.lua")
_MAX_ATTEMPTS = 3


class GateDecision(NamedTuple):
    """The reply of the gate; the header of gate.lua has the codes. ``at``: the order token."""

    code: str
    total: int = 0
    version_us: int = 0
    at: str | None = None
    rebuild: bool = False


def gate_keys(keys: TargetKeys) -> tuple[str, ...]:
    """Return the keys of gate.lua, in its order."""
    of_actors = (keys.meta, keys.outbox, keys.recent, keys.bloom, keys.filling, keys.row_requests)
    return (*of_actors, keys.toggles, keys.outboxes)


def gate(
    kind: Kind,
    target: Target,
    actor_id: int,
    on: bool,
    nonce: str,
    expected: tuple[bool, int] | None,
    *,
    only_repeat: bool = False,
    external_id: str | None = None,
) -> GateDecision:
    """Decide one reaction; ``expected``: (state, db_version) of the actor's row, if it was read;
    ``only_repeat``: record it only if it changes nothing; ``external_id``: of a target of the app,
    which its marker must have.

    One round trip. Raises RedisDown after the command's deadline, which the gate checks, so that no
    copy of the command runs later, and when the node's clock is ahead by more than
    ``redis.MAX_CLOCK_LEAD_US``; ReactionUndecided when the master changed during every attempt.
    """
    keys = keys_of(kind.name, target)
    script_keys = gate_keys(keys)
    optional: tuple[Argument, ...] = tuple(map(int, expected or ()))
    if external_id is not None:
        script_keys, optional = (
            (*script_keys, keys.existence),
            (*(optional or (0, -1)), external_id),
        )
    timeout_s = settings().redis_timeout_s
    for _ in range(_MAX_ATTEMPTS):
        began_s, term = clock.monotonic_s(), ""

        def args_for(node: Node, until_s: float = began_s + timeout_s) -> tuple[Argument, ...]:
            nonlocal term
            term = node.term
            return (
                actor_id,
                int(on),
                nonce,
                node.deadline_us(until_s),
                term,
                reaction_settings().outbox_limit,
                keys.member,
                int(only_repeat),
                *optional,
            )

        try:
            code, now_us, *rest = masters.run_on_node(GATE, script_keys, args_for)
        except RedisDown as error:
            if error.may_have_run:
                clock.sleep(max(0.0, began_s + timeout_s - clock.monotonic_s()))
            raise
        masters.observe_clock(keys.meta, now_us)
        is_of_term = term_of(keys) == term
        if not is_of_term:
            continue  # a new master may have run it with the arguments of the last one
        if code == "UNKNOWN":
            return GateDecision(code, rebuild=rest[0] == 1)
        if code != "LATE":
            total, version_us, *order = rest or (0, 0)
            at = parse_order(*order) if order else None
            return GateDecision(code, total, version_us, at)
    if not is_of_term:
        raise ReactionUndecided(
            f"Redis restarted during every change of {target.type} {target.id}; try again."
        )
    lead_s = (now_us - clock.now_us()) / 1e6
    raise RedisDown(
        f"Redis ran the gate after its deadline; its clock is {lead_s:.1f} s ahead",
        may_have_run=False,
    )
