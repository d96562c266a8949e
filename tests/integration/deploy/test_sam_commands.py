"""Commands of the real SAM CLI with ``--config-env`` need no further flags.

Most run until their first call to AWS, which is a closed port. Network and stores are deployed to
MiniStack, so that Parameter Store has what the application reads.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from cli.paths import ROOT, RUNTIME, TEMPLATE, TOOLS
from deploy import deploy
from deploy.account import SAMCONFIG, Account
from deploy.parts import APPLICATION, BALANCER, BUDGET, DATA, EDGE, NETWORK, Part
from local.stack import aws
from local.stack.ports import free_port
from local.stack.processes import stop_process
from tests.support.depth import choose
from tests.unit.policy.template import load_template

UNREACHABLE = "Could not connect to the endpoint URL"
MISSING_IN_MINISTACK = (
    "AWS::CloudWatch::Alarm",  # with metric math
    "AWS::EC2::FlowLog",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::RDS::EventSubscription",
)
ATTRIBUTES = {  # that MiniStack lacks
    '{"Fn::GetAtt": "Mysql.MasterUserSecret.SecretArn"}': '"arn:aws:secretsmanager:administrator"',
    "Redis.ConfigurationEndPoint": "Redis.PrimaryEndPoint",
}
ENVIRONMENTS = ("staging", "prod")


def run_sam(*arguments: str | Path, answers: str = "") -> str:
    """Run SAM where nothing answers; return what it printed."""
    shell = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    completed = subprocess.run(
        [TOOLS / "sam", *arguments],
        cwd=ROOT,
        env={
            **shell,
            "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}",  # the Python of the functions
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_MAX_ATTEMPTS": "1",
            "SAM_CLI_TELEMETRY": "0",
        },
        input=answers,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return completed.stdout


COMMANDS = ("deploy", "logs", "list resources", "list stack-outputs", "remote invoke ReactionsApi")


@pytest.mark.sampled
@pytest.mark.parametrize("command", choose(COMMANDS[:1], COMMANDS))
def test_a_command_reaches_aws_without_further_flags(command: str) -> None:
    assert UNREACHABLE in run_sam(*command.split(), "--config-env", "staging")


@pytest.mark.deep
def test_build_needs_no_further_flags(tmp_path: Path) -> None:
    flags = ("--config-env", "staging", "--build-dir", tmp_path / "build")
    printed = run_sam("build", "SystemApi", *flags)
    assert "Build Succeeded" in printed
    assert (tmp_path / "build" / "SystemApi" / "app.py").exists()


@pytest.mark.deep
def test_a_command_without_an_environment_asks_for_its_stack() -> None:
    assert "Missing option '--stack-name'" in run_sam("deploy")


@pytest.mark.deep
def test_sync_builds_and_reaches_aws_without_further_flags() -> None:
    """It asks whether the stack is one of development, as it always does."""
    assert UNREACHABLE in run_sam("sync", "--config-env", "staging", answers="y\n")


PARTS = (DATA, NETWORK, APPLICATION, BALANCER, EDGE, BUDGET)


@pytest.mark.sampled
@pytest.mark.parametrize("part", choose(PARTS[:1], PARTS), ids=lambda part: part.name)
def test_sam_reads_each_template_of_a_deploy(part: Part) -> None:
    """It ends in a traceback for an output that has the name of a list parameter."""
    template = TEMPLATE if part is APPLICATION else part.template
    printed = run_sam(
        "deploy",
        *("--template-file", template, "--stack-name", "any", "--region", "eu-central-1"),
        *("--s3-bucket", "any", "--parameter-overrides", "Environment=staging"),
        *("--config-file", SAMCONFIG),
    )
    assert UNREACHABLE in printed


@pytest.mark.deep
def test_the_command_of_a_second_region_reaches_aws() -> None:
    page = (ROOT / "docs" / "operations.md").read_text().replace("\\\n", " ")
    [command] = re.findall(r"^\.venv-tools/bin/sam (deploy .*second-region\.yaml.*)$", page, re.M)
    assert UNREACHABLE in run_sam(*shlex.split(command))


def test_without_credentials_a_deploy_says_so(tmp_path: Path) -> None:
    shell = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    completed = subprocess.run(
        [sys.executable, "-m", "deploy", "smoke", "staging"],
        cwd=ROOT,
        env=shell
        | {
            "AWS_CONFIG_FILE": str(tmp_path / "none"),
            "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
            "AWS_EC2_METADATA_DISABLED": "true",
            "PLAZA_SMOKE_TOKEN": "token",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 1
    assert completed.stderr == "plaza: AWS: Unable to locate credentials\n"


# ---------------------------------------------------------------- Parameter Store


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("ministack")
    (directory / "logs").mkdir()
    port = free_port()
    process = aws.start_ministack(directory, port=port, attached=True)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stop_process(process)


def adapt(part: Part, folder: Path) -> Part:
    """Return the part without what MiniStack lacks."""
    template: dict[str, Any] = load_template(part.template.read_text())
    template["Resources"] = {
        name: resource
        for name, resource in template["Resources"].items()
        if resource["Type"] not in MISSING_IN_MINISTACK
    }
    for resource in template["Resources"].values():
        if "CodeUri" in resource.get("Properties", {}):
            resource["Properties"]["CodeUri"] = str(ROOT / "deploy" / "rotate_redis")
    text = json.dumps(template, default=str)
    for attribute, other in ATTRIBUTES.items():
        assert (attribute in text) is (part is DATA)
        text = text.replace(attribute, other)
    copy = folder / part.template.name
    copy.write_text(text)
    return replace(part, template=copy)


@pytest.mark.deep
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_network_and_stores_write_what_the_application_reads(
    environment: str, emulator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", emulator)
    monkeypatch.setenv("SAM_CLI_POLL_DELAY", "0.1")
    for name, value in aws.credentials().items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    parts = (adapt(NETWORK, tmp_path), adapt(DATA, tmp_path))
    monkeypatch.setattr(deploy, "PARTS", parts)
    monkeypatch.setattr(deploy, "read_architecture", lambda build: "arm64")
    monkeypatch.setattr(deploy, "read_runtime", lambda build: RUNTIME)
    settings = deploy.read_settings(environment)
    given = {"AlarmEmail": "ops@example.com", "RotationDays": "0"}
    account = Account(settings.region, confirms=False)
    monkeypatch.setattr(account, "read_sms", lambda: (False, 50.0))  # which MiniStack lacks
    deploy.deploy(environment, given, account)
    store = boto3.client("ssm", region_name=settings.region)
    pages = store.get_paginator("get_parameters_by_path").paginate(Path=f"/plaza/{environment}")
    written = {item["Name"]: item["Value"] for page in pages for item in page["Parameters"]}
    config = tomllib.loads(SAMCONFIG.read_text())[environment]["global"]["parameters"]
    read = [entry.split("=", 1)[1] for entry in config["parameter_overrides"] if "=/" in entry]
    assert len(read) == 14
    assert set(read) <= set(written)
    assert written[f"/plaza/{environment}/RedisUrl"].startswith("rediss://")
    assert "," in written[f"/plaza/{environment}/SubnetIds"]
