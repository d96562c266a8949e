"""Cases: the largest calls of a script, at the limits that its callers declare."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.harness import Harness
from plaza.infra.redis.scripts import Script


@dataclass(frozen=True, slots=True)
class Case:
    """``prepare`` brings Redis to its worst state; ``act`` is measured.

    ``act`` calls the product's own function with as much as one run of ``script`` gets. Its
    argument is the number of the run, from 0.
    """

    name: str
    script: Script
    prepare: Callable[[Harness], object]
    act: Callable[[int], object]


def prepare_nothing(harness: Harness) -> None:
    """Prepare nothing: an empty Redis is enough."""
