"""A burst of likes of one post while consumers and the build of its Bloom filter are late."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from cli.paths import ROOT
from local.stack.stack import Stack
from tests.support.depth import choose

EARLIER, LIKES = choose((1_050, 150), (1_200, 600))  # ``recent`` holds 1,000
LAG_S = 3


@pytest.mark.quiet
@pytest.mark.sampled
def test_every_answer_is_right_during_a_burst_with_a_late_consumer(
    stack: Stack, record_property: Callable[[str, object], None]
) -> None:
    sizes = {"likes": LIKES, "earlier": EARLIER, "seconds": 2, "lag": LAG_S, "build-lag": 1}
    options = [part for name, n in sizes.items() for part in (f"--{name}", str(n))]
    command = [sys.executable, "-m", "local", "--dir", str(stack.directory), "burst", *options]
    completed = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, text=True)
    assert completed.stdout, completed.stderr
    report = json.loads(completed.stdout.splitlines()[-1])
    record_property("requests a second", report["per_s"])
    assert [moment for moment in report["moments"] if not moment["clean"]] == []
    assert (report["wrong"], report["failures"], report["differences"]) == ([], [], [])
    assert report["moments"][-1]["at_s"] > report["took_s"] + LAG_S - 1  # the consumer was late
    assert report["totals"]["like"]["rows"] > EARLIER
    assert report["clean"]
    assert completed.returncode == 0
