"""The template after the transform of SAM: what CloudFormation is given."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from typing import Any

import pytest

from local.paths import ROOT, TEMPLATE, TOOLS
from local.stack.alarms import expand_template
from tests.unit.policy import template

TRANSFORM = ROOT / "tests" / "support" / "sam_transform.py"


@cache
def processed() -> dict[str, dict[str, Any]]:
    """Name -> resource of the processed template."""
    done = subprocess.run(
        [TOOLS / "python", TRANSFORM],
        input=expand_template(TEMPLATE.read_text()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)["Resources"]
    return found


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    """Name -> properties of the resources of a type."""
    return {
        name: resource.get("Properties", {})
        for name, resource in processed().items()
        if resource["Type"] == kind
    }


def scheduled_functions() -> set[str]:
    """The functions that a schedule invokes."""
    return {
        schedule["Target"]["Arn"]["Fn::GetAtt"][0]
        for schedule in of_type("AWS::Scheduler::Schedule").values()
    }


def test_there_is_something_to_look_at() -> None:
    assert len(of_type("AWS::Lambda::Function")) > 30
    assert len(scheduled_functions()) > 8


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("AWS::Scheduler::Schedule", "Name"),
        ("AWS::Lambda::Function", "FunctionName"),
        ("AWS::S3::Bucket", "BucketName"),
        ("AWS::IAM::Role", "RoleName"),
        ("AWS::SecretsManager::Secret", "Name"),
        ("AWS::CloudWatch::Alarm", "AlarmName"),
    ],
)
def test_no_resource_has_a_fixed_name(kind: str, name: str) -> None:
    """A second stack in the same account and region would fail."""
    assert of_type(kind)
    assert [resource for resource, found in of_type(kind).items() if name in found] == []


def count_environment_bytes(function: dict[str, Any]) -> int:
    """The size of a function's environment, with long names of stack and region."""
    stack, region, account = "s" * 40, "ap-southeast-1", "1" * 12
    url = f"https://sqs.{region}.amazonaws.com/{account}/{stack}-acknowledgements_dlq"
    total = 0
    for name, value in function.get("Environment", {}).get("Variables", {}).items():
        match value:
            case {"Fn::Join": [separator, list() as parts]}:
                text = separator.join(map(str, parts))
            case {"Ref": str(other)} if other in of_type("AWS::SQS::Queue"):
                text = url
            case dict():
                text = "x" * 120  # a parameter, an ARN
            case _:
                text = str(value)
        total += len(name) + len(text)
    return total


@pytest.mark.parametrize("function", sorted(template.resources(template.FUNCTION)))
def test_the_environment_fits_into_4_kb(function: str) -> None:
    assert count_environment_bytes(of_type("AWS::Lambda::Function")[function]) <= 4_096


def test_no_function_reserves_concurrency_by_default() -> None:
    """The quota of a new account is 10 or 50, of which 100 must stay unreserved elsewhere."""
    for name, function in of_type("AWS::Lambda::Function").items():
        reserved = function.get("ReservedConcurrentExecutions")
        assert reserved is None or reserved["Fn::If"][0] == "ReservesConcurrency", name


def test_a_scheduled_run_is_not_repeated_by_lambda() -> None:
    """The scheduler invokes asynchronously; by default Lambda repeats a failed run twice."""
    configured = {
        config["FunctionName"]["Ref"]: config
        for config in of_type("AWS::Lambda::EventInvokeConfig").values()
    }
    for name in scheduled_functions():
        assert configured[name]["MaximumRetryAttempts"] == 0
        assert configured[name]["MaximumEventAgeInSeconds"] == 60


def test_no_role_has_a_managed_policy_for_all_queues() -> None:
    """AWSLambdaSQSQueueExecutionRole receives from and deletes in every queue of the account."""
    for name, role in of_type("AWS::IAM::Role").items():
        assert "SQSQueueExecution" not in json.dumps(role.get("ManagedPolicyArns", [])), name
