"""How processes share the tests and the stack, and the table after the tests."""

import gc
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import botocore.session
import pytest
from _pytest.terminal import TerminalReporter
from hypothesis import HealthCheck, settings
from xdist import is_xdist_controller, is_xdist_worker
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from cli.paths import LAYER, ROOT
from local.stack.processes import Process
from tests.e2e.stack_process import start_ahead, stop_ahead
from tests.support.servers import IS_CLUSTER

AHEAD = pytest.StashKey[Process]()
E2E = ROOT / "tests" / "e2e"

# Each client has a session of its own; reading the models of services again takes 0.1 s.
botocore.session.create_loader = cache(botocore.session.create_loader)
# On a busy machine an example may take any time.
settings.register_profile("plaza", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("plaza")
os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{LAYER}"  # processes of tests find what tests find


# Three processes run the end-to-end tests on the stack: these, those in a browser, and the others.
BESIDE = tuple(f"tests/e2e/test_{name}.py" for name in ("canary", "contract", "kept_data"))
PAGES = ("tests/e2e/test_web_", "tests/e2e/test_hour")
NICENESS = 5
LONG = ("tests/faults/", "tests/model/", "tests/versions/")


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """A file stays in one process, and the end-to-end tests in three that share the stack.

    The tests of models are long, so each goes to the process that is free.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/model/"):
            return nodeid
        if nodeid.startswith("tests/e2e/"):
            if nodeid.startswith(BESIDE):
                return "beside"
            return "pages" if nodeid.startswith(PAGES) else "stack"
        return nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """What xdist asks for a scheduler with."""
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest tests begin first, so that no process is left with one at the end. Those that
    use the stack alone come after those that share it."""
    items.sort(key=rank)


def rank(item: pytest.Item) -> int:
    """Return the rank of a test among the others, 0 for the first."""
    if item.nodeid.startswith(BESIDE):
        return 2
    if item.nodeid.startswith("tests/e2e/"):
        return 1 if item.get_closest_marker("alone") else 0
    return 3 if item.nodeid.startswith(LONG) else 4


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the processes that use the stack, which mostly wait, run before the others, which
    compute."""
    if is_xdist_worker(item.session) and not item.nodeid.startswith("tests/e2e/"):
        os.nice(max(0, NICENESS - os.nice(0)))


@pytest.fixture(autouse=True)
def no_request() -> Iterator[None]:
    """A request that a test leaves open does not sign the messages of the next test."""
    yield
    # Not imported at the top: it would be loaded before coverage is measured.
    from plaza.infra.runtime.observability import end_request

    end_request()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without the garbage collector, in 10 s of CPU instead of 16, and let it leave
    out what stays until the end: 12 s instead of 18 for a thousand tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the stack of the end-to-end tests while the processes collect them."""
    config = session.config
    directories = [Path(arg.partition("::")[0]).resolve() for arg in config.args]
    if is_xdist_controller(session) and any(map(E2E.is_relative_to, directories)):
        directory = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        config.stash[AHEAD] = start_ahead(directory)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the stack."""
    if (process := session.config.stash.get(AHEAD, None)) is not None:
        stop_ahead(process)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """What tests recorded with ``record_property``, by test, and how many ran on a cluster."""
    reports = {
        outcome: [r for r in terminalreporter.getreports(outcome) if r.when in ("call", "setup")]
        for outcome in ("passed", "failed", "skipped", "error")
    }
    reported = [r for r in (*reports["passed"], *reports["failed"]) if r.user_properties]
    if reported:
        terminalreporter.section("figures")
    for report in sorted(reported, key=lambda r: r.nodeid):
        terminalreporter.line(report.nodeid.partition("::")[2])
        for name, value in report.user_properties:
            terminalreporter.line(f"  {name:<50} {value}")
    if IS_CLUSTER:
        terminalreporter.section("on a Redis Cluster, three masters with a replica each")
        for outcome, of_it in reports.items():
            ran = {r.nodeid for r in of_it if outcome != "passed" or r.when == "call"}
            terminalreporter.line(f"  {outcome:<10} {len(ran):>6,}")
        for report in reports["skipped"]:
            terminalreporter.line(f"  {report.nodeid}: {report.longrepr[2]}")
