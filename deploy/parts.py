"""The stacks of an environment: their names, their tags, and what protects them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.paths import ROOT, CommandError

BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
EDGE_REGION = "us-east-1"  # of web ACLs and certificates of CloudFront, and of budgets
PART_TAG = "plaza:part"

# No two hyphens in a row and none at the end: RDS refuses identifiers with them, and CloudFormation
# makes identifiers from the names of stacks.
ENVIRONMENT = re.compile(r"(?=.{1,20}$)[a-z][a-z0-9]*(-[a-z0-9]+)*")

STORES = (
    "AWS::ElastiCache::ReplicationGroup",
    "AWS::RDS::DBCluster",
    "AWS::SecretsManager::Secret",
)
"""Types of the resources that no update of the data stack may delete or replace."""

_ALLOW = {"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"}
_KEEP_STORES = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": ["Update:Delete", "Update:Replace"],
    "Resource": "*",
    "Condition": {"StringEquals": {"ResourceType": list(STORES)}},
}


class DeployError(CommandError):
    """A deploy cannot start or go on; the text says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stack of an environment.

    ``region``: None for the environment's. A stack elsewhere has the environment's region in its
    name, because environments of several regions have theirs there. ``is_confirmed``: others need
    what it has, so that a person confirms its changes. ``is_protected``: it has termination
    protection.
    """

    name: str
    template: Path
    region: str | None = None
    is_confirmed: bool = False
    is_protected: bool = False

    def stack_name(self, environment: str, region: str) -> str:
        suffixes = [self.name] * bool(self.name) + [region] * bool(self.region)
        return "-".join(["plaza", environment, *suffixes])

    def make_tags(self, environment: str) -> dict[str, str]:
        """Return the tags of the stack and of all its resources."""
        part = self.name or "application"
        return {"project": "plaza", "environment": environment, PART_TAG: part}


NETWORK = Part("network", ROOT / "deploy" / "network.yaml", is_confirmed=True, is_protected=True)
DATA = Part("data", ROOT / "deploy" / "data.yaml", is_confirmed=True, is_protected=True)
APPLICATION = Part("", BUILT, is_protected=True)
BALANCER = Part("balancer", ROOT / "deploy" / "balancer.yaml")
EDGE = Part("edge", ROOT / "deploy" / "edge.yaml", EDGE_REGION)
CANARY = Part("canary", ROOT / "deploy" / "canary.yaml")  # after all that has a public name
BUDGET = Part("budget", ROOT / "deploy" / "budget.yaml", EDGE_REGION)
PARTS = (NETWORK, DATA, APPLICATION, BALANCER, EDGE, CANARY, BUDGET)


def check_environment(environment: str) -> None:
    """Raise DeployError for a name whose stacks would have the names of other stacks."""
    names = {part.name for part in PARTS if part.name}
    if (
        not ENVIRONMENT.fullmatch(environment)
        or environment in ("default", "local")
        or names & set(environment.split("-")[1:])  # plaza-prod-data is a part of prod
    ):
        raise DeployError(
            f"{environment!r} is no name of an environment: at most 20 of a-z, 0-9 and single"
            f" hyphens; not local, not default, not with -{', -'.join(sorted(names))}"
        )


def check_stack(part: Part, environment: str, stack: Mapping[str, Any]) -> None:
    """Raise DeployError if a stack is not this part's, or cannot be updated as it is."""
    name, status = stack["StackName"], stack["StackStatus"]
    if status == "REVIEW_IN_PROGRESS":  # it has nothing but a change set
        return
    tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", [])}
    expected = part.make_tags(environment)
    known = {PART_TAG: expected[PART_TAG]} | tags  # stacks of 0.3.0 have no tag of their part
    if any(known.get(key) != value for key, value in expected.items()):
        raise DeployError(
            f"{name} exists and is another stack: its tags are {_list(tags)}, not {_list(expected)}"
        )
    if status.endswith("_IN_PROGRESS"):
        raise DeployError(f"{name} is {status}; wait for its end, and repeat the command")
    if status.endswith("_FAILED"):
        raise DeployError(
            f"{name} is {status}: an update cannot start."
            f" docs/operations.md#a-failed-deploy says what to do"
        )


def make_stack_policy(*, replaces_stores: bool) -> str:
    """Return the policy of the data stack. It denies the loss of stores, unless a deploy is to
    replace them."""
    return json.dumps({"Statement": [_ALLOW] if replaces_stores else [_ALLOW, _KEEP_STORES]})


def read_pairs(stack: Mapping[str, Any] | None, kind: str) -> dict[str, str]:
    """Return the parameters (``kind``: Parameter) or the outputs (Output) of a stack."""
    pairs = (stack or {}).get(f"{kind}s", [])
    return {entry[f"{kind}Key"]: entry.get(f"{kind}Value", "") for entry in pairs}


def _list(tags: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(tags.items())) or "none"
