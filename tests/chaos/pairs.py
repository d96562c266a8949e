"""Every two faults at the same time: the pairs, and what must hold after each.

A pair is short and makes few promises; the queues are emptied only after all pairs of the same
first fault. Any answer of the contract is allowed, but every answer must be true, and no promise
may be lost.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.chaos.expectations import EXPECTED, HELD
from tests.chaos.traffic import Operation, Rows, Sample
from tests.chaos.verdict import DEGRADED

UNREPLICATED = "cluster dying-unreplicated"  # not in the matrix: tests/cluster has it alone
# Of the failovers there and back; tests/chaos/swaps.py has them alone.
SWAPS = {"redis swapping", "redis swapping-unreplicated"}
# Without the one that takes longer than a pair, and is ended by a function.
FAULTS = (*(cell for cell in EXPECTED if cell != HELD), UNREPLICATED, *sorted(SWAPS))
PAIR_S = 2.0  # of each fault; they start half a second apart
# The old master loses what it accepts after its replica was promoted.
_LOSES_NEWEST = {"redis failing-over", "redis swapping-unreplicated", UNREPLICATED}
_EMPTIES_REDIS = {"redis down", "redis emptied", "redis+mysql down"}


class Pair(NamedTuple):
    """Two faults, named as in the matrix."""

    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.first} × {self.second}"

    @property
    def in_start_order(self) -> list[str]:
        """Return the names in start order: SQS first, so that it refuses accepted reactions."""
        return sorted(self, key=lambda name: not name.startswith("sqs "))

    @property
    def destroys_only_copy(self) -> bool:
        """Return whether a 202 may have no copy: Redis loses what SQS and MySQL refuse."""
        return self.first == "redis+mysql down" and self.second.startswith("sqs ")

    @property
    def slug(self) -> str:
        """Return the name for the command line: ``redis-down*sqs-slow``."""
        return f"{self.first}*{self.second}".replace(" ", "-")


@dataclass(slots=True)
class PairResult:
    """Result of one pair. ``labels``: answers by operation; counts ``promised`` and ``lost``."""

    pair: Pair
    labels: dict[str, Counter[str]] = field(default_factory=dict)
    promised: int = 0
    lost: int = 0
    problems: list[str] = field(default_factory=list)


def choose_pairs() -> tuple[list[Pair], dict[Pair, str]]:
    """Return the pairs to play, grouped by first fault, and the reasons to skip the others."""
    played, skipped = [], {}
    for pair in itertools.starmap(Pair, itertools.combinations(_in_order(), 2)):
        if reason := find_reason_to_skip(pair):
            skipped[pair] = reason
        else:
            played.append(pair)
    return played, skipped


def find_reason_to_skip(pair: Pair) -> str | None:
    """Return why two faults exclude each other or test nothing together; None otherwise."""
    (part, kind), (other_part, other_kind) = (name.split() for name in pair)
    parts, other_parts = set(part.split("+")), set(other_part.split("+"))
    if parts & other_parts:
        return f"one {_name(parts & other_parts)} has one fault at a time"
    if "cluster" in parts | other_parts and "redis" in parts | other_parts:
        return "a stack has one Redis or a cluster"
    both = f"redis+mysql {kind}"
    if parts | other_parts == {"redis", "mysql"} and kind == other_kind and both in EXPECTED:
        return f"it is {both}, which the matrix has"
    if "sqs emptied" in pair and (set(pair) & _EMPTIES_REDIS):
        return "it destroys both copies of what is not saved, and a promise has two"
    if "sqs emptied" in pair and (set(pair) & _LOSES_NEWEST):
        return "it destroys both copies of what is not saved, and a promise has two"
    return None


def group(pairs: Sequence[Pair]) -> Iterator[tuple[str, list[Pair]]]:
    """Yield the pairs by their first fault."""
    for first, some in itertools.groupby(pairs, key=lambda pair: pair.first):
        yield first, list(some)


def judge_pair(
    pair: Pair,
    operations: Sequence[Operation],
    samples: Mapping[str, Sequence[Sample]],
    began_s: float,
    ended_s: float,
) -> PairResult:
    """Judge the answers between ``began_s`` and ``ended_s``."""
    result = PairResult(pair)
    for operation in operations:
        seen = [s for s in samples[operation.name] if began_s <= s.at_s + s.took_s <= ended_s]
        labels = result.labels[operation.name] = Counter(sample.label for sample in seen)
        allowed = DEGRADED | set(operation.normal)
        result.problems += [
            f"{operation.name} answers {label} ({count})"
            for label, count in labels.items()
            if label not in allowed
        ]
    return result


def count_lost_promises(
    results: Collection[PairResult], operations: Sequence[Operation], rows: Rows
) -> None:
    """Add the number of promises and of lost promises to each pair."""
    by_name = {str(result.pair): result for result in results}
    for operation in operations:
        for name, result in by_name.items():
            result.promised += operation.promises[name]
        for phase, what in operation.find_lost(rows):
            if phase in by_name:
                by_name[phase].lost += 1
                by_name[phase].problems.append(f"{operation.name} lost: {what}")


def render(results: Sequence[PairResult], skipped: Mapping[Pair, str], took_s: float) -> str:
    """Return a table of all pairs with broken and total promises."""
    lost, promised = sum(r.lost for r in results), sum(r.promised for r in results)
    wrong = [result for result in results if result.problems]
    lines = [
        f"{len(results)} pairs in {took_s / 60:.0f} minutes: {promised:,} promises,"
        f" {lost} lost; {len(wrong)} pairs not as expected, {len(skipped)} not played.",
        "",
        "| first | second: lost/promised |",
        "|---|---|",
    ]
    for first, some in itertools.groupby(results, key=lambda result: result.pair.first):
        cells = ", ".join(f"{item.pair.second} {item.lost}/{item.promised}" for item in some)
        lines.append(f"| {first} | {cells} |")
    lines += [""]
    for result in wrong:
        lines += [f"* **{result.pair}**: {problem}." for problem in result.problems[:3]]
    reasons = Counter(skipped.values())
    lines += [f"* {count} not played: {reason}." for reason, count in reasons.most_common()]
    return "\n".join(lines)


def _in_order() -> list[str]:
    """Return the sort key: faults of Redis and the cluster first, faults of SQS last."""
    order = ("redis", "redis+mysql", "cluster", "mysql", "sqs")
    return sorted(FAULTS, key=lambda name: order.index(name.split()[0]))


def _name(parts: Collection[str]) -> str:
    names = {"redis": "Redis", "mysql": "MySQL", "sqs": "SQS", "cluster": "cluster"}
    return " and ".join(sorted(names[part] for part in parts))
