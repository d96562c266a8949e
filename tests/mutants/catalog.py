"""All mutants, from the modules of the folder ``lists``."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from tests.mutants import lists
from tests.mutants.mutant import Mutant


@cache
def load_mutants() -> tuple[Mutant, ...]:
    """Return the mutants of all lists, in the order of their names."""
    mutants: list[Mutant] = []
    for module in pkgutil.iter_modules(lists.__path__, f"{lists.__name__}."):
        mutants += importlib.import_module(module.name).MUTANTS
    return tuple(sorted(mutants, key=lambda mutant: mutant.name))
