"""The deployed API conforms to the contract, by all checks of schemathesis."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import unsupported_method

from local.stack.openapi import CONTRACT
from local.stack.stack import Stack
from tests.e2e.client import Client
from tests.e2e.contract_hooks import SignedIn

# Not at the collection of tests: each process would take seconds to build the same cases.
operations = schemathesis.pytest.from_fixture("contract")


@pytest.fixture(scope="module")
def contract() -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_dict(json.loads(CONTRACT.read_text()))


@pytest.fixture(scope="session", autouse=True)
def token(sign_in: Callable[..., str], stack: Stack) -> None:
    """Sign the users of the cases in, and build the rankings, which a new stack does not have."""
    stack.invoke("RefreshRankings", {})
    SignedIn.open_session = staticmethod(sign_in)


def test_the_contract_is_served(base_url: str) -> None:
    assert Client(base_url)("GET", "/openapi.json").json == json.loads(CONTRACT.read_text())


@operations.parametrize()
@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_response_conforms_to_the_contract(
    case: schemathesis.Case[Any], base_url: str
) -> None:
    # DELETE /posts/ranking matches /posts/{post_id}, so the response is 404, not 405.
    shared = [unsupported_method] if case.operation.path == "/posts/ranking" else []
    # The first start of a function is slow on a busy machine.
    case.call_and_validate(base_url=base_url, excluded_checks=shared, timeout=60)
