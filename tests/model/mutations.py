"""Mutations of the protocol, each of which breaks one rule; the model must find them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from greenlet import getcurrent, greenlet

from plaza.infra import redis
from plaza.reactions import failover_recovery, mysql_reactions, react, reign_guard
from tests.model.masters import Masters
from tests.model.reactions_model import rewrite


class Mutation(NamedTuple):
    """A replaced text of a script, and the troubles that find it soonest."""

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
}


def _name_by_process(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Masters, "name", lambda self, server: f"process{server.database}")


def _read_the_name_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(redis, "_is_role_due", lambda name: False)


def _believe_a_replica(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Masters, "name", lambda self, server: server.reign)
    patch.setattr(Masters, "may_write", lambda self, server: True)


def _pass_no_guard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reign_guard, "pass_guard", lambda *_: True)


def _store_reigns_after_the_log_was_read(patch: pytest.MonkeyPatch) -> None:
    store, acknowledge = (
        reign_guard.store_reigns,
        failover_recovery.acknowledge_after_failover,
    )
    late: dict[greenlet, Any] = {}

    def acknowledge_first() -> int:
        queued = acknowledge()
        if masters := late.pop(getcurrent(), None):
            store(masters)
        return queued

    patch.setattr(
        reign_guard, "store_reigns", lambda masters: late.update({getcurrent(): masters})
    )
    patch.setattr(failover_recovery, "acknowledge_after_failover", acknowledge_first)


def _succeed_any_reign(patch: pytest.MonkeyPatch) -> None:
    def pass_guard(cursor: Any, stored: Any, masters: Any, targets: Any) -> bool:
        if masters and stored:
            master = masters[next(iter(masters))]
            mysql_reactions.succeed_reign(cursor, 0, stored[0], master.reign)
        return masters is not None

    patch.setattr(reign_guard, "pass_guard", pass_guard)


REIGN_MUTATIONS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a reign's name": _name_by_process,
    "the name is read again": _read_the_name_once,
    "a replica has no name": _believe_a_replica,
    "the reign guard": _pass_no_guard,
    "the guard is stored before the log is read": _store_reigns_after_the_log_was_read,
    "a successor names its predecessor": _succeed_any_reign,
}

# The gate has a check of its own, or makes a decision in two places.
_ALSO_IN_GATE = {
    "reign": ("if reign ~= ARGV[5] then", "if false then"),
    "assertions": ("local is_new = base and", "local is_new = changed and base and"),
}
_WITH_META = ("READ", "APPLY", "HYDRATE", "SWEEP", "BEGIN_BLOOM", "FIND_DENIED")


def mutate(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a function that applies a mutation with a patch."""
    if name in REIGN_MUTATIONS:
        return REIGN_MUTATIONS[name]
    mutation = MUTATIONS[name]

    def apply(patch: pytest.MonkeyPatch) -> None:
        scripts = _WITH_META if mutation.script == "READ_META" else (mutation.script,)
        for script in scripts:
            rewrite(patch, script, mutation.old, mutation.new)
        if name in _ALSO_IN_GATE:
            rewrite(patch, "GATE", *_ALSO_IN_GATE[name])
        if name == "assertions":
            publish = react.publish

            def publish_changed(event: Any) -> bool:
                return True if event.version_us == 1 else publish(event)

            patch.setattr(react, "publish", publish_changed)

    return apply
