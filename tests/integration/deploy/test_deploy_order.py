"""A deploy by the real SAM CLI, in an account that records each call: which, and in which order."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cli.paths import ROOT, TEMPLATE
from deploy import account as account_module
from deploy import deploy
from deploy.account import Account
from deploy.parts import APPLICATION, BALANCER, DATA, NETWORK, PARTS, DeployError
from local.stack import aws
from tests.support.depth import choose
from tests.support.recorder import Recorder, Stack, record
from tests.unit.policy.template import load_template

REGION = "eu-central-1"
ASKED = [
    f"{REGION} sts:GetCallerIdentity",
    f"{REGION} lambda:GetAccountSettings",
    f"{REGION} sns:GetSMSAttributes",
    f"{REGION} sns:GetSMSSandboxAccountStatus",
]
GIVEN = {
    "AlarmEmail": "ops@example.com",
    "SmsCountries": "US,DE",
    "Ingress": "load-balancer",
    "BalancerDomainName": "api.example.com",
    "BalancerZoneId": "Z1",
}


def change(name: str, kind: str, region: str = REGION) -> list[str]:
    """The calls that create or update a stack."""
    return [
        f"{region} cloudformation:{action}"
        for action in (f"CreateChangeSet {name} {kind}", f"ExecuteChangeSet {name}")
    ]


def on(action: str, region: str = REGION) -> list[str]:
    return [f"{region} cloudformation:{action}"]


KEEP = on("SetStackPolicy plaza-staging-data Allow+Deny")
CREATED = [
    *change("plaza-staging-network", "CREATE"),
    *on("UpdateTerminationProtection plaza-staging-network true"),
    *change("plaza-staging-data", "CREATE"),
    *KEEP,
    *on("UpdateTerminationProtection plaza-staging-data true"),
    *change("plaza-staging", "CREATE"),
    *on("UpdateTerminationProtection plaza-staging true"),
    *change("plaza-staging-balancer", "CREATE"),
    *change("plaza-staging-canary", "CREATE"),
    *change("plaza-staging-budget-eu-central-1", "CREATE", "us-east-1"),
]
UPDATED = [
    *change("plaza-staging-network", "UPDATE"),
    *on("UpdateTerminationProtection plaza-staging-network true"),
    *KEEP,
    *change("plaza-staging-data", "UPDATE"),
    *KEEP,
    *on("UpdateTerminationProtection plaza-staging-data true"),
    *change("plaza-staging", "UPDATE"),
    *on("UpdateTerminationProtection plaza-staging true"),
    *change("plaza-staging-balancer", "UPDATE"),
    *change("plaza-staging-canary", "UPDATE"),
    *change("plaza-staging-budget-eu-central-1", "UPDATE", "us-east-1"),
]


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """An account, to which the application is deployed from its source."""
    source = TEMPLATE.read_text()
    for word in ("CodeUri: functions/", "ContentUri: layers/", "Location: alarms.json"):
        assert word in source
        key, _, path = word.partition(" ")
        source = source.replace(word, f"{key} {ROOT}/{path}")
    built = tmp_path / "template.yaml"
    built.write_text(source)
    application = replace(APPLICATION, template=built)
    parts = tuple(application if part is APPLICATION else part for part in PARTS)
    monkeypatch.setattr(account_module, "BUILT", built)
    monkeypatch.setattr(deploy, "APPLICATION", application)
    monkeypatch.setattr(deploy, "PARTS", parts)
    monkeypatch.setattr(deploy, "read_architecture", lambda build: "arm64")
    monkeypatch.setattr(deploy, "read_runtime", lambda build: "python3.13")
    monkeypatch.setenv("SAM_CLI_POLL_DELAY", "0.1")
    for name, value in aws.credentials().items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, REGION)
    with record() as (recorder, url):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        yield recorder


def refuse(question: str) -> str:
    raise AssertionError(f"it asked: {question}")


def run(recorder: Recorder, **given: str) -> list[str]:
    """Deploy; print and return the calls."""
    recorder.calls.clear()
    try:
        deploy.deploy("staging", given, Account(REGION, confirms=False), refuse)
    finally:
        print("\n".join(recorder.calls))
    return recorder.calls


@pytest.mark.deep
def test_a_deploy_that_failed_is_repeated_and_repeated(recorder: Recorder) -> None:
    recorder.fails = {"plaza-staging-network"}
    with pytest.raises(DeployError, match="plaza-staging-network was not deployed"):
        run(recorder, **GIVEN)
    assert recorder.calls == [*ASKED, *change("plaza-staging-network", "CREATE")]

    deleted = on("DeleteStack plaza-staging-network")
    assert run(recorder, **GIVEN) == [*ASKED, *deleted, *CREATED]
    check_that_no_template_has_an_include(recorder)

    application = recorder.stacks["plaza-staging"]
    assert application.tags["plaza:part"] == "application"
    changed = application.template.replace("Default: 2000\n", "Default: 1500\n", 1)
    assert changed != application.template
    application.template = changed  # an earlier version, whose default this one changed
    application.parameters["RequestsPerSecond"] = "1500"

    assert run(recorder, LogDays="90") == [*ASKED, *UPDATED]
    values = recorder.stacks["plaza-staging"].parameters
    assert values["LogDays"] == "90"
    assert values["RequestsPerSecond"] == "2000", "the default of this version"
    assert values["SmsCountries"] == "US,DE", "as the first deploy set it"
    assert values["RedisCa"] == "", "an empty default"


def check_that_no_template_has_an_include(recorder: Recorder) -> None:
    """SAM adds the key Metadata to it, which CloudFormation does not document."""
    sent = {name: stack.template for name, stack in recorder.stacks.items() if "plaza" in name}
    assert len(sent) == 6
    for text in sent.values():
        assert "Fn::Transform" not in text
    assert "ReactionsDlqAlarm" in load_template(sent["plaza-staging"])["Resources"]
    balancer = load_template(sent[BALANCER.stack_name("staging", REGION)])
    assert "ReactionsTargets" in balancer["Resources"]


@pytest.mark.sampled
@pytest.mark.parametrize("answer", choose(["y"], ["n", "y"]))
def test_an_update_of_the_network_is_confirmed(
    answer: str, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = NETWORK.stack_name("staging", REGION)
    recorder.stacks[name] = Stack("CREATE_COMPLETE", template=NETWORK.template.read_text())
    answers = partial(subprocess.run, input=f"{answer}\n".encode())
    monkeypatch.setattr(subprocess, "run", answers)
    declared = deploy.read_parameters(NETWORK.template)
    values = {n: p.default or "" for n, p in declared.items()} | {"Environment": "staging"}
    account = Account(REGION)
    if answer == "n":
        with pytest.raises(DeployError, match=f"the changes of {name} were not confirmed"):
            account.deploy(NETWORK, "staging", values, exists=True)
        refused = f"{REGION} cloudformation:DeleteChangeSet"
        assert recorder.calls == [change(name, "UPDATE")[0], refused]
    else:
        account.deploy(NETWORK, "staging", values, exists=True)
        assert recorder.calls == change(name, "UPDATE")


def test_stores_are_replaced_by_one_deploy_only(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = DATA.stack_name("staging", REGION)
    recorder.stacks[name] = Stack("CREATE_COMPLETE", template=DATA.template.read_text())
    account = Account(REGION, confirms=False, replaces_stores=True)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: Completed())
    account.deploy(DATA, "staging", {}, exists=True)
    monkeypatch.setattr(Completed, "returncode", 1)
    with pytest.raises(DeployError):
        account.deploy(DATA, "staging", {}, exists=True)
    policies = [call.rpartition(" ")[2] for call in recorder.calls]
    assert policies == ["Allow", "Allow+Deny"] * 2, "they are kept after a failure, too"


class Completed:
    """The end of a process."""

    returncode = 0
