"""Application of MySQL's commits to targets in Redis; see apply.lua."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from plaza.core.reactions.model import MAX_ROWS, Commit
from plaza.core.reactions.redis_hydration import FENCE_TTL_S, render_rows
from plaza.core.reactions.redis_keys import (
    idle_ttl_ms,
    keys_of,
    list_keys,
    run_on_known_nodes,
    term_of,
)
from plaza.core.reactions.settings import reaction_settings
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call, Command
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import group_by_tag
from plaza.infra.runtime import clock

MAX_AHEAD = 100  # commits of a target that wait for an earlier one
ROWS_OF_TARGET = 8  # cost of a target in a call, in rows
_KEYS_OF_APPLY = 10
_CALLS_AT_ONCE = 4  # of a target that one call does not finish; Redis serves others in between

APPLY = load_script(Path(__file__).with_name("lua") / "apply.lua")


class ApplyResult(NamedTuple):
    """The reply of apply.lua for one commit; its header has the codes."""

    code: str
    outbox_count: int
    rebuild: bool
    db_version: int


def apply_all(commits: Sequence[Commit]) -> list[ApplyResult]:
    """Apply commits to their targets, and drop the lists of their actors. One round trip, more when
    a target has more rows than one call applies. Raises RedisDown, UnknownProtocol."""
    expires_at_ms = clock.now_ms() + idle_ttl_ms()
    actors = dict.fromkeys((c.kind.name, row[0]) for c in commits for row in c.rows)
    lists = (key for actor in actors for key in list_keys(*actor))
    applied = _apply(commits, expires_at_ms, redis.delete_commands(lists))
    while more := [i for i, a in enumerate(applied) if a.code == "MORE"]:
        # The last commit of each target stands for the others. Calls without work cost little.
        last = {(commits[i].kind.name, commits[i].target): i for i in more}
        rest = [commits[i]._replace(is_new=False, rows=()) for i in last.values()]
        replies = _apply(rest * _CALLS_AT_ONCE, expires_at_ms, size=MAX_ROWS)
        of_target = {key: replies[n :: len(rest)] for n, key in enumerate(last)}
        for i in more:
            again = of_target[commits[i].kind.name, commits[i].target]
            rebuild = any(a.rebuild for a in (applied[i], *again))
            applied[i] = again[-1]._replace(rebuild=rebuild)
    return applied


def _apply(
    commits: Sequence[Commit],
    expires_at_ms: int,
    commands: Sequence[Command] = (),
    size: int | None = None,
) -> list[ApplyResult]:
    """Apply commits; ``size``: what each takes of a call, instead of its rows."""
    outboxes = [keys_of(c.kind.name, c.target).outboxes for c in commits]
    sizes = [size or len(commit.rows) + ROWS_OF_TARGET for commit in commits]
    groups = group_by_tag(outboxes, MAX_ROWS, sizes)
    nodes = [keys_of(commits[group[0]].kind.name, commits[group[0]].target) for group in groups]
    answers = run_on_known_nodes(
        nodes,
        lambda: [apply_call([commits[i] for i in group], expires_at_ms) for group in groups],
        commands,
    )
    applied: dict[int, ApplyResult] = {}
    for group, answer in zip(groups, answers[: len(groups)], strict=True):
        for i, (code, outbox_count, rebuild, db_version) in zip(group, answer, strict=True):
            applied[i] = ApplyResult(code, outbox_count, rebuild == 1, db_version)
    return [applied[i] for i in range(len(commits))]


def apply_call(commits: Sequence[Commit], expires_at_ms: int) -> Call:
    """Return a call of apply.lua for commits of one shard, with 250 rows at most in all."""
    all_keys = [keys_of(commit.kind.name, commit.target) for commit in commits]
    keys: list[str] = [all_keys[0].outboxes]
    args: list[str | int] = []
    for commit, of_target in zip(commits, all_keys, strict=True):
        keys += of_target[:_KEYS_OF_APPLY]
        rows = render_rows(commit.rows)
        args += [commit.db_version, commit.total, int(commit.is_new), rows, of_target.member]
    count = sum(len(commit.rows) for commit in commits)
    term, cap = term_of(all_keys[0]), reaction_settings().recent_cap
    return Call(APPLY, keys, (term, cap, MAX_AHEAD, expires_at_ms, FENCE_TTL_S, count, *args))
