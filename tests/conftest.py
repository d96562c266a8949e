"""The order of the tests, and the table after them."""

import gc
from collections.abc import Iterator
from functools import cache

import botocore.session
import pytest
from _pytest.terminal import TerminalReporter
from hypothesis import HealthCheck, settings

from tests.support.servers import IS_CLUSTER
from tests.support.shuffle import SEED, shuffle

# Each client has a session of its own; reading the models of services again takes 0.1 s.
botocore.session.create_loader = cache(botocore.session.create_loader)
# On a busy machine an example may take any time.
settings.register_profile("plaza", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("plaza")


# In this order, and each before shorter ones of its kind, so that no process is left with a long
# one at the end.
E2E = "tests/e2e/"
LONG = (
    *(f"{E2E}test_{name}.py" for name in ("contract", "kept_data", "web_console")),
    *(f"tests/{name}/" for name in ("versions", "faults", "model")),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files. Tests of the stack that need it quiet, and those that take parts of it away,
    come after its others: what they meet or leave may refuse a request. Runbooks leave most, so
    they are last."""
    stages = {item.path: 3 * (item.path.name == "test_runbooks.py") for item in items}
    for item in items:
        stages[item.path] = max(stages[item.path], find_stage(item))

    shuffle(items)
    files = list(dict.fromkeys(item.path for item in items))

    def rank(item: pytest.Item) -> tuple[bool, int, int, str, int]:
        if SEED:
            return False, stages[item.path], files.index(item.path), "", find_stage(item)
        is_e2e = item.nodeid.startswith(E2E)
        long = next((n for n, name in enumerate(LONG) if item.nodeid.startswith(name)), len(LONG))
        return not is_e2e, stages[item.path], long, str(item.path), find_stage(item)

    items.sort(key=rank)


def find_stage(item: pytest.Item) -> int:
    """Return when a test may use its stack: 1 needs it quiet, 2 takes parts of it away."""
    if item.get_closest_marker("outage"):
        return 2
    return 1 if item.get_closest_marker("quiet") else 0


@pytest.fixture(scope="module", autouse=True)
def new_process() -> Iterator[None]:
    """Settings, caches and connections of Plaza end with the file."""
    yield
    from plaza.infra.runtime.process import reset_process  # see below

    reset_process()


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
