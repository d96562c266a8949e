"""`make deploy`: the stacks fit together, and a deploy asks only for what nothing knows."""

from __future__ import annotations

import re
import ssl
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cli.paths import LAYER, TEMPLATE
from deploy import deploy
from deploy.deploy import (
    APPLICATION,
    BALANCER,
    DATA,
    EDGE,
    NETWORK,
    PARTS,
    DeployError,
    Part,
    read_architecture,
    read_runtime,
)
from tests.unit.policy.template import load_template

MADE_BY_DEPLOY = {"Environment", "OriginSecretVersion"}
ENVIRONMENTS = ("staging", "prod")


def exports_of(part: Part) -> set[str]:
    """The parameters that a stack writes to Parameter Store, by their names there."""
    return {
        resource["Properties"]["Name"]["Fn::Sub"].removeprefix("/plaza/${Environment}/")
        for resource in template_of(part)["Resources"].values()
        if resource.get("Type") == "AWS::SSM::Parameter"
    }


def imports_of(part: Part) -> set[str]:
    """The parameters that a template reads from Parameter Store."""
    return {
        name
        for name, parameter in template_of(part)["Parameters"].items()
        if parameter["Type"].startswith("AWS::SSM::Parameter::Value<")
    }


@cache
def template_of(part: Part) -> dict[str, Any]:
    source = TEMPLATE if part is APPLICATION else part.template
    return load_template(source.read_text())


class FakeAccount:
    """An account in which a stack returns its outputs, each named after itself."""

    region = "eu-central-1"

    def __init__(self, *, has_edge: bool = False, has_balancer: bool = False) -> None:
        self.deployed: list[tuple[str, dict[str, str]]] = []
        self.stacks: dict[str, dict[str, Any]] = {}
        self.absent = {"HasEdge": not has_edge, "HasBalancer": not has_balancer}
        self.pages: list[tuple[str, str]] = []

    def describe(self, part: Part, environment: str) -> dict[str, Any] | None:
        return self.stacks.get(part.stack_name(environment))

    def deploy(self, part: Part, environment: str, values: Mapping[str, str]) -> None:
        name = part.stack_name(environment)
        self.deployed.append((name, dict(values)))
        kept = deploy.read_pairs(self.stacks.get(name), "Parameter")
        outputs = (
            [
                {"OutputKey": output, "OutputValue": f"<{output}>"}
                for output, item in template_of(part)["Outputs"].items()
                if not self.absent.get(item.get("Condition"))
            ]
            if "Outputs" in template_of(part)
            else []
        )
        if part is APPLICATION and not self.absent["HasBalancer"]:
            outputs.append({"OutputKey": "Ingress", "OutputValue": "load-balancer"})
        self.stacks[name] = {
            "Parameters": [
                {"ParameterKey": k, "ParameterValue": v} for k, v in {**kept, **values}.items()
            ],
            "Outputs": outputs,
        }

    def read_secret_version(self, arn: str) -> str:
        return "version-1"

    def upload_pages(self, bucket: str, distribution: str) -> None:
        self.pages.append((bucket, distribution))


@pytest.fixture(autouse=True)
def _built(monkeypatch: pytest.MonkeyPatch) -> None:
    """The application is read from its source; no build is needed."""
    read = deploy.read_parameters
    monkeypatch.setattr(
        deploy,
        "read_parameters",
        lambda path: read(TEMPLATE if path == APPLICATION.template else path),
    )
    monkeypatch.setattr(deploy, "read_architecture", lambda build: "arm64")
    monkeypatch.setattr(deploy, "read_runtime", lambda build: "python3.13")


def answer(question: str) -> str:
    return "ops@example.com" if "Address" in question else "US,DE"


def refuse(question: str) -> str:
    raise AssertionError(f"it asked: {question}")


def test_a_first_deploy_asks_two_questions_and_deploys_in_order() -> None:
    account, asked = FakeAccount(), []

    def ask(question: str) -> str:
        asked.append(question)
        return answer(question)

    deploy.deploy("staging", {}, account, ask)  # type: ignore[arg-type]
    assert len(asked) == 2
    assert [name for name, _ in account.deployed] == [
        "plaza-staging-network",
        "plaza-staging-data",
        "plaza-staging",
        "plaza-staging-budget",
    ]


def test_a_second_deploy_asks_nothing() -> None:
    account = FakeAccount()
    deploy.deploy("staging", {}, account, answer)  # type: ignore[arg-type]
    deploy.deploy("staging", {"LogDays": "7"}, account, refuse)  # type: ignore[arg-type]
    values = account.deployed[-2][1]
    assert values["LogDays"] == "7"
    assert "SmsCountries" not in values, "the stack keeps it"


def test_each_parameter_without_a_default_is_an_output_or_asked_or_made() -> None:
    outputs: set[str] = set()
    for part in PARTS:
        template = template_of(part)
        needed = {n for n, p in template["Parameters"].items() if "Default" not in p}
        needed -= imports_of(part) | set(deploy.read_settings("staging").values)
        assert needed <= outputs | MADE_BY_DEPLOY | set(deploy.QUESTIONS), part.name
        outputs |= set(template.get("Outputs", {}))


def test_each_parameter_that_a_stack_reads_was_written_by_one_before() -> None:
    written: set[str] = set()
    for part in PARTS:
        assert imports_of(part) <= written, part.name
        written |= exports_of(part)


def test_an_exported_address_has_no_credentials() -> None:
    for part in (NETWORK, DATA):
        for name, parameter in template_of(part)["Parameters"].items():
            if name.endswith("Url"):
                assert "[^@]" in parameter["AllowedPattern"], name


def test_what_parameter_store_gets_is_never_empty() -> None:
    """It has no empty values, and a deploy of the stores would fail."""
    for part in (NETWORK, DATA):
        parameters = template_of(part)["Parameters"]
        for name in exports_of(part):
            value = template_of(part)["Resources"][f"{name}Parameter"]["Properties"]["Value"]
            for own in re.findall(r"\{'Ref': '(\w+)'\}", str(value)):
                is_required = own in part_rules(part) or "Default" not in parameters.get(own, {})
                assert is_required or parameters[own]["Default"] != "", (name, own)


def part_rules(part: Part) -> set[str]:
    """The parameters that a rule requires, when the stack creates nothing instead."""
    return set(re.findall(r"'Ref': '(\w+)'", str(template_of(part)["Rules"])))


def test_the_application_reads_what_network_and_stores_wrote() -> None:
    account = FakeAccount()
    given = {"RedisUrl": "rediss://cache.example:6379", "RedisSecretArn": "arn:a"}
    deploy.deploy("staging", given, account, answer)  # type: ignore[arg-type]
    deployed = dict(account.deployed)
    values = deployed["plaza-staging"]
    read = imports_of(APPLICATION)
    assert {"SubnetIds", "RedisUrl", "RedisSecretArn", "MysqlAdminSecretArn", "MysqlCa"} <= read
    assert {name: values[name] for name in read} == {n: f"/plaza/staging/{n}" for n in read}
    assert deployed["plaza-staging-data"]["RedisUrl"] == "rediss://cache.example:6379"
    assert deployed["plaza-staging-data"]["SubnetIds"] == "/plaza/staging/SubnetIds"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_plain_sam_deploys_the_application_as_make_does(environment: str) -> None:
    account = FakeAccount()
    deploy.deploy(environment, {}, account, answer)  # type: ignore[arg-type]
    values = dict(account.deployed)[f"plaza-{environment}"]
    config = tomllib.loads(deploy.SAMCONFIG.read_text())[environment]["global"]["parameters"]
    own = dict(entry.split("=", 1) for entry in config["parameter_overrides"])
    of_build = ("Architecture", "Runtime", "SmsCountries")
    assert own == {n: v for n, v in values.items() if n not in of_build}
    assert config["stack_name"] == APPLICATION.stack_name(environment)
    assert config["tags"] == f"project=plaza environment={environment}"
    assert config["confirm_changeset"] is (environment == "prod")
    assert config["resolve_s3"] is True


def test_parameters_of_samconfig_reach_each_template_and_arguments_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "samconfig.toml"
    text = deploy.SAMCONFIG.read_text()
    more = '  "Environment=staging",\n  "LogDays=90",\n  "RedisShards=2",\n'
    config.write_text(text.replace('  "Environment=staging",\n', more))
    monkeypatch.setattr(deploy, "SAMCONFIG", config)
    account = FakeAccount()
    deploy.deploy("staging", {"LogDays": "7"}, account, answer)  # type: ignore[arg-type]
    deployed = dict(account.deployed)
    assert deployed["plaza-staging"]["LogDays"] == "7"
    assert deployed["plaza-staging-data"]["RedisShards"] == "2"


def test_an_environment_without_a_section_is_refused() -> None:
    with pytest.raises(DeployError, match=r"no section alice\.global\.parameters"):
        deploy.deploy("alice", {}, FakeAccount(), refuse)  # type: ignore[arg-type]


def test_the_edge_gets_the_copy_of_the_secret_in_its_region() -> None:
    account = FakeAccount(has_edge=True)
    deploy.deploy("staging", {"GuardOrigin": "trust"}, account, answer)  # type: ignore[arg-type]
    values = dict(account.deployed)[EDGE.stack_name("staging")]
    assert values["OriginSecretVersion"] == "version-1"
    assert values["ApiDomain"] == "<ApiDomain>"


def test_the_load_balancer_gets_what_network_and_application_return() -> None:
    account = FakeAccount(has_edge=True, has_balancer=True)
    given = {"Ingress": "load-balancer", "BalancerDomainName": "api.example.com"}
    deploy.deploy("staging", given, account, answer)  # type: ignore[arg-type]
    assert [name.removeprefix("plaza-staging") for name, _ in account.deployed] == [
        "-network",
        "-data",
        "",
        "-balancer",
        "-edge",
        "-budget",
    ]
    deployed = dict(account.deployed)
    assert deployed["plaza-staging-network"]["Ingress"] == "load-balancer"
    values = deployed[BALANCER.stack_name("staging")]
    assert values["ApiFunctions"] == "<ApiFunctions>"
    for name in ("PublicSubnetIds", "BalancerSecurityGroupId", "AlarmTopicArn"):
        assert values[name] == f"/plaza/staging/{name}"
    assert values["GuardOrigin"] == "<GuardOrigin>", "the edge may be older than the load balancer"
    assert deployed[EDGE.stack_name("staging")]["ApiDomain"] == "<ApiDomain>"


def test_the_network_keeps_its_public_subnets_until_the_load_balancer_is_deleted() -> None:
    account = FakeAccount(has_balancer=True)
    given = {"Ingress": "load-balancer", "BalancerDomainName": "api.example.com"}
    deploy.deploy("staging", given, account, answer)  # type: ignore[arg-type]
    account.absent["HasBalancer"] = True
    account.deployed.clear()
    back = {"Ingress": "http-api"}
    deploy.deploy("staging", back, account, refuse)  # type: ignore[arg-type]
    deployed = dict(account.deployed)
    assert deployed["plaza-staging-network"]["Ingress"] == "load-balancer"
    assert deployed["plaza-staging"]["Ingress"] == "http-api"
    assert BALANCER.stack_name("staging") not in deployed
    del account.stacks[BALANCER.stack_name("staging")]
    deploy.deploy("staging", back, account, refuse)  # type: ignore[arg-type]
    assert dict(account.deployed[4:])["plaza-staging-network"]["Ingress"] == "http-api"


def test_the_name_of_a_load_balancer_is_asked_for_only_with_one() -> None:
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return answer(question) if "load balancer" not in question else "api.example.com"

    account = FakeAccount(has_balancer=True)
    deploy.deploy("staging", {"Ingress": "load-balancer"}, account, ask)  # type: ignore[arg-type]
    assert len([question for question in asked if "load balancer" in question]) == 1


def test_pages_are_uploaded_to_the_bucket_of_the_edge() -> None:
    account = FakeAccount(has_edge=True)
    deploy.deploy("staging", {"GuardOrigin": "trust"}, account, answer)  # type: ignore[arg-type]
    assert account.pages == [("<PagesBucket>", "<EdgeDistribution>")]


def test_an_environment_without_an_edge_has_no_pages() -> None:
    account = FakeAccount()
    deploy.deploy("staging", {}, account, answer)  # type: ignore[arg-type]
    assert account.pages == []


def test_functions_get_the_processor_that_the_layer_was_built_for() -> None:
    account = FakeAccount()
    deploy.deploy("staging", {}, account, answer)  # type: ignore[arg-type]
    assert dict(account.deployed)["plaza-staging"]["Architecture"] == "arm64"


@pytest.mark.parametrize("part", ["plaza-staging", "plaza-staging-data"])
def test_functions_get_the_python_that_the_layer_was_built_for(part: str) -> None:
    account = FakeAccount()
    deploy.deploy("staging", {}, account, answer)  # type: ignore[arg-type]
    assert dict(account.deployed)[part]["Runtime"] == "python3.13"


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"Architecture": "x86_64"}, "make build ARCHITECTURE"),
        ({"Runtime": "python3.11"}, "make clean build PYTHON_VERSION"),
    ],
)
def test_a_layer_for_another_processor_or_python_is_refused_before_anything_is_deployed(
    given: dict[str, str], remedy: str
) -> None:
    account = FakeAccount()
    with pytest.raises(DeployError, match=remedy):
        deploy.deploy("staging", given, account, refuse)  # type: ignore[arg-type]
    assert account.deployed == []


@pytest.mark.parametrize(
    ("tag", "runtime", "architecture"),
    [("311-x86_64", "python3.11", "x86_64"), ("313-aarch64", "python3.13", "arm64")],
)
def test_runtime_and_processor_of_a_build_are_those_of_its_extensions(
    tmp_path: Path, tag: str, runtime: str, architecture: str
) -> None:
    package = tmp_path / "CommonLayer" / "python" / "pydantic_core"
    with pytest.raises(DeployError, match="make build"):
        read_architecture(tmp_path)
    package.mkdir(parents=True)
    (package / f"_pydantic_core.cpython-{tag}-linux-gnu.so").touch()
    assert (read_runtime(tmp_path), read_architecture(tmp_path)) == (runtime, architecture)


@pytest.mark.parametrize(
    "environment", ["local", "default", "Prod", "a b", "", "x" * 30, "prod-data"]
)
def test_a_name_that_no_stack_can_have_is_refused(environment: str) -> None:
    with pytest.raises(DeployError, match="no name of an environment"):
        deploy.deploy(environment, {}, FakeAccount(), refuse)  # type: ignore[arg-type]


def test_a_misspelled_parameter_is_refused_before_anything_is_deployed() -> None:
    account = FakeAccount()
    with pytest.raises(DeployError, match="LogDay"):
        deploy.deploy("staging", {"LogDay": "7"}, account, refuse)  # type: ignore[arg-type]
    assert account.deployed == []


def test_without_a_terminal_the_missing_parameter_is_named() -> None:
    def closed(question: str) -> str:
        raise EOFError

    with pytest.raises(DeployError, match="add AlarmEmail="):
        deploy.deploy("staging", {}, FakeAccount(), closed)  # type: ignore[arg-type]


def test_no_parameter_is_a_secret_so_that_none_can_be_written_into_a_file() -> None:
    for part in PARTS:
        for name, parameter in template_of(part)["Parameters"].items():
            assert not parameter.get("NoEcho"), name
            assert not any(word in name for word in ("Password", "Token")), name
            assert "Secret" not in name or name.endswith(("Arn", "Version")), name


def test_the_layer_has_the_certificates_that_the_data_stack_names() -> None:
    parameter = template_of(DATA)["Resources"]["MysqlCaParameter"]
    value = parameter["Properties"]["Value"]["Fn::If"][1]
    file = LAYER / str(value).removeprefix("/opt/python/")
    assert len(ssl.create_default_context(cafile=file).get_ca_certs()) > 20
