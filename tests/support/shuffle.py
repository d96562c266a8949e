"""PLAZA_TEST_SEED=7: files, and tests in a file, in the random order of this seed.

A plugin. The stages of tests/conftest.py stay: tests that need their stack quiet, and those that
take parts of it away, come after its others.
"""

from __future__ import annotations

import os
import random

import pytest
from _pytest.terminal import TerminalReporter

SEED = os.environ.get("PLAZA_TEST_SEED", "")
_REPEAT = f"random order; PLAZA_TEST_SEED={SEED} repeats it"


def shuffle(items: list[pytest.Item]) -> None:
    """Shuffle the files, and the tests in each, when a seed is given."""
    if SEED:
        dice = random.Random(SEED)
        files = {path: dice.random() for path in dict.fromkeys(item.path for item in items)}
        ranks = {item: (files[item.path], dice.random()) for item in items}
        items.sort(key=ranks.__getitem__)


def pytest_report_header() -> list[str]:
    """Print the seed before the tests."""
    return [_REPEAT] if SEED else []


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print the seed after the tests."""
    if SEED:
        terminalreporter.line(_REPEAT)
