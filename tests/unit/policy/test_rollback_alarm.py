"""What the alarm of a deployment notices, as probabilities: no coin, at any rate.

A tenth of the requests goes to the new version for five minutes, and CloudWatch is two minutes
late, so the alarm sees 180 s of them. Failures are Poisson. The rule before was more than ten
failures of both versions in a minute. docs/operations.md has the table.
"""

from __future__ import annotations

import math
import re

import pytest
import yaml

from tests.unit.policy.modules import ROOT

DECLARED = yaml.safe_load((ROOT / "alarms.yaml").read_text())["failures"]
PAGE = (ROOT / "docs" / "operations.md").read_text()
SHARE = 0.1
SEEN_S = 300 - 120
RATES = (0.5, 1, 5, 50, 1_000, 2_000)
BROKEN, PARTLY, HEALTHY = 1.0, 0.2, 0.0001


def exceed(mean: float, limit: int) -> float:
    """Return the probability that a Poisson variable is above ``limit``."""
    if mean > 50 * (limit + 1):
        return 1.0
    terms = (math.exp(-mean + n * math.log(mean) - math.lgamma(n + 1)) for n in range(limit + 1))
    return max(0.0, 1 - math.fsum(terms))


def goes_back(rate: float, failing: float) -> float:
    """Return the probability that a deployment goes back: at ``rate`` requests/s to a function, of
    which the new version fails the share ``failing``."""
    requests = rate * SHARE * min(SEEN_S, DECLARED["window_s"])
    share_needs = math.floor(requests * DECLARED["above_percent"] / 100)
    return exceed(requests * failing, max(DECLARED["min_failures"], share_needs))


def went_back(rate: float, failing: float) -> float:
    """Return the same of the rule before: more than ten in one of three minutes. Both versions fail
    if the new one is ``HEALTHY``."""
    share = 1.0 if failing == HEALTHY else SHARE
    in_a_minute = exceed(rate * share * 60 * failing, 10)
    return 1 - (1 - in_a_minute) ** (SEEN_S // 60)


def row(rate: float) -> str:
    rules = (went_back, goes_back)
    cells = [f"{rule(rate, f):.2f}" for f in (BROKEN, PARTLY, HEALTHY) for rule in rules]
    return f"| {rate:,}/s | " + " | ".join(cells) + " |"


def test_the_rule_before_was_a_coin() -> None:
    assert went_back(0.5, BROKEN) < 0.01, "a version that answers nothing stays"
    assert went_back(2_000, HEALTHY) > 0.7, "a healthy one goes back"


@pytest.mark.parametrize("rate", RATES)
def test_a_healthy_version_stays(rate: float) -> None:
    assert goes_back(rate, HEALTHY) < 1e-6
    assert goes_back(rate, 0.005) < 0.01, "half a percent of failures"


@pytest.mark.parametrize("rate", RATES)
def test_a_version_that_answers_nothing_goes_back(rate: float) -> None:
    """Below that rate the hook sees it, which needs no requests."""
    assert goes_back(rate, BROKEN) > 0.97


@pytest.mark.parametrize("rate", [rate for rate in RATES if rate >= 5])
def test_a_version_that_fails_a_fifth_goes_back(rate: float) -> None:
    assert goes_back(rate, PARTLY) > 0.99


def test_the_page_has_these_probabilities() -> None:
    rows = re.findall(r"^\| [\d.,]+/s \|.*$", PAGE, re.MULTILINE)
    assert rows == [row(rate) for rate in RATES]
