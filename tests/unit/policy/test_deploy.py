"""`make deploy`: the stacks fit together, and a deploy asks only for what nothing knows."""

from __future__ import annotations

import json
import re
import ssl
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cli.paths import LAYER, TEMPLATE
from deploy import deploy
from deploy.account import SAMCONFIG, Concurrency
from deploy.deploy import find_region, read_architecture, read_runtime
from deploy.parts import (
    APPLICATION,
    BALANCER,
    CANARY,
    DATA,
    EDGE,
    NETWORK,
    PART_TAG,
    PARTS,
    STORES,
    DeployError,
    Part,
    check_environment,
    make_stack_policy,
)
from deploy.preflight import check_firewall, count_reserved
from plaza.infra.mysql.mysql import SQL_MODE
from tests.support.failures import failing
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


REGION = "eu-central-1"


def defaults_of(part: Part) -> dict[str, str]:
    """The defaults of a template's parameters."""
    parameters = template_of(part)["Parameters"]
    return {name: str(item["Default"]) for name, item in parameters.items() if "Default" in item}


class FakeAccount:
    """An account in which a stack returns its outputs, each named after itself."""

    def __init__(
        self, *, has_edge: bool = False, has_balancer: bool = False, region: str = REGION
    ) -> None:
        self.region = region
        self.deployed: list[tuple[str, dict[str, str]]] = []
        self.deleted: list[str] = []
        self.stacks: dict[str, dict[str, Any]] = {}
        self.defaults: dict[str, dict[str, str]] = {}
        self.protected: dict[str, bool] = {}
        self.absent = {"HasEdge": not has_edge, "HasBalancer": not has_balancer}
        self.pages: list[tuple[str, str]] = []
        self.concurrency, self.sms = Concurrency(1000, 1000), (False, 50.0)

    def read_identity(self) -> tuple[str, str]:
        return "123456789012", "arn:aws:iam::123456789012:user/deployer"

    def read_concurrency(self) -> Concurrency:
        return self.concurrency

    def read_sms(self) -> tuple[bool, float]:
        return self.sms

    def describe(self, part: Part, environment: str) -> dict[str, Any] | None:
        return self.stacks.get(part.stack_name(environment, self.region))

    def read_defaults(self, part: Part, environment: str) -> dict[str, str]:
        return self.defaults[part.stack_name(environment, self.region)]

    def delete(self, part: Part, environment: str) -> None:
        name = part.stack_name(environment, self.region)
        self.deleted.append(name)
        del self.stacks[name]

    def protect(self, part: Part, environment: str, *, is_protected: bool) -> None:
        self.protected[part.stack_name(environment, self.region)] = is_protected

    def deploy(
        self, part: Part, environment: str, values: Mapping[str, str], *, exists: bool
    ) -> None:
        name = part.stack_name(environment, self.region)
        assert exists is (name in self.stacks)
        self.deployed.append((name, dict(values)))
        outputs = (
            [
                {"OutputKey": output, "OutputValue": f"<{output}>"}
                for output, item in template_of(part)["Outputs"].items()
                if not self.absent.get(item.get("Condition"))
            ]
            if "Outputs" in template_of(part)
            else []
        )
        self.stacks[name] = {
            "StackName": name,
            "StackStatus": "UPDATE_COMPLETE" if exists else "CREATE_COMPLETE",
            "Tags": [
                {"Key": key, "Value": value} for key, value in part.make_tags(environment).items()
            ],
            "Parameters": [{"ParameterKey": k, "ParameterValue": v} for k, v in values.items()],
            "Outputs": outputs,
        }
        self.defaults[name] = defaults_of(part)

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
        "plaza-staging-canary",
        "plaza-staging-budget-eu-central-1",
    ]


def test_a_second_deploy_asks_nothing() -> None:
    account = FakeAccount()
    deploy.deploy("staging", {}, account, answer)  # type: ignore[arg-type]
    deploy.deploy("staging", {"LogDays": "7"}, account, refuse)  # type: ignore[arg-type]
    values = dict(account.deployed)["plaza-staging"]
    assert values["LogDays"] == "7"
    assert values["SmsCountries"] == "US,DE", "as the stack has it"


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
    config = tomllib.loads(SAMCONFIG.read_text())[environment]["global"]["parameters"]
    own = dict(entry.split("=", 1) for entry in config["parameter_overrides"])
    others = {n: v for n, v in values.items() if n not in own}
    names = ("Architecture", "ReserveConcurrency", "Runtime", "SmsCountries")
    assert {n: others.pop(n) for n in names} == {  # asked for, built, or read from the account
        "Architecture": "arm64",
        "ReserveConcurrency": "1",
        "Runtime": "python3.13",
        "SmsCountries": "US,DE",
    }
    assert own.items() <= values.items()
    assert others.items() <= defaults_of(APPLICATION).items(), "which plain sam takes, too"
    assert config["stack_name"] == APPLICATION.stack_name(environment, REGION)
    assert config["tags"] == " ".join(
        f"{key}={value}" for key, value in APPLICATION.make_tags(environment).items()
    )
    assert config["confirm_changeset"] is (environment == "prod")
    assert config["resolve_s3"] is True


def test_parameters_of_samconfig_reach_each_template_and_arguments_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "samconfig.toml"
    text = SAMCONFIG.read_text()
    more = '  "Environment=staging",\n  "LogDays=90",\n  "RedisShards=2",\n'
    config.write_text(text.replace('  "Environment=staging",\n', more))
    monkeypatch.setattr(deploy, "SAMCONFIG", config)
    account = FakeAccount()
    deploy.deploy("staging", {"LogDays": "7"}, account, answer)  # type: ignore[arg-type]
    deployed = dict(account.deployed)
    assert deployed["plaza-staging"]["LogDays"] == "7"
    assert deployed["plaza-staging-data"]["RedisShards"] == "2"


def test_the_canary_gets_the_name_that_clients_use_and_its_secret() -> None:
    account = FakeAccount(has_edge=True)
    deploy.deploy("staging", {"GuardOrigin": "trust"}, account, answer)  # type: ignore[arg-type]
    values = dict(account.deployed)[CANARY.stack_name("staging", REGION)]
    assert values["EdgeUrl"] == "<EdgeUrl>"
    assert values["CanarySecretArn"] == "<CanarySecretArn>"
    assert values["AlarmTopicArn"] == "/plaza/staging/AlarmTopicArn"


def test_an_environment_without_a_section_is_refused() -> None:
    with pytest.raises(DeployError, match=r"no section alice\.global\.parameters"):
        deploy.deploy("alice", {}, FakeAccount(), refuse)  # type: ignore[arg-type]


def test_the_edge_gets_the_copy_of_the_secret_in_its_region() -> None:
    account = FakeAccount(has_edge=True)
    deploy.deploy("staging", {"GuardOrigin": "trust"}, account, answer)  # type: ignore[arg-type]
    values = dict(account.deployed)[EDGE.stack_name("staging", REGION)]
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
        "-edge-eu-central-1",
        "-canary",
        "-budget-eu-central-1",
    ]
    deployed = dict(account.deployed)
    assert deployed["plaza-staging-network"]["Ingress"] == "load-balancer"
    values = deployed[BALANCER.stack_name("staging", REGION)]
    assert values["ApiFunctions"] == "<ApiFunctions>"
    for name in ("PublicSubnetIds", "BalancerSecurityGroupId", "AlarmTopicArn"):
        assert values[name] == f"/plaza/staging/{name}"
    assert values["GuardOrigin"] == deployed["plaza-staging"]["GuardOrigin"]
    assert deployed[EDGE.stack_name("staging", REGION)]["ApiDomain"] == "<ApiDomain>"


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
    assert BALANCER.stack_name("staging", REGION) not in deployed
    del account.stacks[BALANCER.stack_name("staging", REGION)]
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
    "environment",
    [
        "local",
        "default",
        "Prod",
        "a b",
        "",
        "x" * 21,
        "prod-data",
        "a-edge-eu-west-1",
        "a--b",
        "a-",
    ],
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
    with pytest.raises(DeployError, match="add AlarmEmail="):
        deploy.deploy("staging", {}, FakeAccount(), failing(EOFError))  # type: ignore[arg-type]


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


# ---------------------------------------------------------------- values of parameters


def deploy_staging(
    account: FakeAccount, *values: str, ask: Any = refuse
) -> dict[str, dict[str, str]]:
    """Deploy once more; return the values of each stack by the name of its part."""
    account.deployed.clear()
    given = dict(value.split("=", 1) for value in values)
    deploy.deploy("staging", given, account, ask)  # type: ignore[arg-type]
    return {name.removeprefix("plaza-staging"): values for name, values in account.deployed}


def test_a_changed_default_reaches_an_environment() -> None:
    account = FakeAccount()
    deploy_staging(account, ask=answer)
    application = account.stacks["plaza-staging"]
    account.defaults["plaza-staging"] |= {"RequestsPerSecond": "1000", "LogDays": "14"}
    for parameter in application["Parameters"]:  # as the template before had it
        if parameter["ParameterKey"] == "RequestsPerSecond":
            parameter["ParameterValue"] = "1000"
    values = deploy_staging(account)[""]
    assert values["RequestsPerSecond"] == defaults_of(APPLICATION)["RequestsPerSecond"]
    assert values["LogDays"] == "30", "it was not the default of the template before"


def test_a_value_that_an_operator_set_stays_until_another_is_given() -> None:
    account = FakeAccount()
    deploy_staging(account, "LogDays=90", ask=answer)
    assert deploy_staging(account)[""]["LogDays"] == "90"
    assert deploy_staging(account, "LogDays=30")[""]["LogDays"] == "30"
    account.defaults["plaza-staging"]["LogDays"] = "30"
    assert deploy_staging(account)[""]["LogDays"] == "30"


def test_every_parameter_is_passed_explicitly() -> None:
    account = FakeAccount(has_edge=True, has_balancer=True)
    values = ("Ingress=load-balancer", "BalancerDomainName=api.example.com", "GuardOrigin=trust")
    deployed = deploy_staging(account, *values, ask=answer)
    assert len(deployed) == len(PARTS)
    for part in PARTS:
        name = part.stack_name("staging", REGION).removeprefix("plaza-staging")
        assert set(deployed[name]) == set(template_of(part)["Parameters"]), part.name


def test_a_hot_fix_without_a_shift_of_traffic_is_for_one_deploy() -> None:
    account = FakeAccount()
    assert deploy_staging(account, "ShiftTraffic=false", ask=answer)[""]["ShiftTraffic"] == "false"
    assert deploy_staging(account)[""]["ShiftTraffic"] == "true"


def test_the_address_of_alarms_is_known_after_a_first_deploy_that_failed_half_way() -> None:
    account = FakeAccount()
    deploy_staging(account, ask=answer)
    del account.stacks["plaza-staging-budget-eu-central-1"]
    deployed = deploy_staging(account)
    assert deployed["-budget-eu-central-1"]["AlarmEmail"] == "ops@example.com"


# ---------------------------------------------------------------- stacks that exist


def test_stacks_of_the_base_and_the_application_are_protected_until_the_tear_down() -> None:
    account = FakeAccount()
    deploy_staging(account, ask=answer)
    protected = ["plaza-staging-network", "plaza-staging-data", "plaza-staging"]
    assert account.protected == dict.fromkeys(protected, True)
    deployed = deploy_staging(account, "DeletionProtection=false")
    assert deployed["-data"]["DeletionProtection"] == "false"
    assert account.protected == dict.fromkeys(protected, False)
    assert deploy_staging(account)["-data"]["DeletionProtection"] == "true"
    assert account.protected == dict.fromkeys(protected, True)


def test_a_stack_whose_creation_failed_is_deleted_and_created_again() -> None:
    account = FakeAccount()
    deploy_staging(account, ask=answer)
    account.stacks["plaza-staging-network"]["StackStatus"] = "ROLLBACK_COMPLETE"
    assert list(deploy_staging(account)) == [
        "-network",
        "-data",
        "",
        "-canary",
        "-budget-eu-central-1",
    ]
    assert account.deleted == ["plaza-staging-network"]


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        ("UPDATE_IN_PROGRESS", "wait for its end"),
        ("ROLLBACK_FAILED", "a-failed-deploy"),
        ("UPDATE_ROLLBACK_FAILED", "a-failed-deploy"),
    ],
)
def test_a_stack_that_cannot_be_updated_stops_a_deploy_before_anything_changes(
    status: str, remedy: str
) -> None:
    account = FakeAccount()
    deploy_staging(account, ask=answer)
    account.stacks["plaza-staging"]["StackStatus"] = status
    with pytest.raises(DeployError, match=f"plaza-staging is {status}.*{remedy}"):
        deploy_staging(account)
    assert account.deployed == []


@pytest.mark.parametrize(
    "tags",
    [{PART_TAG: "data"}, {"environment": "prod"}, {"project": "shop"}],
    ids=["part", "environment", "project"],
)
def test_a_stack_with_other_tags_stops_a_deploy_before_anything_changes(
    tags: dict[str, str],
) -> None:
    account = FakeAccount()
    deploy_staging(account, ask=answer)
    stack = account.stacks["plaza-staging"]
    stack["Tags"] = [{"Key": k, "Value": v} for k, v in (tags_of(stack) | tags).items()]
    with pytest.raises(DeployError, match="plaza-staging exists and is another stack"):
        deploy_staging(account)
    assert account.deployed == []


def tags_of(stack: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in stack["Tags"]}


def test_a_stack_of_a_version_without_tags_of_parts_is_updated() -> None:
    account = FakeAccount()
    deploy_staging(account, ask=answer)
    for stack in account.stacks.values():
        stack["Tags"] = [tag for tag in stack["Tags"] if tag["Key"] != PART_TAG]
    assert len(deploy_staging(account)) == 5


def test_environments_of_two_regions_share_no_stack() -> None:
    """CloudFront and budgets are in one region for all."""
    both = [FakeAccount(has_edge=True, region=region) for region in (REGION, "us-west-2")]
    for account in both:
        deploy.deploy("staging", {"GuardOrigin": "trust"}, account, answer)  # type: ignore[arg-type]
    elsewhere = [
        {part.stack_name("staging", account.region) for part in PARTS if part.region}
        for account in both
    ]
    assert not set.intersection(*elsewhere)


def test_no_environment_has_a_stack_of_another_one() -> None:
    names = ["prod", "staging", "data", "prod-eu", "a", *(p.name for p in PARTS if p.name)]
    names += [f"{name}-{other}" for name in names[:5] for other in [*names, "x", "eu-central-1"]]
    names += [f"prod-edge-{REGION}"[:20], "prod-data-x", "a-budget-1"]
    owners: dict[str, str] = {}
    accepted = 0
    for environment in names:
        try:
            check_environment(environment)
        except DeployError:
            continue
        accepted += 1
        for part in PARTS:
            name = part.stack_name(environment, REGION)
            assert owners.setdefault(name, environment) == environment
            assert "--" not in name, "RDS makes an identifier of it, and refuses this"
    assert accepted > 10


# ---------------------------------------------------------------- account and region


def test_another_account_than_the_one_of_samconfig_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "samconfig.toml"
    text = SAMCONFIG.read_text()
    config.write_text(f'{text}\n[staging.plaza.parameters]\naccount = "210987654321"\n')
    monkeypatch.setattr(deploy, "SAMCONFIG", config)
    account = FakeAccount()
    with pytest.raises(DeployError, match="has account 210987654321, not 123456789012"):
        deploy_staging(account)
    assert account.deployed == []
    config.write_text(f'{text}\n[staging.plaza.parameters]\naccount = "123456789012"\n')
    assert deploy_staging(account, ask=answer)


@pytest.mark.parametrize(
    ("configured", "shell", "region"),
    [
        ("eu-central-1", {}, "eu-central-1"),
        ("eu-central-1", {"AWS_REGION": "eu-central-1"}, "eu-central-1"),
        (None, {"AWS_REGION": "us-west-2"}, "us-west-2"),
        (None, {"AWS_DEFAULT_REGION": "us-west-2"}, "us-west-2"),
        (None, {"AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "eu-west-1"}, "us-west-2"),
        (None, {"AWS_PROFILE": "plaza"}, "ap-south-1"),
    ],
)
def test_the_region_is_that_of_samconfig_or_of_the_shell(
    configured: str | None,
    shell: dict[str, str],
    region: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profiles = tmp_path / "config"
    profiles.write_text("[profile plaza]\nregion = ap-south-1\n")
    forget_shell(monkeypatch)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(profiles))
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    assert find_region(configured) == region


def forget_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def test_a_shell_with_another_region_than_samconfig_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain sam would take the shell's."""
    forget_shell(monkeypatch)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(DeployError, match="no region"):
        find_region(None)
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    with pytest.raises(DeployError, match="has region eu-central-1, the shell has us-west-2"):
        find_region("eu-central-1")


@pytest.mark.parametrize(
    ("concurrency", "sms", "noted"),
    [
        (1000, (False, 50.0), []),
        (10, (False, 50.0), ["at most 100 requests a second", "takes the executions of consumers"]),
        (1000, (True, 1.0), ["verified phones only", "1 USD a month"]),
    ],
)
def test_a_deploy_says_which_limits_of_the_account_it_meets(
    concurrency: int, sms: tuple[bool, float], noted: list[str]
) -> None:
    account = FakeAccount()
    lines: list[str] = []
    account.concurrency, account.sms = Concurrency(concurrency, concurrency), sms
    given = {"GuardOrigin": "require"}
    deploy.deploy("staging", given, account, answer, lines.append)  # type: ignore[arg-type]
    assert "123456789012, region eu-central-1" in lines[0]
    notes = [line for line in lines if line.startswith("note: ")]
    assert len(notes) == len(noted)
    for note, text in zip(notes, noted, strict=True):
        assert text in note


NEEDED = count_reserved() + 100


def reserved_in(account: FakeAccount) -> str:
    name = APPLICATION.stack_name("staging", REGION)
    return [values for stack, values in account.deployed if stack == name][-1]["ReserveConcurrency"]


@pytest.mark.parametrize(
    ("quota", "unreserved", "reserved"),
    [
        (1000, 1000, "1"),
        (NEEDED, NEEDED, "1"),
        (NEEDED - 1, NEEDED - 1, "0"),  # or Lambda refuses: 100 stay unreserved
        (1000, NEEDED - 1, "0"),  # another environment has the rest
        (50, 50, "0"),
        (10, 10, "0"),
    ],
)
def test_consumers_are_guarded_where_the_account_has_room(
    quota: int, unreserved: int, reserved: str
) -> None:
    account = FakeAccount()
    account.concurrency = Concurrency(quota, unreserved)
    deploy_staging(account, ask=answer)
    assert reserved_in(account) == reserved


def test_what_an_environment_reserves_itself_does_not_stop_its_next_deploy() -> None:
    account = FakeAccount()
    account.concurrency = Concurrency(NEEDED + 50, NEEDED + 50)
    deploy_staging(account, ask=answer)
    account.concurrency = Concurrency(NEEDED + 50, 150)
    deploy_staging(account)
    assert reserved_in(account) == "1"


def test_a_deployer_who_may_not_read_the_quota_leaves_reservations_as_they_are() -> None:
    account = FakeAccount()
    deploy_staging(account, ask=answer)
    account.read_concurrency = deny_quota  # type: ignore[method-assign]
    deploy_staging(account)
    assert reserved_in(account) == "1"


def deny_quota() -> Concurrency:
    denied = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}
    raise ClientError(denied, "GetAccountSettings")  # type: ignore[arg-type]


def test_an_operator_may_refuse_reservations() -> None:
    account = FakeAccount()
    deploy_staging(account, "ReserveConcurrency=0", ask=answer)
    assert reserved_in(account) == "0"


def test_reserved_concurrency_above_the_quota_is_refused_before_anything_is_deployed() -> None:
    account = FakeAccount()
    account.concurrency = Concurrency(NEEDED - 1, NEEDED - 1)
    with pytest.raises(DeployError, match=f"needs {NEEDED} unreserved"):
        deploy_staging(account, "ReserveConcurrency=1", ask=answer)
    assert account.deployed == []


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ("", "no firewall: it comes with the edge"),
        ("GuardOrigin=trust", "the URL of the HTTP API passes by the firewall of the edge"),
        ("GuardOrigin=require", None),
        (
            "Ingress=load-balancer BalancerFirewall=0 HttpApi=closed",
            "no firewall: BalancerFirewall=0",
        ),
        ("Ingress=load-balancer", "the URL of the HTTP API passes by the firewall of the load"),
        ("Ingress=load-balancer HttpApi=closed", None),
        ("Ingress=load-balancer HttpApi=closed GuardOrigin=require", None),
        ("Ingress=load-balancer HttpApi=closed GuardOrigin=trust", "the load balancer passes by"),
    ],
)
def test_a_deploy_says_which_entry_no_firewall_protects(given: str, note: str | None) -> None:
    defaults = {"Ingress": "http-api", "HttpApi": "open", "GuardOrigin": "off"}
    notes = check_firewall(defaults | dict(pair.split("=") for pair in given.split()))
    assert (note or "") in notes
    assert bool(notes) is bool(note)


def test_the_note_of_the_firewall_is_of_the_values_that_are_deployed() -> None:
    account = FakeAccount()
    notes: list[str] = []
    for given in ({}, {"GuardOrigin": "require"}, {}):
        lines: list[str] = []
        deploy.deploy("staging", given, account, answer, lines.append)  # type: ignore[arg-type]
        notes.append("\n".join(line for line in lines if "firewall" in line))
    assert notes[0].startswith("note: no firewall")
    assert notes[1:] == ["", ""], "the value stays"


# ---------------------------------------------------------------- templates


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name or "application")
def test_no_output_has_the_name_of_a_parameter(part: Part) -> None:
    """SAM takes an output for the parameter, and ends in a traceback if that is a list."""
    template = template_of(part)
    assert not set(template.get("Outputs", {})) & set(template["Parameters"])


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name or "application")
def test_a_creation_that_failed_retains_nothing(part: Part) -> None:
    """So its stack can be deleted and created again without a question."""
    for name, resource in template_of(part)["Resources"].items():
        assert resource.get("DeletionPolicy") != "Retain", f"{name}: RetainExceptOnCreate"


def test_no_update_deletes_or_replaces_a_store_or_its_secrets() -> None:
    resources = template_of(DATA)["Resources"].values()
    kept = {r["Type"] for r in resources if r.get("DeletionPolicy") == "Snapshot"}
    kept |= {r["Type"] for r in resources if r["Type"] == "AWS::SecretsManager::Secret"}
    assert kept == set(STORES)
    allow, deny = json.loads(make_stack_policy(replaces_stores=False))["Statement"]
    assert (allow["Effect"], allow["Action"], allow["Resource"]) == ("Allow", "Update:*", "*")
    assert (deny["Effect"], deny["Resource"]) == ("Deny", "*")
    assert set(deny["Action"]) == {"Update:Delete", "Update:Replace"}
    assert set(deny["Condition"]["StringEquals"]["ResourceType"]) == set(STORES)
    assert json.loads(make_stack_policy(replaces_stores=True))["Statement"] == [allow]


@pytest.mark.parametrize("prefix", range(8, 29))
def test_a_network_that_cannot_hold_four_subnets_is_refused(prefix: int) -> None:
    pattern = template_of(NETWORK)["Parameters"]["Cidr"]["AllowedPattern"]
    subnets, host_bits = map(
        int, re.findall(r"Fn::Cidr': \[.*?, (\d+), (\d+)\]", str(template_of(NETWORK)))[0]
    )
    holds_subnets = 2 ** (32 - prefix) >= subnets * 2**host_bits
    is_vpc = prefix >= 16  # of AWS
    assert bool(re.fullmatch(pattern, f"10.20.0.0/{prefix}")) is (holds_subnets and is_vpc)


def test_mysql_is_of_the_line_with_long_term_support_and_changes_by_its_parameter_only() -> None:
    template = template_of(DATA)
    assert template["Parameters"]["MysqlVersion"]["Default"].startswith("8.0.mysql_aurora.3.10.")
    for name in ("MysqlWriter", "MysqlReader"):
        assert template["Resources"][name]["Properties"]["AutoMinorVersionUpgrade"] is False


def test_the_binlog_is_off_where_only_the_api_writes() -> None:
    assert {
        template_of(part)["Parameters"]["Binlog"]["Default"] for part in (DATA, APPLICATION)
    } == {"off"}
    parameters = template_of(DATA)["Resources"]["MysqlParameters"]["Properties"]["Parameters"]
    assert parameters["binlog_format"] == {"Fn::If": ["KeepsBinlog", "ROW", "OFF"]}


def test_mysql_is_strict_in_each_session_and_cluster() -> None:
    """Aurora's default truncates what is too long, and fills in what is missing."""
    groups = [
        resource["Properties"]["Parameters"]
        for resource in template_of(DATA)["Resources"].values()
        if re.fullmatch("AWS::RDS::.*ParameterGroup", resource["Type"])
    ]
    assert [group["sql_mode"] for group in groups] == [SQL_MODE]
    assert "STRICT_TRANS_TABLES" in SQL_MODE.split(",")
    opening = [file for file in LAYER.rglob("*.py") if "SharedTlsConnection(" in file.read_text()]
    assert [file.name for file in opening] == ["driver.py", "mysql.py"]
