"""Functions that store send several statements to MySQL in one packet; no function that answers
requests can."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.paths import LAYER
from tests.unit.policy.template import FUNCTION, GLOBALS, resources
from tools.template.functions import Function, _make_variables

VARIABLE = "PLAZA_MYSQL_PACKETS"
FLAG = "MULTI_STATEMENTS"


def variables_of(function: Mapping[str, Any]) -> Mapping[str, Any]:
    variables: Mapping[str, Any] = function.get("Environment", {}).get("Variables", {})
    return variables


def has_login(function: Mapping[str, Any]) -> bool:
    return any(
        "AWSSecretsManagerGetSecretValuePolicy" in policy and "Mysql" in str(policy)
        for policy in function.get("Policies", [])
    )


def test_consumers_and_schedules_with_a_login_at_mysql_send_packets() -> None:
    functions = resources(FUNCTION)
    storing = {name for name, function in functions.items() if VARIABLE in variables_of(function)}
    expected = {
        name
        for name, function in functions.items()
        if function["CodeUri"].split("/")[1] in ("queue", "schedule") and has_login(function)
    }
    assert storing == expected
    assert "SaveReactions" in storing


def test_no_function_that_answers_requests_sends_packets() -> None:
    assert VARIABLE not in GLOBALS["Environment"]["Variables"]
    for name, function in resources(FUNCTION).items():
        if function["CodeUri"].split("/")[1] in ("api", "ops"):
            assert VARIABLE not in variables_of(function), name


@pytest.mark.parametrize("kind", ["api", "ops"])
def test_a_function_that_answers_requests_cannot_be_declared_as_storing(kind: str) -> None:
    folder = {"api": "content", "ops": "operate"}[kind]
    with pytest.raises(ValueError, match="answers requests"):
        _make_variables(Function("Some", kind, folder, {"Stores": True}))


def test_only_the_client_of_mysql_sets_the_flag() -> None:
    files = {
        str(path.relative_to(LAYER / "plaza"))
        for path in Path(LAYER / "plaza").rglob("*.py")
        if FLAG in path.read_text()
    }
    assert files == {"infra/mysql/driver.py", "infra/mysql/mysql.py"}
