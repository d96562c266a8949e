"""The newest totals that an app was answered, ordered by their tokens."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# Built-in kind -> the field of the API that has its total.
BUILT_IN = {"like": "likes", "collect": "collects", "follow": "followers"}
NAMES = (*BUILT_IN.values(), "comments")


class Known(NamedTuple):
    """A total and its order token; None: it may lack recent reactions."""

    total: int
    at: str | None


def is_newer(new: Known, known: Known | None) -> bool:
    """Return whether ``new`` replaces ``known``: the rule of every client, cache and pipe."""
    if known is None:
        return True
    if new.at is None:
        return known.at is None and new.total != known.total
    return known.at is None or new.at > known.at


class Totals:
    """Totals of the last targets that were offered, so that a cache of an app never goes back.

    All threads of a process may share one.
    """

    def __init__(self, max_targets: int = 2_000) -> None:
        self._max_targets = max_targets
        self._known: OrderedDict[tuple[str, str], dict[str, Known]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, type: str, id: str) -> Mapping[str, Known]:  # noqa: A002 - as in the contract
        """Return the totals of a target; none when no answer had it.

        ``likes``, ``collects``, ``followers``, ``comments``, and the deployment's kinds by name.
        """
        with self._lock:
            return dict(self._known.get((type, id), {}))

    def offer(self, type: str, item: Mapping[str, Any]) -> bool:  # noqa: A002 - as in the contract
        """Take over the newer totals of an object of the API. Return whether one was newer.

        ``item``: a post, comment, review or user, or an item of ``/totals``, which has an id.
        """
        key = (type, str(item["id"]))
        changed = False
        with self._lock:
            known = self._known.setdefault(key, {})
            self._known.move_to_end(key)
            for name, new in _read_totals(item):
                if is_newer(new, known.get(name)):
                    known[name] = new
                    changed = True
            if len(self._known) > self._max_targets:
                self._known.popitem(last=False)
        return changed


def _read_totals(item: Mapping[str, Any]) -> Iterator[tuple[str, Known]]:
    """Yield the totals of an object of the API: its fields, then its kinds of reactions."""
    for name in NAMES:
        if isinstance(total := item.get(name), int):
            yield name, Known(total, item.get(f"{name}_at"))
    for kind, read in item.get("reactions", {}).items():
        yield BUILT_IN.get(kind, kind), Known(read["total"], read["at"])
