"""Progress of a test session: a line each 20 s and for each failure, time by folder, commands.

A plugin (see pyproject.toml) of the process that the developer starts, not of xdist's workers.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict

import pytest
from _pytest.reports import TestReport
from _pytest.terminal import TerminalReporter

INTERVAL_S = 20
SESSION = "PLAZA_TEST_SESSION"  # name of this session beside others (tests/__main__.py)
PREFIX = ":: "  # of lines that are shown at once


def format_s(duration_s: float) -> str:
    """Return ``m:ss``."""
    return f"{int(duration_s) // 60}:{int(duration_s) % 60:02}"


class Progress:
    """Counts the results of a session."""

    def __init__(self, config: pytest.Config, session: str) -> None:
        self._config, self._session = config, session
        self._began_s = self._printed_s = time.monotonic()
        self._total = self._done = self._failed = 0
        self._by_folder: dict[str, float] = defaultdict(float)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Count the tests of a session without workers."""
        self._total = len(items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Count the tests of a session with workers; each worker has all of them."""
        self._total = len(ids)

    def pytest_runtest_logreport(self, report: TestReport) -> None:
        """Count a result; print a failure at once, and a line when the last one is old enough."""
        self._by_folder["/".join(report.nodeid.split("/")[:2])] += report.duration
        self._done += report.when == "teardown"
        self._failed += report.failed
        if report.failed:
            self._terminal.write_line(f"{PREFIX}{self._session} failed: {report.nodeid}")
        now_s = time.monotonic()
        if now_s - self._printed_s >= INTERVAL_S:
            self._printed_s = now_s
            self._terminal.write_line(
                f"{PREFIX}{self._session} {format_s(now_s - self._began_s)}: {self._done:,} of"
                f" {self._total:,} tests, {self._failed} failed"
            )

    def pytest_report_teststatus(
        self, report: TestReport, config: pytest.Config
    ) -> tuple[str, str, str] | None:
        """Print no dot for a passed test."""
        if report.passed and report.when == "call":
            return "passed", "", "PASSED"
        return None

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Print the seconds of workers by folder, and how to repeat each failure."""
        terminalreporter.section(f"{self._session}: seconds of workers")
        for folder, duration_s in sorted(self._by_folder.items(), key=lambda item: -item[1]):
            terminalreporter.line(f"{duration_s:8.0f}  {folder}")
        failed = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
        if failed:
            terminalreporter.section("repeat a failure alone")
        for nodeid in dict.fromkeys(report.nodeid for report in failed):
            terminalreporter.line(f"make test ARGS='{nodeid}'")

    @property
    def _terminal(self) -> TerminalReporter:
        terminal: TerminalReporter = self._config.pluginmanager.getplugin("terminalreporter")
        return terminal


def pytest_configure(config: pytest.Config) -> None:
    """Report the progress of a session that `make test` started."""
    if (session := os.environ.get(SESSION)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config, session))
