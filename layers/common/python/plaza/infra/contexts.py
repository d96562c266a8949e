"""Contexts of a deployment: each one declares what it offers once, in the manifest of its wing.

``plaza/<wing>/manifest.py`` has a tuple ``CONTEXTS``. It imports this module only, and names
everything else as text below the wing, ``"shops.export:SECTIONS"``, so that a function loads what
it uses. Functions that serve several contexts iterate over ``list_contexts``; none of them knows a
context by name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

WINGS = ("core", "people", "operate", "notifications", "social", "commerce", "integrations")
"""From the ground up."""

OPTIONAL = ("notifications", "social", "commerce", "integrations")
WINGS_OFF = "PLAZA_WINGS_OFF"
"""Variable with the names of the optional wings that a deployment leaves out, after commas."""

Names = tuple[str, ...]


class Context(NamedTuple):  # a dataclass takes 1 ms more of each cold start
    """What a context offers to functions that serve several contexts. All values are names."""

    name: str
    export: str | None = None
    erase: str | None = None  # (user_id, deadline) -> rows erased; 0: none is left
    hide: str | None = None  # as erase, of a closed account
    show: str | None = None  # (user_id, closed_at, deadline) -> rows shown when it opens again
    remains: str | None = None  # a condition in SQL: {user_id} has rows that an erasure deletes
    canary: str | None = None  # (user_id, id of the current post or 0) -> id of a hidden post
    compare: Names = ()
    counts: Names = ()  # rows that counters of other contexts count
    sweeps: Names = ()
    recovers: Names = ()  # after a failover of Redis
    expires: Names = ()
    maintains: str | None = None  # takes the event of MaintainLog
    warm: str | None = None  # a stage of WarmUp: works for the given seconds
    warm_targets: Names = ()  # loads what belongs to targets; returns more targets
    lag: Names = ()  # meters of what is left to do: read now and sampled
    gauges: Names = ()  # other meters, which are sampled only
    commands: str | None = None  # a module with operator commands
    types: Names = ()  # each a TargetSelects, whose name in lower case is the type's: "x.y:POST"
    recounts: Names = ()  # each a RecountedRows: rows besides reactions that totals count
    notified: Names = ()  # modules: a KIND of notifications besides reactions, ROWS, read_actors
    reviews: str | None = None  # module: what can be reviewed exists, and is locked
    may_review: str | None = None  # whether a user may name an order in a review
    review_totals: str | None = None  # module: how many reviews, and the sum of their scores
    listed: str | None = None  # module: texts of targets in lists of reactions
    follows: str | None = None  # consumes changed follows, which are sent to no queue without it
    refreshes: str | None = None  # projects announced targets: takes (type, id) of all types
    participates: str | None = None  # a module (infra.mysql.participants)
    announces: str | None = None  # a module (infra.queues.announcements)
    pushes: Names = ()  # kinds of notices
    resends: Names = ()  # functions that send spilled messages again


@cache
def list_wings() -> tuple[str, ...]:
    """Return the wings of this deployment, from the ground up. Raises ValueError for a name that is
    no optional wing."""
    off = {name.strip() for name in os.environ.get(WINGS_OFF, "").split(",")} - {""}
    if unknown := off - set(OPTIONAL):
        raise ValueError(
            f"{WINGS_OFF} has {sorted(unknown)}; only {', '.join(OPTIONAL)} can be off"
        )
    return tuple(wing for wing in WINGS if wing not in off)


@cache
def list_contexts() -> tuple[tuple[str, Context], ...]:
    """Return (wing, context) of all contexts of this deployment, wing by wing. Loads their
    manifests."""
    return tuple(
        (wing, context)
        for wing in list_wings()
        for context in import_module(f"plaza.{wing}.manifest").CONTEXTS
    )


def load(wing: str, name: str) -> Any:
    """Import what a manifest of ``wing`` names: ``module`` or ``module:attribute``."""
    module, _, attribute = name.partition(":")
    loaded = import_module(f"plaza.{wing}.{module}")
    return getattr(loaded, attribute) if attribute else loaded


def list_offers(relation: str) -> Iterator[tuple[str, str, str]]:
    """Yield (wing, context, name of what it offers as ``relation``). Loads manifests only."""
    for wing, context in list_contexts():
        names: Names | str | None = getattr(context, relation)
        for name in (names,) if isinstance(names, str) else names or ():
            yield wing, context.name, name


def offers(relation: str) -> Iterator[tuple[str, Any]]:
    """Yield (name of the context, what it offers as ``relation``), such as ``"gauges"``."""
    for wing, context, name in list_offers(relation):
        yield context, load(wing, name)
