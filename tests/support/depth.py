"""How much a test plays: a form of seconds in `make test`, all of it in `make test-deep`."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")
DEEP = "PLAZA_TEST_DEEP"  # set by `python -m tests --deep`
IS_DEEP = os.environ.get(DEEP) == "1"


def choose(shallow: T, deep: T) -> T:
    """Return ``deep`` in `make test-deep`, else ``shallow``. Its tests are marked ``sampled``."""
    return deep if IS_DEEP else shallow


def read_count(variable: str, shallow: int, deep: int) -> int:
    """Return the number in an environment variable, else ``choose(shallow, deep)``."""
    return int(os.environ.get(variable) or choose(shallow, deep))
