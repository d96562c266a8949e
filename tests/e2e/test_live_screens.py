"""Screens that follow totals while Redis and MySQL fail, in the small form of the harness."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from cli.paths import ROOT
from local.stack.stack import Stack

SCREENS, SECONDS, POLL_S = 300, 10, 1


@pytest.mark.outage
def test_no_screen_goes_back_and_all_show_what_mysql_has_after_each_event(
    stack: Stack, record_property: Callable[[str, object], None]
) -> None:
    sizes = {"screens": SCREENS, "seconds": SECONDS, "poll-s": POLL_S}
    options = [part for name, n in sizes.items() for part in (f"--{name}", str(n))]
    command = [sys.executable, "-m", "local", "--dir", str(stack.directory), "screens", *options]
    completed = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, text=True)
    assert completed.stdout, completed.stderr
    report = json.loads(completed.stdout.splitlines()[-1])
    record_property("phases", report["phases"])
    assert report["problems"] == []
    assert [phase["event"] for phase in report["phases"]] == [
        "calm",
        "Redis cut and back",
        "FLUSHALL",
        "MySQL away",
    ]
    assert completed.returncode == 0
