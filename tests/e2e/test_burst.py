"""A burst of likes of one post while consumers and the build of its Bloom filter are late."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from cli.paths import ROOT
from local.stack.stack import Stack

EARLIER = 1_200  # more than ``recent`` holds
LIKES = 800


@pytest.mark.alone
def test_every_answer_is_right_during_a_burst_with_a_late_consumer(
    stack: Stack, record_property: Callable[[str, object], None]
) -> None:
    sizes = {"likes": LIKES, "earlier": EARLIER, "sample": 60}
    lags = {"seconds": 2, "lag": 3, "build-lag": 1}
    options = [part for name, n in (sizes | lags).items() for part in (f"--{name}", str(n))]
    command = [sys.executable, "-m", "local", "--dir", str(stack.directory), "burst", *options]
    done = subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    record_property("likes a second", round(LIKES / report["took_s"]))
    assert [moment for moment in report["observations"] if moment["wrong"]] == []
    assert report["wrong_likes"] == report["wrong_rows"] == 0
    assert report["quiet_after_s"] > lags["lag"] - 1
    smallest, largest = report["expected_totals"]
    assert smallest <= report["total"] <= largest
    assert report["clean"]
    assert done.returncode == 0
