"""Each test file leaves its process as it found it, so that files pass in any order and alone.

A plugin: it compares the state of the process before a file and after its last test, whose module
fixtures have ended then (session fixtures, too, at the last file). A difference is an error of
that test, which names the file and prints the difference.
"""

from __future__ import annotations

import locale
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator, Sized
from typing import Any

import pytest
from pybreaker import CircuitBreaker

from plaza.infra.runtime import clock, process
from plaza.infra.runtime.process import Lazy, LocalCache

State = dict[str, object]
"""Name of a part of the process -> its value."""

_OF_PYTEST = "PYTEST_CURRENT_TEST"


class ProcessGuard:
    """Compares the state before and after each file."""

    def __init__(self) -> None:
        self._before: State = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        """Read the state before the first file."""
        self._before = self._before or read_state()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Iterator[None]:
        """Compare the states after the last test of a file."""
        is_last = nextitem is None or nextitem.path != item.path
        try:
            yield
        except BaseException:
            self._before = {} if is_last else self._before
            raise
        if is_last:
            before, self._before = self._before, read_state()
            changes = find_changes(before, self._before)
            if changes:
                name = item.nodeid.partition("::")[0]
                lines = (f"{name} changed its process for the files after it:", *changes)
                pytest.fail("\n  ".join(lines), pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    """Start to guard the process."""
    config.pluginmanager.register(ProcessGuard(), "process_guard")


def read_state() -> State:
    """Return what a test may have changed, in about a millisecond."""
    umask = os.umask(0o077)
    os.umask(umask)
    state: State = {
        "working directory": os.getcwd(),
        "umask": oct(umask),
        "locale": locale.setlocale(locale.LC_ALL),
        "time zone": time.tzname,
        "sys.path": tuple(sys.path),
        "switch interval": sys.getswitchinterval(),
        "disabled log level": logging.root.manager.disable,
        "logger root": _read_logger(logging.root),
    }
    state |= {f"environment {name}": value for name, value in os.environ.items()}
    state |= {f"signal {number}": signal.getsignal(number) for number in signal.valid_signals()}
    for name, logger in logging.root.manager.loggerDict.items():
        if isinstance(logger, logging.Logger):
            state[f"logger {name}"] = _read_logger(logger)
    state |= {f"clock {name}": value for name, value in vars(clock).items() if callable(value)}
    for kept in [getattr(reset, "__self__", None) for reset in process._resets] + process._caches:
        state[f"cache {id(kept)}"] = _count_kept(kept)
    state.pop(f"environment {_OF_PYTEST}", None)
    return state


def find_changes(before: State, after: State) -> list[str]:
    """Return a line for each part that differs.

    No change are an emptied cache, and a logger that a library has created at its import.
    """
    if before == after:
        return []
    changes = []
    for name in sorted(before.keys() | after.keys()):
        kind, _, of_kind = name.partition(" ")
        old, new = before.get(name), after.get(name)
        if kind == "cache" and new and old != new:
            changes.append(f"cache {_find_name(int(of_kind))}: {old or 0} -> {new} values")
        elif kind != "cache" and old != new and not (kind == "logger" and old is None):
            changes.append(f"{name}: {old!r} -> {new!r}")
    return sorted(changes)  # ids of caches have no order


def _count_kept(kept: Any) -> int:
    """Return how many values a part of Plaza keeps for the life of the process."""
    if isinstance(kept, Lazy):
        return int(kept.peek() is not None)
    if isinstance(kept, LocalCache):
        return len(kept._entries)
    if isinstance(kept, CircuitBreaker):
        return int(kept.current_state != "closed")
    if hasattr(kept, "cache_info"):
        return int(kept.cache_info().currsize)
    return len(kept) if isinstance(kept, Sized) else 0


def _find_name(kept_id: int) -> str:
    """Return the name of what Plaza keeps, as ``plaza.infra.mysql.mysql._connection``."""
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith(("plaza.", "tests.")):
            for name, value in list(vars(module).items()):
                if kept_id in (id(value), id(getattr(value, "breaker", None))):
                    return f"{module_name}.{name}"
    return "of an object"


def _read_logger(logger: logging.Logger) -> tuple[object, ...]:
    """Return level, switches, handlers, filters, and levels whose cached answer is out of date."""
    lowest = max(logger.getEffectiveLevel(), logger.manager.disable + 1)
    return (
        logger.level,
        logger.propagate,
        logger.disabled,
        tuple(
            (handler, handler.level)
            for handler in logger.handlers
            if not isinstance(handler, logging.NullHandler)
        ),
        tuple(logger.filters),
        tuple(level for level, answer in logger._cache.items() if answer != (level >= lowest)),  # type: ignore[attr-defined]
    )
