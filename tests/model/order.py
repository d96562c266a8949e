"""What the screens of a model show: totals with their order tokens, of every reply and answer.

The names are of the guarantee in docs/live-numbers.md. A screen keeps the highest token, so

  EQUAL   equal tokens have equal totals
  ORDER   a reply of the master has no lower token than the reply before it: a screen that has
          shown the later one would show the earlier one again, or never the later one
  UNSEE   what a total includes of an actor, a total with a higher token includes, too, unless a
          store lost data in between
  SETTLE  when all is stored, the next answer has the highest token, and the number of rows
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plaza.core.reactions import Kind, Target, redis_keys
from plaza.core.reactions import at as order_tokens
from plaza.core.reactions.model import Count
from plaza.infra.redis import connections
from tests.model.replica import read_rows_at

Pair = tuple[Kind, Target]
_KEYS_OF_READ = 5


def find_read_totals(
    command: Sequence[Any], reply: Any, targets: Sequence[Pair]
) -> list[tuple[Pair, int, str | None]]:
    """Return (target, total, token) of each loaded target in a reply of read.lua."""
    metas = {redis_keys.keys_of(kind.name, target).meta: (kind, target) for kind, target in targets}
    keys = command[3 : 3 + command[2] : _KEYS_OF_READ]
    return [
        (metas[key], of_target[0], order_tokens.parse_order(*of_target[3:]))
        for key, of_target in zip(keys, reply, strict=True)
        if key in metas and isinstance(of_target, list)
    ]


@dataclass
class Screens:
    """All that the screens of a run may show."""

    totals: dict[tuple[Pair, str], int] = field(default_factory=dict)
    newest: dict[Pair, str] = field(default_factory=dict)  # of the master
    highest: dict[Pair, str] = field(default_factory=dict)  # also of one that was deposed
    included: dict[Pair, tuple[str, int, Mapping[int, int]]] = field(default_factory=dict)
    broken: str = ""  # by a reply: an error of the product's client would be retried

    def see_reply(self, pair: Pair, total: int, at: str | None, *, is_of_master: bool) -> None:
        """Record a reply of a script, in the order in which Redis ran them."""
        if at is None:
            return
        name = f"{pair[0].name} {pair[1]}"
        before = self.totals.setdefault((pair, at), total)
        if before != total:
            self.broken = self.broken or f"EQUAL {name}: {at} has {before} and {total}"
        if is_of_master:
            newest = self.newest.get(pair, "")
            if at < newest:
                self.broken = self.broken or f"ORDER {name}: {at} ({total}) after {newest}"
            self.newest[pair] = at
        self.highest[pair] = max(self.highest.get(pair, ""), at)

    def check(self) -> None:
        """Check the replies up to now."""
        assert not self.broken, self.broken

    def see_answer(self, pair: Pair, total: int | None, at: str | None) -> None:
        """Check that the token of an answer is the one of its total."""
        if at is not None:
            known = self.totals.get((pair, at))
            name = f"{pair[0].name} {pair[1]}"
            assert known == total, f"EQUAL {name}: {at} has {known}, answered with {total}"

    def see_state(self, pair: Pair, losses: int) -> None:
        """Check that a loaded target includes what a total with a lower token included. ``losses``:
        how often a store lost data up to now."""
        kind, target = pair
        keys, client = redis_keys.keys_of(kind.name, target), connections.client()
        meta, outbox = client.hgetall(keys.meta), client.hgetall(keys.outbox)
        at = order_tokens.parse_order(meta["db_version"], meta.get("loaded"), meta.get("changes"))
        included = {
            actor: row.version
            for actor, row in read_rows_at(kind, target, int(meta["db_version"])).items()
        }
        for actor, entry in outbox.items():
            version = int(entry.split(":")[1])
            included[int(actor)] = max(version, included.get(int(actor), 0))
        shown, losses_then, then = self.included.get(pair, ("", losses, {}))
        if losses_then == losses and at >= shown:
            unseen = {actor: v for actor, v in then.items() if included.get(actor, 0) < v}
            assert not unseen, f"UNSEE {kind.name} {target}: {unseen} of {shown} are not in {at}"
        if at >= shown:
            self.included[pair] = at, losses, included

    def check_settled(self, pair: Pair, count: Count, rows: int) -> None:
        """Check the answer that all screens get when all is stored."""
        self.check()
        name, highest = f"{pair[0].name} {pair[1]}", self.highest.get(pair, "")
        assert (count.at or "") >= (highest or "1"), (
            f"SETTLE {name}: screens keep {highest}, the answer has {count.at}"
        )
        assert count.total == rows, f"SETTLE {name}: {count.total}, {rows} rows"
