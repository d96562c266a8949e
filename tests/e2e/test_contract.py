"""The contract and the deployed API agree, says schemathesis, with all its checks."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from local.contract import CONTRACT
from tests.e2e.client import Client

contract = schemathesis.openapi.from_dict(json.loads(CONTRACT.read_text()))


def test_the_contract_is_served(base_url: str) -> None:
    assert Client(base_url)("GET", "/openapi.json").json == json.loads(CONTRACT.read_text())


@contract.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_the_contract_says(
    case: schemathesis.Case, base_url: str, sign_in: Callable[..., str]
) -> None:
    url = urlsplit(base_url)
    headers = {"host": url.netloc}
    if case.operation.definition.raw.get("security"):
        headers["authorization"] = f"Bearer {sign_in(70)}"
    case.call_and_validate(base_url=f"http://127.0.0.1:{url.port}", headers=headers)
