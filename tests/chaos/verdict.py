"""Judgement of the samples and MySQL against the expectations of a cell. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.chaos.expectations import (
    EXPECTED,
    EXPECTED_OF_SWAPS,
    MAX_EXTRA_ANSWER_S,
    MAX_RECOVERY_S,
)
from tests.chaos.traffic import Operation, Sample

# Labels that are correct between a fault and its end, for any fault.
DEGRADED = {"503 unavailable", "200 inexact", "202 inexact", "401 code-refused"}
DEGRADED |= {"202 without a code"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One operation under one fault. ``recovery_s``: first normal answer after the end."""

    operation: str
    labels: Counter[str]
    slowest_s: float
    baseline_s: float
    recovery_s: float | None
    promised: int
    lost: int
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Row:
    """All operations under one fault, and the time until the queues were empty."""

    name: str
    how: str
    cells: Sequence[Cell]
    quiet_s: float
    load: float
    problems: list[str]


def judge(
    name: str,
    operation: Operation,
    samples: Sequence[Sample],
    began_s: float,
    ended_s: float,
    undone_s: float,
    promised: int,
    lost: Sequence[str],
) -> Cell:
    """Judge the samples of one operation. A fault lasted from ``began_s`` to ``ended_s``; it has
    the answers in between to requests in between."""
    expected = {**EXPECTED, **EXPECTED_OF_SWAPS}[name][operation.name]
    normal = set(operation.normal)
    before = [s for s in samples if s.at_s + s.took_s < began_s]
    during = [s for s in samples if s.at_s >= began_s and s.at_s + s.took_s <= ended_s]
    touched = [s for s in samples if s.at_s + s.took_s >= began_s and s.at_s <= undone_s]
    after = [s for s in samples if s.at_s >= undone_s]
    labels = Counter(s.label for s in during)
    baseline_s = max((s.took_s for s in before), default=0.0)
    slowest_s = max((s.took_s for s in touched), default=0.0)
    back = next((s.at_s + s.took_s - undone_s for s in after if s.label in normal), None)
    problems = [
        f"answers {label} ({labels[label]})" for label in labels if label not in expected.allowed
    ]
    problems += [f"never answers {label}" for label in expected.required if label not in labels]
    allowed = expected.allowed | normal | DEGRADED
    # Cold starts before the fault are not part of the baseline.
    beside = [s for s in samples if s.at_s + s.took_s >= began_s and s not in during]
    others = Counter(s.label for s in beside if s.label not in allowed)
    problems += [f"answers {label} ({count}) beside the fault" for label, count in others.items()]
    if not during:
        problems.append("was not answered once during the fault")
    if slowest_s > MAX_EXTRA_ANSWER_S + baseline_s:
        problems.append(f"took {slowest_s:.1f} s")
    if back is None or back > MAX_RECOVERY_S:
        problems.append("did not come back")
    problems += [f"lost: {what}" for what in lost[:5]]
    return Cell(operation.name, labels, slowest_s, baseline_s, back, promised, len(lost), problems)
