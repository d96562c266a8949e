"""A list that Redis derives from MySQL, compared with what MySQL has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import NamedTuple

_MAX_NAMED = 5


class ListState(NamedTuple):
    """``observed``: a text that changes with the list in Redis. ``differences``: what differs from
    MySQL, as text; empty if nothing does."""

    observed: str
    differences: str


def compare_entries(cached: Mapping[str, int], recorded: Mapping[str, int]) -> ListState:
    """Compare entry -> value of a list in Redis with the entries that MySQL had after it."""
    digest = sha256(repr(sorted(cached.items())).encode()).hexdigest()[:32]
    both = cached.keys() & recorded.keys()
    parts = [
        f"{difference}: {_join_first(entries)}"
        for difference, entries in (
            ("in Redis and not in MySQL", cached.keys() - both),
            ("in MySQL and not in Redis", recorded.keys() - both),
            ("another value", {entry for entry in both if cached[entry] != recorded[entry]}),
        )
        if entries
    ]
    return ListState(f"{len(cached)} {digest}", "; ".join(parts))


def _join_first(entries: Collection[str]) -> str:
    shown = ", ".join(f"{entry:.40}" for entry in sorted(entries)[:_MAX_NAMED])
    rest = len(entries) - _MAX_NAMED
    return shown if rest <= 0 else f"{shown} and {rest} more"
