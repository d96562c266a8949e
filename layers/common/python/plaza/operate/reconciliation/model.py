"""Runs, their parts and cycles, and the messages of reconciliation. No I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

from plaza.infra.derived.comparisons import CYCLE_S, Finding, Tally
from plaza.infra.runtime.codec import ASCII, ID, Meta, Struct, field

MAX_DETAIL_CHARS = 400
MAX_FINDINGS_PER_MESSAGE = 100
_DAY_S = 86_400
MAX_HASTE = 4  # ordinary quotas that a run takes at most of a cycle that is late


class NewPart(NamedTuple):
    """A part that a run begins with."""

    name: str
    cursor: str = ""
    quota: int | None = None


class Cycle(NamedTuple):
    """The open cycle of a comparison, or of the log.

    ``open_s``: seconds since it began. ``ended_s``: since the end of the latest complete one, None
    before the first.
    """

    cursor: str
    compared: int
    expected: int
    open_s: int
    ended_s: int | None


class ComparePart(Struct, frozen=True):
    """A message: process the next steps of a part."""

    run_id: ID = field(name="run")
    part: Annotated[str, Meta(min_length=1, max_length=255, pattern=ASCII)]


class RepairFindings(Struct, frozen=True):
    """A message: repair these findings."""

    finding_ids: Annotated[
        tuple[ID, ...], Meta(min_length=1, max_length=MAX_FINDINGS_PER_MESSAGE)
    ] = field(name="findings")


class Example(NamedTuple):
    finding: Finding
    found_at: datetime
    repaired_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunReport:
    """``ended_at``: None until the run has ended. ``reason_counts``: reason -> findings."""

    run_id: int
    started_at: datetime
    ended_at: datetime | None
    tally: Tally
    differing: int
    repaired: int
    reason_counts: Mapping[str, int]
    examples: Sequence[Example]

    @property
    def is_resolved(self) -> bool:
        """Whether the run has ended and all its findings are repaired."""
        return self.ended_at is not None and self.repaired >= self.differing


def compute_quota(compared: int, left: int, open_s: float, interval_s: float) -> int:
    """Return how many of the ``left`` subjects of a cycle a run compares, so that the cycle ends
    28 days after it began.

    ``compared``: subjects so far. ``open_s``: age of the cycle. ``interval_s``: time between runs.
    A cycle that is late takes four ordinary quotas at most.
    """
    interval_s = min(max(interval_s, _DAY_S), CYCLE_S)
    left_s = CYCLE_S - max(open_s, 0)
    limit = math.ceil(MAX_HASTE * (compared + left) * interval_s / CYCLE_S)
    if left_s <= interval_s:  # the last run of the cycle: ``left`` may be an underestimate
        return limit
    return min(math.ceil(left * interval_s / left_s), limit)
