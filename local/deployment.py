"""The real template, built and deployed to the emulator by SAM, as it would be to AWS."""

import base64
import fcntl
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from local.aws import REGION, connect, credentials
from local.paths import LAMBDA_PYTHON, ROOT, TOOLS, LocalError
from local.processes import run_to_end
from local.routes import create_routes, read_body
from local.servers import without_credentials

STACK_NAME = "plaza"
BUCKET = "plaza-artifacts"
SECRET_NAME = "plaza/mysql"
ACCOUNT = "000000000000"
# A replay sends as fast as it goes, and a test of the contract is one user: no limit stands in
# their way. What the limits do is seen by emptying a bucket (tests/e2e/test_checkins.py).
_NO_LIMITS = {
    name: "100000"
    for group in ("Reads", "Writes", "Anonymous")
    for name in (f"{group}PerSecond", f"{group}Burst")
} | {"MaxCodesPerHour": "10000"}


@dataclass(frozen=True, slots=True)
class Deployed:
    """What CloudFormation made: ``functions`` logical id -> name, ``queues`` name -> URL.

    A queue's name is its logical id in snake case without ``_queue``: ``ReactionsQueue`` is
    ``reactions``, ``ReactionsDlq`` is ``reactions_dlq``. ``environment`` holds the PLAZA_...
    settings of the functions (``read_environment``).
    """

    api_id: str
    functions: dict[str, str]
    queues: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)


def build_template(template: Path, directory: Path) -> Path:
    """``sam build``; the built template, in ``directory``. What did not change is not built."""
    shared = ROOT / ".aws-sam" / "local"
    shared.mkdir(parents=True, exist_ok=True)
    build = directory / "build"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two stacks may start at once, SAM's cache is for one
        run_to_end(
            "sam build",
            [
                TOOLS / "sam",
                "build",
                "--template-file",
                template,
                "--build-dir",
                shared / "build",
                "--cache-dir",
                shared / "cache",
                "--cached",
                "--parallel",
            ],
            log=directory / "logs" / "sam-build.log",
            env=_sam_environment(directory, endpoint_url=None),
            cwd=template.parent,
        )
        shutil.copytree(shared / "build", build, dirs_exist_ok=True)
    compile_layers(build)
    return build / "template.yaml"


def compile_layers(build: Path) -> None:
    """Put compiled modules beside those of the built layers.

    Every worker of the emulator unpacks a layer of its own, and would compile all of it at
    its first call. What goes to AWS has some of it (``local.bytecode``).
    """
    layers = [entry for entry in build.iterdir() if (entry / "python").is_dir()]
    run_to_end(
        "compiling the layer",
        [
            LAMBDA_PYTHON,
            "-m",
            "compileall",
            "-q",
            "--invalidation-mode=unchecked-hash",  # unpacking changes the times of files
            *layers,
        ],
        log=build.parent / "logs" / "compile.log",
    )


def deploy_template(
    built: Path,
    directory: Path,
    endpoint_url: str,
    *,
    redis_url: str,
    redis_cluster: bool,
    mysql_url: str,
    parameters: Mapping[str, str],
) -> None:
    """``sam deploy`` of a built template. The database's password goes into a secret.

    ``parameters`` of the template go before the usual ones.
    """
    parts = urlsplit(mysql_url)
    secret = {"username": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    arn = connect("secretsmanager", endpoint_url).create_secret(
        Name=SECRET_NAME, SecretString=json.dumps(secret)
    )["ARN"]
    connect("s3", endpoint_url).create_bucket(Bucket=BUCKET)
    values = {
        "Environment": "local",
        "RedisUrl": redis_url,
        "RedisCluster": str(int(redis_cluster)),
        "MysqlUrl": without_credentials(mysql_url),
        "MysqlSecretArn": arn,
        "SmsSender": "echo",
        "SmsCountries": "*",
        **_NO_LIMITS,
        **parameters,
    }
    config = ROOT / "samconfig.toml"
    run_to_end(
        "sam deploy",
        [
            TOOLS / "sam",
            "deploy",
            "--template-file",
            built,
            "--config-file",
            config,
            "--stack-name",
            STACK_NAME,
            "--s3-bucket",
            BUCKET,
            "--no-progressbar",
            "--parameter-overrides",
            *(f"{name}={value}" for name, value in values.items()),
        ],
        log=directory / "logs" / "sam-deploy.log",
        env=_sam_environment(directory, endpoint_url=endpoint_url),
        cwd=ROOT,
    )


def read_deployed(endpoint_url: str) -> Deployed:
    """What the stack consists of, asked from the emulator."""
    resources = _read_resources(endpoint_url)
    functions = resources.get("AWS::Lambda::Function", {})
    lambdas = connect("lambda", endpoint_url)
    environment = read_environment([_mend_variables(lambdas, n) for n in functions.values()])
    apis = resources.get("AWS::ApiGatewayV2::Api", {})
    if len(apis) != 1:
        raise LocalError(f"the stack has {len(apis)} HTTP APIs, not one")
    queues = {
        name_queue(logical_id): url
        for logical_id, url in resources.get("AWS::SQS::Queue", {}).items()
    }
    return Deployed(next(iter(apis.values())), functions, queues, environment)


def read_environment(functions: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The settings all functions share, every queue and the archive that one of them knows."""
    settings = {
        name: value
        for function in functions
        for name, value in function.items()
        if name.startswith("PLAZA_")
    }
    return {
        name: value
        for name, value in settings.items()
        if name.startswith("PLAZA_QUEUE_")
        or name == "PLAZA_ARCHIVE_BUCKET"
        or all(function.get(name) == value for function in functions)
    }


def create_api_routes(deployed: Deployed, endpoint_url: str) -> int:
    """Routes, integrations and authorizers of the deployed API. Returns the number of routes."""
    formation = connect("cloudformation", endpoint_url)
    template = formation.get_template(StackName=STACK_NAME, TemplateStage="Processed")
    (stack,) = formation.describe_stacks(StackName=STACK_NAME)["Stacks"]
    values = {
        found["ParameterKey"]: found["ParameterValue"] for found in stack.get("Parameters", [])
    } | {
        "AWS::Partition": "aws",
        "AWS::Region": REGION,
        "AWS::AccountId": ACCOUNT,
        "AWS::StackName": STACK_NAME,
        "AWS::URLSuffix": "amazonaws.com",
    }
    for logical_id, name in deployed.functions.items():
        values[logical_id] = name
        values[f"{logical_id}.Arn"] = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
    gateway = connect("apigatewayv2", endpoint_url)
    return create_routes(gateway, deployed.api_id, read_body(template["TemplateBody"], values))


def migrate(deployed: Deployed, endpoint_url: str) -> Any:
    """Run the function ``Migrate``, as a deploy does; its answer. Raises LocalError."""
    if "Migrate" not in deployed.functions:
        raise LocalError("the template has no function with the logical id Migrate")
    return invoke(deployed, endpoint_url, "Migrate", {})


def invoke(deployed: Deployed, endpoint_url: str, logical_id: str, event: Mapping[str, Any]) -> Any:
    """Run a function once and wait for it; its answer. Raises LocalError with its error."""
    answer = connect("lambda", endpoint_url).invoke(
        FunctionName=deployed.functions[logical_id],
        Payload=json.dumps(event).encode(),
        LogType="Tail",
    )
    payload = json.loads(answer["Payload"].read() or b"null")
    if answer.get("FunctionError"):
        log = base64.b64decode(answer.get("LogResult", "")).decode(errors="replace")
        raise LocalError(f"{logical_id} failed: {payload.get('errorMessage', payload)}\n{log}")
    return payload


def name_queue(logical_id: str) -> str:
    """``SaveReactionsDlq`` as ``save_reactions_dlq``; a ``Queue`` at the end is left out."""
    words = "".join(f"_{char.lower()}" if char.isupper() else char for char in logical_id)
    return words.lstrip("_").removesuffix("_queue")


def _mend_variables(lambdas: Any, name: str) -> dict[str, str]:
    """The environment of a function, its numbers made strings as CloudFormation would.

    MiniStack leaves them numbers, and then cannot start the function.
    """
    found = lambdas.get_function_configuration(FunctionName=name)
    variables = found.get("Environment", {}).get("Variables", {})
    mended = {key: str(value) for key, value in variables.items()}
    if mended != variables:
        lambdas.update_function_configuration(FunctionName=name, Environment={"Variables": mended})
    return mended


def _read_resources(endpoint_url: str) -> dict[str, dict[str, str]]:
    """Type -> logical id -> physical id, of every resource of the stack."""
    formation = connect("cloudformation", endpoint_url)
    resources: dict[str, dict[str, str]] = {}
    for page in formation.get_paginator("list_stack_resources").paginate(StackName=STACK_NAME):
        for found in page["StackResourceSummaries"]:
            of_type = resources.setdefault(found["ResourceType"], {})
            of_type[found["LogicalResourceId"]] = found["PhysicalResourceId"]
    return resources


def _sam_environment(directory: Path, *, endpoint_url: str | None) -> dict[str, str]:
    """A developer's environment without his AWS settings and with SAM's files in ``directory``.

    The rest stays: pip, which ``sam build`` calls, may need it.
    """
    env = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    env.pop("PYTHONPATH", None)
    env |= credentials() | {
        "PATH": f"{TOOLS}{os.pathsep}{env.get('PATH', os.defpath)}",
        "SAM_CLI_TELEMETRY": "0",
        "__SAM_CLI_APP_DIR": str(directory / "sam"),
    }
    if endpoint_url is not None:
        env["AWS_ENDPOINT_URL"] = endpoint_url
    return env
