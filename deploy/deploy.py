"""Deploys an environment: network, stores, application, balancer, edge with pages, canary, budget.

  python -m deploy up staging [Name=Value ...]

An environment is a section of samconfig.toml: region, tags, parameters. ``Name=Value`` sets a
parameter of any of the templates. Each deploy passes every parameter: what the command or
samconfig.toml says, else what an earlier deploy set, else the default of the template. A value that
is the default of the deployed template counts as not set, so that a changed default reaches the
environment. What network and stores export is in Parameter Store under ``/plaza/ENVIRONMENT/``,
where the other templates read it; what a later stack returns for the edge, which is in another
region, is passed on. The first deploy asks for what nothing knows. The application must be built
(``make build``).
"""

import argparse
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import boto3
import yaml

from cli.paths import ROOT
from deploy.account import SAMCONFIG, Account, explain_aws_errors
from deploy.parts import (
    APPLICATION,
    BALANCER,
    BUILT,
    EDGE,
    EDGE_REGION,
    NETWORK,
    PARTS,
    DeployError,
    Part,
    check_environment,
    check_stack,
    read_pairs,
)
from deploy.preflight import RESERVE, check_firewall, check_limits, choose_reservation
from plaza.core.reactions.kinds import CONTENT_TYPES, parse_kinds
from plaza.core.targets.types import parse_types
from plaza.infra.runtime.settings import BadSettings

EXPORTED = "AWS::SSM::Parameter::Value<"  # type of a parameter that is read from Parameter Store
ONCE = frozenset({"DeletionProtection", "ShiftTraffic"})
"""Parameters whose values hold for one deploy. The next one without them returns to the default."""

QUESTIONS = {
    "AlarmEmail": "Address that alarms are sent to",
    "SmsCountries": "Countries that sign-in codes are sent to (US,DE)",
    "BalancerDomainName": "Name of the load balancer (api.example.com)",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What samconfig.toml and the shell have for an environment.

    ``values``: name -> value of parameters, except those that the application reads from Parameter
    Store. ``account``: id of the only account that it may be deployed to; None for any.
    """

    region: str
    values: Mapping[str, str]
    account: str | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a template. ``default``: None if it has none."""

    type: str
    default: str | None


def deploy(
    environment: str,
    given: Mapping[str, str],
    account: Account,
    ask: Callable[[str], str] = input,
    report: Callable[[str], None] = print,
) -> dict[str, str]:
    """Deploy all parts in order. Returns the outputs of all. Raises DeployError."""
    settings = read_settings(environment)
    parameters = {part.name: read_parameters(part.template) for part in PARTS}
    if unknown := set(given) - {name for names in parameters.values() for name in names}:
        raise DeployError(f"no template has the parameter {', '.join(sorted(unknown))}")
    known = {**settings.values, **given, "Environment": environment}
    check_declared(known.get("TargetTypes", ""), known.get("Kinds", ""))
    architecture, runtime = read_architecture(BUILT.parent), read_runtime(BUILT.parent)
    if known.setdefault("Architecture", architecture) != architecture:
        raise DeployError(f"the layer is for {architecture}; run `make build ARCHITECTURE=...`")
    if known.setdefault("Runtime", runtime) != runtime:
        raise DeployError(f"the layer is for {runtime}; run `make clean build PYTHON_VERSION=...`")
    _check_account(account, settings, known, report)
    rollout = _Rollout(environment, account, known, ask, report)
    rollout.check_stacks()
    rollout.choose_reservation()
    for part in PARTS:
        if rollout.has(part):
            rollout.deploy(part, parameters[part.name])
    return rollout.outputs


def check_declared(target_types: str, kinds: str) -> None:
    """Raise DeployError, with the field's name, for a wrong value of the parameters TargetTypes and
    Kinds."""
    try:
        parse_kinds(
            kinds, CONTENT_TYPES | {declared.name for declared in parse_types(target_types)}
        )
    except BadSettings as error:
        raise DeployError(str(error)) from None


class _Rollout:
    """A deploy of an environment: what is known of its parameters, and what the stacks returned.

    ``stacks``: part -> its stack as it was before, None without one.
    """

    def __init__(
        self,
        environment: str,
        account: Account,
        known: dict[str, str],
        ask: Callable[[str], str],
        report: Callable[[str], None],
    ) -> None:
        self.outputs: dict[str, str] = {}
        self._environment = environment
        self._account = account
        self._known = known
        self._ask = ask
        self._report = report
        self._ingress = ""
        self._stacks = {part.name: account.describe(part, environment) for part in PARTS}

    def check_stacks(self) -> None:
        """Raise DeployError if one of the stacks is another one or cannot be updated."""
        for part in PARTS:
            if stack := self._stacks.get(part.name):
                check_stack(part, self._environment, stack)

    def choose_reservation(self) -> None:
        """Decide whether executions are reserved, unless it is given. Raises DeployError."""
        reserves = read_pairs(self._stacks.get(APPLICATION.name), "Parameter").get(RESERVE) == "1"
        self._known[RESERVE], note = choose_reservation(
            self._account, self._known.get(RESERVE), reserves=reserves
        )
        if note:
            self._report(f"note: {note}")

    def has(self, part: Part) -> bool:
        """Return whether the environment has a part, after those before it were deployed."""
        if part is BALANCER:
            return self._ingress == "load-balancer"
        return (
            part is not EDGE or bool(self._stacks[EDGE.name]) or "OriginSecretArn" in self.outputs
        )

    def deploy(self, part: Part, parameters: Mapping[str, Parameter]) -> None:
        """Deploy a part with all its parameters; protect its stack; remember what it returns."""
        exists = self._prepare(part)
        values = self._choose_values(part, parameters, exists=exists)
        if part is APPLICATION and (note := check_firewall(self._known | values)):
            self._report(f"note: {note}")
        self._account.deploy(part, self._environment, values, exists=exists)
        if part.is_protected:
            is_protected = self._known.get("DeletionProtection") != "false"
            self._account.protect(part, self._environment, is_protected=is_protected)
        returned = read_pairs(self._account.describe(part, self._environment), "Output")
        self.outputs |= returned
        self._known |= returned
        if part is APPLICATION:
            self._ingress = values["Ingress"]
            self._known["GuardOrigin"] = values["GuardOrigin"]  # the load balancer follows it
            if arn := returned.get("OriginSecretArn"):
                self._known |= _describe_origin_secret(arn, self._account)
        if part is EDGE:
            self._account.upload_pages(returned["PagesBucket"], returned["EdgeDistribution"])

    def _prepare(self, part: Part) -> bool:
        """Return whether the part has a stack to update. Deletes what a failed creation left, which
        is nothing but its name: no template retains anything of it."""
        name, stack = self._name(part), self._stacks.get(part.name)
        if stack and stack["StackStatus"] == "ROLLBACK_COMPLETE":
            self._report(f"{name}: its creation failed; it is deleted and created again")
            self._account.delete(part, self._environment)
            stack = None
        self._report(f"{name}: {'update' if stack else 'create'}")
        return stack is not None

    def _choose_values(
        self, part: Part, parameters: Mapping[str, Parameter], *, exists: bool
    ) -> dict[str, str]:
        """Return a value for each parameter. Asks for what is missing."""
        own = self._read_own(part) if exists else {}
        for name in parameters:
            if name in QUESTIONS and name not in {*self._known, *own}:
                self._known[name] = self._find_elsewhere(name) or _ask(name, self._ask)
        values: dict[str, str] = {}
        for name, parameter in parameters.items():
            value = self._known.get(name, own.get(name, parameter.default))
            if parameter.type.startswith(EXPORTED):
                values[name] = f"/plaza/{self._environment}/{name}"
            elif value is not None:
                values[name] = value
        if part is NETWORK and self._stacks.get(BALANCER.name):
            values["Ingress"] = "load-balancer"  # whose subnets are in use until it is deleted
        for name in sorted(set(own) & set(values) - set(self._known)):
            if not parameters[name].type.startswith(EXPORTED):
                self._report(f"  {name} stays {values[name]}")
        return values

    def _read_own(self, part: Part) -> dict[str, str]:
        """Return the parameters that earlier deploys set to something else than the default."""
        defaults = self._account.read_defaults(part, self._environment)
        pairs = read_pairs(self._stacks[part.name], "Parameter")
        return {n: v for n, v in pairs.items() if n not in ONCE and defaults.get(n) != v}

    def _find_elsewhere(self, name: str) -> str | None:
        """Return the value that another stack of the environment has for a parameter."""
        pairs = (read_pairs(stack, "Parameter") for stack in self._stacks.values())
        return next((values[name] for values in pairs if values.get(name)), None)

    def _name(self, part: Part) -> str:
        return part.stack_name(self._environment, self._account.region)


def _check_account(
    account: Account,
    settings: Settings,
    known: Mapping[str, str],
    report: Callable[[str], None],
) -> None:
    """Report which account it is, and what it lacks. Raises DeployError for another than the one
    that samconfig.toml names."""
    number, caller = account.read_identity()
    report(f"account {number}, region {account.region}, as {caller}")
    if settings.account not in (None, number):
        raise DeployError(f"samconfig.toml has account {settings.account}, not {number}")
    for sentence in check_limits(account, known):
        report(f"note: {sentence}")


def read_settings(environment: str) -> Settings:
    """Return what samconfig.toml has for an environment, and its region. Raises DeployError."""
    check_environment(environment)
    try:
        config = tomllib.loads(SAMCONFIG.read_text())[environment]
        parameters = config["global"]["parameters"]
    except KeyError:
        raise DeployError(
            f"samconfig.toml has no section {environment}.global.parameters; copy staging's"
        ) from None
    overrides = dict(entry.split("=", 1) for entry in parameters["parameter_overrides"])
    values = {n: v for n, v in overrides.items() if not v.startswith(f"/plaza/{environment}/")}
    account = config.get("plaza", {}).get("parameters", {}).get("account")
    return Settings(find_region(parameters.get("region")), values, account)


def find_region(configured: str | None) -> str:
    """Return the region of samconfig.toml, else of AWS_REGION, AWS_DEFAULT_REGION or the profile.

    Raises DeployError without one, and if the shell contradicts samconfig.toml: plain ``sam`` takes
    the region of the shell, so the environment would be in two.
    """
    of_shell = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if configured and of_shell and configured != of_shell:
        raise DeployError(f"samconfig.toml has region {configured}, the shell has {of_shell}")
    with explain_aws_errors():
        region = configured or of_shell or boto3.Session().region_name
    if not region:
        raise DeployError("no region: set AWS_REGION, or region in samconfig.toml")
    return str(region)


def read_parameters(template: Path) -> dict[str, Parameter]:
    """Return the parameters of a template. Raises DeployError if it was not built."""
    if not template.exists():
        raise DeployError(f"{template.relative_to(ROOT)} is missing; run `make build`")
    declared = yaml.load(template.read_text(), Loader)["Parameters"]  # noqa: S506 - a SafeLoader
    return {
        name: Parameter(
            parameter["Type"], str(parameter["Default"]) if "Default" in parameter else None
        )
        for name, parameter in declared.items()
    }


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


@explain_aws_errors()
def main(args: argparse.Namespace) -> None:
    """Deploy, and print the outputs of all stacks. Raises DeployError."""
    if wrong := [value for value in args.values if not re.match(r"\w+=", value)]:
        raise DeployError(f"{wrong[0]!r} is not Name=Value")
    account = Account(
        read_settings(args.environment).region,
        confirms=not args.yes,
        replaces_stores=args.replace_stores,
    )
    given = dict(value.split("=", 1) for value in args.values)
    in_order = partial(print, flush=True)  # with what SAM prints
    outputs = deploy(args.environment, given, account, report=in_order)
    for name, value in sorted(outputs.items()):
        print(f"{name} = {value}")
