"""Deploys an environment: network, stores, application, load balancer, edge with pages, budget.

  python -m deploy up staging [Name=Value ...]

An environment is a section of samconfig.toml: region, tags, parameters. ``Name=Value`` sets a
parameter of any of the templates; a deploy keeps what an earlier one set. What network and stores
export is in Parameter Store under ``/plaza/ENVIRONMENT/``, where the other templates read it; what
a later stack returns for the edge, which is in another region, is passed on. The first deploy asks
for what nothing knows. The application must be built (``make build``).
"""

import argparse
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.exceptions import ClientError

from cli.paths import ROOT, TOOLS, CommandError
from deploy import pages

ENVIRONMENT = re.compile(r"[a-z][a-z0-9-]{0,19}")
BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
SAMCONFIG = ROOT / "samconfig.toml"
EXPORTED = "AWS::SSM::Parameter::Value<"  # type of a parameter that is read from Parameter Store
EDGE_REGION = "us-east-1"  # of web ACLs and certificates of CloudFront, and of budgets
QUESTIONS = {
    "AlarmEmail": "Address that alarms are sent to",
    "SmsCountries": "Countries that sign-in codes are sent to (US,DE)",
    "BalancerDomainName": "Name of the load balancer (api.example.com)",
}


class DeployError(CommandError):
    """A deploy cannot start or go on; the text says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stack of an environment. ``region``: None for the environment's."""

    name: str
    template: Path
    region: str | None = None

    def stack_name(self, environment: str) -> str:
        return f"plaza-{environment}{self.name and f'-{self.name}'}"


NETWORK = Part("network", ROOT / "deploy" / "network.yaml")
DATA = Part("data", ROOT / "deploy" / "data.yaml")
APPLICATION = Part("", BUILT)
BALANCER = Part("balancer", ROOT / "deploy" / "balancer.yaml")
EDGE = Part("edge", ROOT / "deploy" / "edge.yaml", EDGE_REGION)
BUDGET = Part("budget", ROOT / "deploy" / "budget.yaml", EDGE_REGION)
PARTS = (NETWORK, DATA, APPLICATION, BALANCER, EDGE, BUDGET)


@dataclass(frozen=True, slots=True)
class Settings:
    """What samconfig.toml has for an environment."""

    region: str
    values: Mapping[str, str]
    """Name -> value of parameters, except those that the application reads from Parameter Store."""


class Account:
    """CloudFormation and SAM, in the account of the shell's AWS settings.

    ``confirms``: False to execute change sets at once; True as samconfig.toml says.
    """

    def __init__(self, region: str, *, confirms: bool = True) -> None:
        self.region = region
        self._confirms = confirms

    def describe(self, part: Part, environment: str) -> dict[str, Any] | None:
        """Return a stack as CloudFormation does, None if it does not exist."""
        formation: Any = boto3.client("cloudformation", region_name=part.region or self.region)
        try:
            [stack] = formation.describe_stacks(StackName=part.stack_name(environment))["Stacks"]
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
        return dict(stack)

    def deploy(self, part: Part, environment: str, values: Mapping[str, str]) -> None:
        """Run ``sam deploy``. Parameters without a value keep the one that the stack has."""
        region = part.region or self.region
        command: list[str | Path] = [
            TOOLS / "sam", "deploy", "--config-file", SAMCONFIG, "--config-env", environment,
            "--template-file", part.template, "--region", region,
            "--stack-name", part.stack_name(environment),
        ]  # fmt: skip
        if not self._confirms:
            command.append("--no-confirm-changeset")
        if values:  # instead of the values in samconfig.toml, which are the application's
            command += ["--parameter-overrides", *(f'{n}="{v}"' for n, v in values.items())]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            raise DeployError(f"{part.stack_name(environment)} was not deployed")

    def read_secret_version(self, arn: str) -> str:
        """Return the id of a secret's current version, without reading the secret."""
        secret = boto3.client("secretsmanager", region_name=self.region).describe_secret(
            SecretId=arn
        )
        [version] = [id_ for id_, s in secret["VersionIdsToStages"].items() if "AWSCURRENT" in s]
        return version

    def upload_pages(self, bucket: str, distribution: str) -> None:
        """Upload the built pages, and let the edge serve them."""
        s3, cloudfront = (boto3.client(n, region_name=EDGE_REGION) for n in ("s3", "cloudfront"))
        pages.upload_pages(pages.list_pages(), bucket, distribution, s3, cloudfront)


def deploy(
    environment: str,
    given: Mapping[str, str],
    account: Account,
    ask: Callable[[str], str] = input,
) -> dict[str, str]:
    """Deploy all parts in order. Returns the outputs of all. Raises DeployError."""
    settings = read_settings(environment)
    parameters = {part.name: read_parameters(part.template) for part in PARTS}
    if unknown := set(given) - {name for names in parameters.values() for name in names}:
        raise DeployError(f"no template has the parameter {', '.join(sorted(unknown))}")
    known = {**settings.values, **given, "Environment": environment}
    architecture, runtime = read_architecture(BUILT.parent), read_runtime(BUILT.parent)
    if known.setdefault("Architecture", architecture) != architecture:
        raise DeployError(f"the layer is for {architecture}; run `make build ARCHITECTURE=...`")
    if known.setdefault("Runtime", runtime) != runtime:
        raise DeployError(f"the layer is for {runtime}; run `make clean build PYTHON_VERSION=...`")
    outputs: dict[str, str] = {}
    for part in PARTS:
        stack = account.describe(part, environment)
        if part is EDGE and stack is None and "OriginSecretArn" not in outputs:
            continue
        if part is BALANCER and outputs["Ingress"] != "load-balancer":
            continue
        for name in parameters[part.name]:
            is_asked = name in QUESTIONS and name not in known
            if is_asked and name not in read_pairs(stack, "Parameter"):
                known[name] = _ask(name, ask)
        values = {
            name: f"/plaza/{environment}/{name}" if type_.startswith(EXPORTED) else known[name]
            for name, type_ in parameters[part.name].items()
            if type_.startswith(EXPORTED) or name in known
        }
        if part is NETWORK and account.describe(BALANCER, environment):
            values["Ingress"] = "load-balancer"  # whose subnets are in use until it is deleted
        account.deploy(part, environment, values)
        outputs |= read_pairs(account.describe(part, environment), "Output")
        known |= outputs
        if part is APPLICATION and "OriginSecretArn" in outputs:
            known |= _describe_origin_secret(outputs["OriginSecretArn"], account)
        if part is EDGE:
            account.upload_pages(outputs["PagesBucket"], outputs["EdgeDistribution"])
    return outputs


def read_settings(environment: str) -> Settings:
    """Return what samconfig.toml has for an environment. Raises DeployError."""
    parts = tuple(f"-{part.name}" for part in PARTS if part.name)  # plaza-prod-data is a part
    if (
        not ENVIRONMENT.fullmatch(environment)
        or environment in ("default", "local")
        or environment.endswith(parts)
    ):
        raise DeployError(
            f"{environment!r} is no name of an environment: a-z, 0-9 and -, not local, not default,"
            f" not with {', '.join(parts)} at its end"
        )
    try:
        parameters = tomllib.loads(SAMCONFIG.read_text())[environment]["global"]["parameters"]
    except KeyError:
        raise DeployError(
            f"samconfig.toml has no section {environment}.global.parameters; copy staging's"
        ) from None
    overrides = dict(entry.split("=", 1) for entry in parameters["parameter_overrides"])
    values = {n: v for n, v in overrides.items() if not v.startswith(f"/plaza/{environment}/")}
    return Settings(parameters["region"], values)


def read_parameters(template: Path) -> dict[str, str]:
    """Return the parameters of a template: name -> type. Raises DeployError if it was not built."""
    if not template.exists():
        raise DeployError(f"{template.relative_to(ROOT)} is missing; run `make build`")
    declared = yaml.load(template.read_text(), Loader)["Parameters"]  # noqa: S506 - a SafeLoader
    return {name: parameter["Type"] for name, parameter in declared.items()}


def read_architecture(build: Path) -> str:
    """Return the processor that the layer of a build is for. Raises DeployError without a build."""
    return "arm64" if "-aarch64-" in _find_extension(build) else "x86_64"


def read_runtime(build: Path) -> str:
    """Return the Python that the layer of a build is for. Raises DeployError without a build."""
    return re.sub(r".*\.cpython-(\d)(\d+)-.*", r"python\1.\2", _find_extension(build))


def _find_extension(build: Path) -> str:
    extensions = (build / "CommonLayer" / "python").glob("pydantic_core/*.cpython-*.so")
    if (extension := next(extensions, None)) is None:
        raise DeployError("there is no layer; run `make build`")
    return extension.name


def read_pairs(stack: Mapping[str, Any] | None, kind: str) -> dict[str, str]:
    """Return the parameters (``kind``: Parameter) or the outputs (Output) of a stack."""
    pairs = (stack or {}).get(f"{kind}s", [])
    return {entry[f"{kind}Key"]: entry.get(f"{kind}Value", "") for entry in pairs}


def _ask(name: str, ask: Callable[[str], str]) -> str:
    try:
        value = ask(f"{QUESTIONS[name]}: ").strip()
    except EOFError:
        value = ""
    if not value:
        raise DeployError(f"{name} is missing; add {name}=...")
    return value


def _describe_origin_secret(arn: str, account: Account) -> dict[str, str]:
    """Return the copy of the secret in the edge's region. A new version updates the edge."""
    copy = arn.replace(f":{account.region}:", f":{EDGE_REGION}:")
    return {"OriginSecretArn": copy, "OriginSecretVersion": account.read_secret_version(arn)}


class Loader(yaml.CSafeLoader):
    """Loads a template; the values of short tags such as ``!Ref`` do not matter."""


Loader.add_multi_constructor("!", lambda *_: None)


def main(args: argparse.Namespace) -> None:
    """Deploy, and print the outputs of all stacks. Raises DeployError."""
    if wrong := [value for value in args.values if not re.match(r"\w+=", value)]:
        raise DeployError(f"{wrong[0]!r} is not Name=Value")
    account = Account(read_settings(args.environment).region, confirms=not args.yes)
    outputs = deploy(args.environment, dict(v.split("=", 1) for v in args.values), account)
    for name, value in sorted(outputs.items()):
        print(f"{name} = {value}")
