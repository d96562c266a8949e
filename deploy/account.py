"""The AWS account that a deploy works in: CloudFormation, SAM, and what is asked before."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cli.includes import insert_included
from cli.parameters import render_parameter
from cli.paths import ROOT, TOOLS
from deploy import pages
from deploy.parts import BUILT, DATA, EDGE_REGION, DeployError, Part, make_stack_policy

SAMCONFIG = ROOT / "samconfig.toml"
_DENIED = ("AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation")


class Concurrency(NamedTuple):
    """Executions of functions that an account may run at once, and how many nothing reserves."""

    quota: int
    unreserved: int


class Account:
    """CloudFormation and SAM, with the credentials of the shell.

    ``confirms``: False to execute change sets at once; True to show changes of network and
    stores, and of others as samconfig.toml says. ``replaces_stores``: True to let updates replace
    stores.
    """

    def __init__(
        self, region: str, *, confirms: bool = True, replaces_stores: bool = False
    ) -> None:
        self._concurrency: Concurrency | None = None
        self.region = region
        self._confirms = confirms
        self._replaces_stores = replaces_stores

    def read_identity(self) -> tuple[str, str]:
        """Return the id of the account, and the ARN of the caller."""
        identity = self._connect("sts").get_caller_identity()
        return identity["Account"], identity["Arn"]

    def describe(self, part: Part, environment: str) -> dict[str, Any] | None:
        """Return a stack as CloudFormation does, None if it does not exist."""
        name = part.stack_name(environment, self.region)
        try:
            [stack] = self._connect("cloudformation", part).describe_stacks(StackName=name)[
                "Stacks"
            ]
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
        return dict(stack)

    def read_defaults(self, part: Part, environment: str) -> dict[str, str]:
        """Return the defaults of the template that a stack was deployed with: name -> value."""
        summary = self._connect("cloudformation", part).get_template_summary(
            StackName=part.stack_name(environment, self.region)
        )
        return {
            parameter["ParameterKey"]: parameter["DefaultValue"]
            for parameter in summary["Parameters"]
            if "DefaultValue" in parameter
        }

    def delete(self, part: Part, environment: str) -> None:
        """Delete a stack, and wait until it is gone."""
        formation = self._connect("cloudformation", part)
        name = part.stack_name(environment, self.region)
        formation.delete_stack(StackName=name)
        formation.get_waiter("stack_delete_complete").wait(StackName=name)

    def deploy(
        self, part: Part, environment: str, values: Mapping[str, str], *, exists: bool
    ) -> None:
        """Run ``sam deploy`` with all parameters. An update of network or stores is confirmed.

        Raises DeployError if it fails or is not confirmed.
        """
        name = part.stack_name(environment, self.region)
        command: list[str | Path] = [
            TOOLS / "sam", "deploy", "--config-file", SAMCONFIG, "--config-env", environment,
            "--template-file", write_sent_template(part.template),
            "--region", part.region or self.region, "--stack-name", name,
            "--tags", *(f"{key}={value}" for key, value in part.make_tags(environment).items()),
        ]  # fmt: skip
        if not self._confirms:
            command.append("--no-confirm-changeset")
        elif exists and part.is_confirmed:
            command.append("--confirm-changeset")
        if values:  # instead of the values in samconfig.toml, which are the application's
            command += ["--parameter-overrides", *map(render_parameter, values.items())]
        keeps_stores = part is DATA and exists
        if keeps_stores:
            self._set_policy(part, name, replaces_stores=self._replaces_stores)
        pending = self._list_pending(part, name) if exists and self._confirms else set()
        try:
            if subprocess.run(command, cwd=ROOT, check=False).returncode:
                raise DeployError(
                    f"{name} was not deployed. The cause is above;"
                    " docs/operations.md#a-failed-deploy says how to go on"
                )
        finally:
            if keeps_stores:
                self._set_policy(part, name, replaces_stores=False)
        if self._confirms and (refused := self._list_pending(part, name) - pending):
            for change_set in refused:  # SAM leaves it, and ends without an error
                self._connect("cloudformation", part).delete_change_set(ChangeSetName=change_set)
            raise DeployError(f"the changes of {name} were not confirmed")
        if part is DATA and not exists:
            self._set_policy(part, name, replaces_stores=False)

    def protect(self, part: Part, environment: str, *, is_protected: bool) -> None:
        """Switch the termination protection of a stack."""
        self._connect("cloudformation", part).update_termination_protection(
            StackName=part.stack_name(environment, self.region),
            EnableTerminationProtection=is_protected,
        )

    def read_concurrency(self) -> Concurrency:
        """Return how many executions of functions the account may run at once, in the region. It is
        read once."""
        if self._concurrency is None:
            limits = self._connect("lambda").get_account_settings()["AccountLimit"]
            quota = int(limits["ConcurrentExecutions"])  # an emulator reserves nothing
            unreserved = int(limits.get("UnreservedConcurrentExecutions", quota))
            self._concurrency = Concurrency(quota, unreserved)
        return self._concurrency

    def read_sms(self) -> tuple[bool, float]:
        """Return whether texts reach verified phones only, and the USD they may cost a month."""
        sns = self._connect("sns")
        attributes = sns.get_sms_attributes(attributes=["MonthlySpendLimit"])["attributes"]
        is_sandboxed = sns.get_sms_sandbox_account_status()["IsInSandbox"]
        return is_sandboxed, float(attributes.get("MonthlySpendLimit", 1))

    def read_secret_version(self, arn: str) -> str:
        """Return the id of a secret's current version, without reading the secret."""
        secret = self._connect("secretsmanager").describe_secret(SecretId=arn)
        [version] = [id_ for id_, s in secret["VersionIdsToStages"].items() if "AWSCURRENT" in s]
        return str(version)

    def upload_pages(self, bucket: str, distribution: str) -> None:
        """Upload the built pages, and let the edge serve them."""
        s3, cloudfront = (boto3.client(n, region_name=EDGE_REGION) for n in ("s3", "cloudfront"))
        pages.upload_pages(pages.list_pages(), bucket, distribution, s3, cloudfront)

    def _connect(self, service: str, part: Part | None = None) -> Any:
        client: Any = boto3.client  # boto3-stubs have a type for each name only
        return client(service, region_name=(part and part.region) or self.region)

    def _list_pending(self, part: Part, name: str) -> set[str]:
        """Return the change sets of a stack that could be executed."""
        summaries = self._connect("cloudformation", part).list_change_sets(StackName=name)
        return {
            change_set["ChangeSetId"]
            for change_set in summaries["Summaries"]
            if change_set["ExecutionStatus"] == "AVAILABLE"
        }

    def _set_policy(self, part: Part, name: str, *, replaces_stores: bool) -> None:
        self._connect("cloudformation", part).set_stack_policy(
            StackName=name, StackPolicyBody=make_stack_policy(replaces_stores=replaces_stores)
        )


@contextmanager
def explain_aws_errors() -> Iterator[None]:
    """Turn an error of AWS, or of its credentials, into a DeployError."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise DeployError(f"AWS: {error}") from None


def is_denied(error: ClientError) -> bool:
    """Return whether the credentials lack a permission."""
    return error.response["Error"]["Code"] in _DENIED


def write_sent_template(template: Path) -> Path:
    """Return the file that SAM is given: ``template``, or a copy with what it includes."""
    text = template.read_text()
    if (expanded := insert_included(text, template.parent)) == text:
        return template
    # Paths in a built template are relative to it; one that is not built has none.
    folder = template.parent if template == BUILT else BUILT.parent
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / f"{template.stem}.sent.yaml"
    copy.write_text(expanded)
    return copy
