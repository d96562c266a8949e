"""Who may use queues, topics and endpoints, and by which transport."""

from __future__ import annotations

from typing import Any

import pytest

from cli.paths import ROOT
from tests.unit.policy import template
from tests.unit.policy.template import QUEUE, load_template, name_in, resources

TEMPLATES = [
    file.relative_to(ROOT).as_posix()
    for file in (ROOT / "template.yaml", *sorted((ROOT / "deploy").glob("*.yaml")))
]
ACCOUNT = {"Ref": "AWS::AccountId"}


def of_file(name: str, kind: str) -> dict[str, dict[str, Any]]:
    """Name -> properties of the resources of a type in a template."""
    if name == "template.yaml":
        return resources(kind)
    document = load_template((ROOT / name).read_text())
    return {
        n: r.get("Properties", {})
        for n, r in document["Resources"].items()
        if isinstance(r, dict) and r.get("Type") == kind
    }


def denials(policy: dict[str, Any]) -> list[dict[str, Any]]:
    """The statements of a policy that refuse requests in clear, of any principal."""
    return [
        statement
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement["Principal"] == "*"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    ]


def test_no_queue_takes_or_gives_messages_in_clear() -> None:
    [policy] = resources("AWS::SQS::QueuePolicy").values()
    assert {name_in(queue) for queue in policy["Queues"]} == set(resources(QUEUE))
    [statement] = policy["PolicyDocument"]["Statement"]
    assert denials(policy) == [statement], "roles allow, this policy denies"
    assert (statement["Action"], statement["Resource"]) == ("sqs:*", "*")


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_topic_takes_messages_in_clear(name: str) -> None:
    topics = set(of_file(name, "AWS::SNS::Topic"))
    covered = set()
    for policy in of_file(name, "AWS::SNS::TopicPolicy").values():
        [statement] = denials(policy)
        assert statement["Action"] == "sns:Publish"
        covered |= {name_in(topic) for topic in policy["Topics"]}
    assert covered == topics
    assert topics == ({"Alarms"} if name == "deploy/data.yaml" else set())


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_bucket_is_read_or_written_in_clear(name: str) -> None:
    covered = {
        name_in(policy["Bucket"])
        for policy in of_file(name, "AWS::S3::BucketPolicy").values()
        if denials(policy)
    }
    assert covered == set(of_file(name, "AWS::S3::Bucket"))


ENDPOINTS = of_file("deploy/network.yaml", "AWS::EC2::VPCEndpoint")
WITHOUT_ACCOUNT = {"SnsEndpoint": "a phone number", "MetricsEndpoint": "metrics"}
"""Endpoint -> what it is used for, which is in no account."""


@pytest.mark.parametrize("name", sorted(ENDPOINTS))
def test_an_endpoint_leads_to_resources_of_this_account_only(name: str) -> None:
    """Code that was broken into cannot send what it reads to a queue of another account."""
    own, *others = ENDPOINTS[name]["PolicyDocument"]["Statement"]
    condition = own["Condition"]
    if name in WITHOUT_ACCOUNT:
        assert condition["StringEqualsIfExists"] == {"aws:ResourceAccount": ACCOUNT}
    else:
        assert condition["StringEquals"]["aws:ResourceAccount"] == ACCOUNT
    if name != "S3Endpoint":
        assert condition["StringEquals"]["aws:PrincipalAccount"] == ACCOUNT
        assert others == []
    else:  # where CloudFormation waits for the answer of a custom resource
        [answers] = others
        assert answers["Action"] == "s3:PutObject"
        assert "cloudformation-custom-resource-response-" in answers["Resource"]["Fn::Sub"]


def test_each_endpoint_has_a_policy() -> None:
    assert len(ENDPOINTS) == 5
    assert all("PolicyDocument" in endpoint for endpoint in ENDPOINTS.values())
    assert template.TEMPLATE["Resources"]
