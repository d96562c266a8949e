"""The deployed API conforms to the contract, by all checks of schemathesis."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.generation.feedback import NO_FEEDBACK
from schemathesis.pytest._test_builder import build_operation_test

from cli.paths import CONTRACT
from local.stack.stack import Stack
from tests.e2e.client import Client
from tests.e2e.contract_hooks import SignedIn
from tests.support.depth import choose
from tests.support.routes import contract, operations

EXAMPLES = choose(1, 20)  # of each operation
# Of a valid request. A valid `If-Match` may have the tag of another version.
ACCEPTED = {
    "expected-statuses": ["2xx", "3xx", "401", "403", "404", "409", "412", "429", "5xx"],
}


@pytest.fixture(scope="session", autouse=True)
def token(sign_in: Callable[..., str], stack: Stack) -> None:
    """Sign the users of the cases in, and build the rankings, which a new stack does not have."""
    stack.invoke("RefreshRankings", {})
    SignedIn.open_session = staticmethod(sign_in)


@pytest.fixture(scope="module")
def schema() -> schemathesis.BaseSchema:
    load_all_checks()
    config = SchemathesisConfig.from_dict({"checks": {"positive_data_acceptance": ACCEPTED}})
    return schemathesis.openapi.from_dict(json.loads(CONTRACT.read_text()), config=config)


def test_the_contract_is_served(base_url: str) -> None:
    assert Client(base_url)("GET", "/openapi.json").json == contract()


@pytest.mark.sampled
@pytest.mark.parametrize("operation", operations())
def test_every_response_conforms_to_the_contract(
    operation: str, schema: schemathesis.BaseSchema, base_url: str
) -> None:
    # schema.parametrize() would build the cases when tests are collected, in each process of the
    # tests: 5 s.
    method, path = operation.split()
    conform = build_operation_test(
        config=schema.config,
        operation=schema[path][method],
        test_func=_conform,
        given_kwargs={},
        feedback=NO_FEEDBACK,
    )
    conform(base_url=base_url)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def _conform(case: schemathesis.Case[Any], base_url: str) -> None:
    # The first start of a function is slow on a busy machine.
    case.call_and_validate(base_url=base_url, timeout=60)
