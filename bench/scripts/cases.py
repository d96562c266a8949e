"""Cases: the worst that a script may be asked for, at the limits that its callers declare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.harness import Harness
from plaza.infra.lua import Script


@dataclass(frozen=True, slots=True)
class Case:
    """``prepare`` brings Redis to its worst state; ``act`` does what is measured.

    ``act`` calls the product's own function, with as much as one run of ``script`` is ever given.
    It gets the number of the run, from 0 on.
    """

    name: str
    script: Script
    prepare: Callable[[Harness], object]
    act: Callable[[int], object]


def prepare_nothing(harness: Harness) -> None:
    """What a case prepares that needs nothing but an empty Redis."""
