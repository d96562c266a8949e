"""Mutations of the protocol, each of which breaks one rule; the model must find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from plaza.follows import FollowLimit, follow_user
from plaza.infra.clock import Deadline
from plaza.reactions import FOLLOW, Outcome, Target, queries, react
from tests.model.reactions_model import rewrite


class Mutation(NamedTuple):
    """A replaced text of a script, and the troubles that find it soonest.
    ``script`` is '' for a mutation of Python only, see ``_IN_PYTHON``."""

    script: str
    old: str
    new: str
    troubles: tuple[str, ...]


MUTATIONS: Mapping[str, Mutation] = {
    # UNCHANGED is no assertion: it is neither recorded nor published.
    "assertions": Mutation(
        "GATE",
        "  changed = was ~= want",
        "  changed = was ~= want if not changed then return {'UNCHANGED', now, total, 1, 0} end",
        ("away", "late", "queue"),
    ),
    "order": Mutation(
        "APPLY",
        "elseif db_version == meta.db_version + 1 then",
        "elseif db_version > meta.db_version then",
        ("none", "drops"),
    ),
    "deadline": Mutation(
        "GATE", "if now > tonumber(ARGV[4]) then", "if false then", ("late", "all")
    ),
    "nonce": Mutation("GATE", "if of_request == nonce then", "if false then", ("replies",)),
    "lease": Mutation(
        "HYDRATE",
        "if redis.call('GET', lease) ~= ARGV[2] then",
        "if false then",
        ("drops", "kills"),
    ),
    "fence": Mutation(
        "HYDRATE",
        "if tonumber(redis.call('GET', fence) or 0) > db_version then",
        "if false then",
        ("away", "all"),
    ),
    "base move": Mutation(
        "APPLY", "elseif is_new and base ~= states[i] then", "elseif false then", ("none", "drops")
    ),
    "filter's second write": Mutation(
        "APPLY",
        "if meta.filling > 0 then bloom_add_all(filling, meta.filling, actors) end",
        "",
        ("none", "drops"),
    ),
    "row_requests": Mutation(
        "GATE",
        "if not (at and ARGV[8] and tonumber(ARGV[9]) >= tonumber(at)) then",
        "if not ARGV[8] then",
        ("none", "drops"),
    ),
    "an applied row ends its row request": Mutation(
        "APPLY",
        "if redis.call('EXISTS', row_requests) == 1 then"
        " redis.call('HDEL', row_requests, unpack(actors)) end",
        "",
        ("none", "drops"),
    ),
    "reign": Mutation("READ_META", "if m[1] ~= reign then return nil end", "", ("rollback", "all")),
    "the seal of a filter": Mutation(
        "STATE", "if redis.call('GETBIT', bloom, filter) == 0 then", "if false then", ("drops",)
    ),
    "drop keeps the outbox": Mutation(
        "REBASE", "redis.call('HDEL', outbox, unpack(done))", "", ("drops", "kills")
    ),
    "the rows of entries when loading": Mutation(
        "REBASE", "if base ~= state then", "if false then", ("drops", "kills")
    ),
    "the floor": Mutation("APPLY", "if meta.floor > 0 then", "if false then", ("away", "late")),
    "commits wait ahead": Mutation(
        "APPLY", "redis.call('HSET', ahead, db_version_text, total .. '|' .. text)", "", ("none",)
    ),
    "the fence of an announced read": Mutation(
        "STORE_READ",
        "if current[1] == fence and tonumber(current[2]) <= tonumber(version) then",
        "if tonumber(current[2] or 0) <= tonumber(version) then",
        ("drops", "flush"),
    ),
    "an actor leaves the first page": Mutation(
        "APPLY", "changed = changed or listed[actor] or", "changed = changed or", ("none", "queue")
    ),
    "an actor enters the first page": Mutation(
        "APPLY",
        "or states[i] ~= '0' and tonumber(versions[i]) <= last",
        "",
        ("away", "late", "all"),
    ),
    "the version of the first page": Mutation(
        "CACHE_EARLIEST", "or tonumber(m[1]) > tonumber(ARGV[2])", "", ("none", "queue")
    ),
    "the deadline of a provisional event": Mutation("", "", "", ("late queue",)),
    "the late answer of a failed send": Mutation("", "", "", ("late queue",)),
    "a repeated follow passes the gate": Mutation("", "", "", ("away", "all")),
}

# The gate has a check of its own, or makes a decision in two places.
_ALSO_IN_GATE = {
    "reign": ("if reign ~= ARGV[5] then", "if false then"),
    "assertions": ("local is_new = base and", "local is_new = changed and base and"),
}
# Scripts by the included text that a mutation replaces.
_INCLUDED_BY: Mapping[str, Sequence[str]] = {
    "": (),
    "READ_META": ("READ", "APPLY", "HYDRATE", "SWEEP", "BEGIN_BLOOM", "FIND_DENIED"),
    "STATE": ("READ", "GATE"),
}


def _publish_changes_only(patch: pytest.MonkeyPatch) -> None:
    publish = react.publish

    def publish_changed(event: Any) -> bool:
        return True if event.version_us == 1 else publish(event)

    patch.setattr(react, "publish", publish_changed)


def _send_without_deadline(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(react, "replace", lambda event, **_: event)


class _NoWait(Deadline):
    """A deadline that callers do not wait for."""

    left_s = 0.0


def _answer_failures_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(react, "Deadline", _NoWait)
    patch.setattr(react, "PROVISIONAL_ORDER_S", 0.05)


def _read_repeated_follows(patch: pytest.MonkeyPatch) -> None:
    def read(target: Target, actor_id: int) -> Outcome:
        [followers], _ = queries.read_counts([(FOLLOW, target)], actor_id)
        if not followers.viewer_state:
            raise FollowLimit("at the limit")
        return Outcome(True, followers.total, False)

    patch.setattr(follow_user, "_repeat_follow", read)


_IN_PYTHON: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "assertions": _publish_changes_only,
    "the deadline of a provisional event": _send_without_deadline,
    "the late answer of a failed send": _answer_failures_at_once,
    "a repeated follow passes the gate": _read_repeated_follows,
}


def mutate(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a function that applies a mutation with a patch."""
    mutation = MUTATIONS[name]

    def apply(patch: pytest.MonkeyPatch) -> None:
        if name in _IN_PYTHON:
            _IN_PYTHON[name](patch)
        for script in _INCLUDED_BY.get(mutation.script, (mutation.script,)):
            rewrite(patch, script, mutation.old, mutation.new)
        if name in _ALSO_IN_GATE:
            rewrite(patch, "GATE", *_ALSO_IN_GATE[name])

    return apply
