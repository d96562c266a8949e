"""How the tests are shared out when several processes run them, and the table after them."""

import os
from functools import cache

import botocore.session
import pytest
from _pytest.terminal import TerminalReporter
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from local.paths import LAYER, ROOT
from tests.support.servers import IS_CLUSTER

# Each client has a session of its own; reading the models of services again takes 0.1 s.
botocore.session.create_loader = cache(botocore.session.create_loader)
# On a busy machine an example may take any time.
settings.register_profile("plaza", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("plaza")
os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{LAYER}"  # processes of tests find what tests find


# Use the stack beside the other end-to-end tests, which would take longer than all the rest.
BESIDE = ("tests/e2e/test_contract.py",)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """A file stays in one process, and the end-to-end tests in one that starts their stack.

    The tests of models are long and last, so each goes to the process that is free.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith("tests/model/"):
            return nodeid
        file = nodeid.partition("::")[0]
        return "stack" if file.startswith("tests/e2e/") and file not in BESIDE else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """What xdist asks for a scheduler with."""
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests beside the others of the stack begin when it has probably started."""
    earlier = ("tests/e2e/", "tests/faults/", "tests/integration/a")
    items.sort(
        key=lambda item: (
            1 if item.nodeid.startswith(BESIDE) else 0 if item.nodeid.startswith(earlier) else 2
        )
    )


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
