"""The template, built and deployed to the emulator by SAM as it would be to AWS."""

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from cli.parameters import render_parameter
from cli.paths import ALARMS, LAMBDA_PYTHON, ROOT, RUNTIME, TOOLS, CommandError
from local.stack.aws import REGION, connect, credentials
from local.stack.event_source import EventSource
from local.stack.processes import run_command
from local.stack.routes import read_body, read_routes
from local.stack.servers import strip_credentials

STACK_NAME = "plaza"
BUCKET = "plaza-artifacts"
ACCOUNT = "000000000000"
ARCHITECTURE = {"aarch64": "arm64"}.get(
    platform.machine(), platform.machine()
)  # as Lambda names it
MAX_INVOCATION_S = 900  # as of Lambda
# A replay sends as fast as it can, and a contract test is one user: neither may meet a limit.
# tests/e2e/test_checkins.py tests the limits with an empty bucket.
_NO_LIMITS = {
    name: "100000"
    for group in ("Reads", "Writes", "Anonymous")
    for name in (f"{group}PerSecond", f"{group}Burst")
} | {"MaxCodesPerHour": "10000"}
LIMITS_OF_TEMPLATE: Mapping[str, None] = dict.fromkeys(_NO_LIMITS)
"""Parameters of a stack whose callers meet the limits of production."""
_SHIFTS = re.compile(r"Enabled:\s+Ref: ShiftTraffic")
# What the emulator lacks, and schedules that show their results sooner.
ON_ONE_MACHINE = {
    "Architecture": ARCHITECTURE,
    "Runtime": RUNTIME,
    "MigrateOnDeploy": "0",
    "RotationDays": "0",
    "Binlog": "followed",
    "RollUpSchedule": "rate(5 minutes)",
    "ReconcileSchedule": "rate(12 hours)",
    "MaintainLogSchedule": "rate(1 day)",
}


@dataclass(frozen=True, slots=True)
class Deployed:
    """Deployed resources: ``functions`` logical id -> name, ``queues`` name -> URL.

    A queue's name is its logical id in snake case without ``_queue``: ``ReactionsQueue`` is
    ``reactions``, ``ReactionsDlq`` is ``reactions_dlq``. ``environment``: the PLAZA_... settings of
    the functions (``read_environment``).
    """

    api_id: str
    functions: dict[str, str]
    queues: dict[str, str]
    environment: dict[str, str] = field(default_factory=dict)


LOCAL_VARIABLES = {"PLAZA_WEBHOOK_LOOPBACK": "1"}
"""Settings that only a local stack has, and that no template may have."""


def build_template(template: Path, directory: Path) -> Path:
    """Run ``sam build`` unless the sources are unchanged. Returns the template in ``directory``.

    It is JSON, beside SAM's YAML: SAM parses a template seven times while it deploys.
    """
    shared = ROOT / ".aws-sam" / "local"
    shared.mkdir(parents=True, exist_ok=True)
    build, stamp = directory / "build", shared / "built"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # SAM's cache is not safe for concurrent builds
        sources = hash_sources(template)
        if not (stamp.exists() and stamp.read_text() == sources):
            stamp.unlink(missing_ok=True)
            _build(template, shared, directory)
            stamp.write_text(sources)
        shutil.copytree(shared / "build", build, dirs_exist_ok=True)
        _adapt_copy(template, shared / "build", build / "template.yaml")
    built = yaml.load((build / "template.yaml").read_text(), yaml.CSafeLoader)
    (build / "template.json").write_text(json.dumps(built))
    return build / "template.json"


def hash_sources(template: Path) -> str:
    """Return a digest of all inputs of ``sam build``: code, requirements, tools, template."""
    digest = hashlib.sha256(bytes(template) + RUNTIME.encode())
    folders = (template.parent / "functions", template.parent / "layers", ROOT / "requirements")
    files = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    for path in (template, *template.parent.glob(ALARMS.name), *files):
        if "__pycache__" not in path.parts:
            digest.update(f"\0{path}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _adapt_copy(template: Path, directory: Path, copy: Path) -> None:
    """Copy the included alarms beside the copied template, and correct its reference to them.

    MiniStack has no CodeDeploy, and transforms a template without the values of its parameters.
    """
    alarms = template.with_name(ALARMS.name)
    shutil.copy(alarms, copy.parent)
    text = copy.read_text().replace(os.path.relpath(alarms, directory), alarms.name)
    copy.write_text(_SHIFTS.sub("Enabled: false", text))


def _build(template: Path, shared: Path, directory: Path) -> None:
    """Build into ``shared``, and compile the modules of the layers.

    The parent of the workers imports them on each start. On AWS some of them are compiled
    (layers/common/compiled.txt).
    """
    command: list[str | Path] = [
        TOOLS / "sam", "build", "--template-file", template, "--cached", "--parallel",
        "--build-dir", shared / "build", "--cache-dir", shared / "cache",
        "--parameter-overrides", f"Architecture={ARCHITECTURE}", f"Runtime={RUNTIME}",
    ]  # fmt: skip
    run_command(
        "sam build",
        command,
        log=directory / "logs" / "sam-build.log",
        env=_sam_environment(directory, endpoint_url=None) | {"PYTHON": RUNTIME},
        cwd=template.parent,
    )
    layers = [entry for entry in (shared / "build").iterdir() if (entry / "python").is_dir()]
    run_command(
        "compiling the layer",
        # copying changes file times, so bytecode may not be checked against them
        [LAMBDA_PYTHON, "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash", *layers],
        log=directory / "logs" / "compile.log",
    )


def deploy_template(
    built: Path,
    directory: Path,
    endpoint_url: str,
    *,
    redis_url: str,
    redis_cluster: bool,
    mysql_url: str,
    parameters: Mapping[str, str | None],
) -> None:
    """Run ``sam deploy`` of a built template. Logins in URLs go into secrets.

    ``parameters`` override the usual ones; None is the default of the template.
    """
    connect("s3", endpoint_url).create_bucket(Bucket=BUCKET)
    login = _create_secret("plaza/mysql", mysql_url, endpoint_url)
    exports = dict.fromkeys(_list_exports(built), "none") | {
        "RedisUrl": re.sub("//.*@", "//", redis_url),
        "RedisCluster": str(int(redis_cluster)),
        "MysqlUrl": strip_credentials(mysql_url),
        "MysqlSecretArn": login,
        "MysqlMigratorSecretArn": login,
        "MysqlReplicationSecretArn": login,
        "MysqlOperatorSecretArn": login,
    }
    if urlsplit(redis_url).password:
        exports["RedisSecretArn"] = _create_secret("plaza/redis", redis_url, endpoint_url)
    values = {
        "Environment": "local",
        **_write_exports(exports, endpoint_url),
        "SmsSender": "echo",
        "SmsCountries": "*",
        **ON_ONE_MACHINE,
        "AnnounceDelay": "3",  # local requests take milliseconds
        **_NO_LIMITS,
        **parameters,
    }
    given = {name: value for name, value in values.items() if value is not None}
    command: list[str | Path] = [
        TOOLS / "sam", "deploy", "--template-file", built, "--use-json",
        "--stack-name", STACK_NAME, "--config-file", ROOT / "samconfig.toml",
        "--s3-bucket", BUCKET, "--no-progressbar",
        "--parameter-overrides", *map(render_parameter, given.items()),
    ]  # fmt: skip
    run_command(
        "sam deploy",
        command,
        log=directory / "logs" / "sam-deploy.log",
        env=_sam_environment(directory, endpoint_url=endpoint_url),
        cwd=ROOT,
    )


def _list_exports(built: Path) -> list[str]:
    """Return the parameters that the template reads from Parameter Store."""
    parameters = json.loads(built.read_text())["Parameters"]
    return [n for n, parameter in parameters.items() if parameter["Type"].startswith("AWS::SSM::")]


def _write_exports(exports: Mapping[str, str], endpoint_url: str) -> dict[str, str]:
    """Write what network and stores export on AWS. Returns template parameter -> its name."""
    store = connect("ssm", endpoint_url)
    names = {name: f"/plaza/local/{name}" for name in exports}
    for name, value in exports.items():
        store.put_parameter(Name=names[name], Value=value, Type="String")
    return names


def _create_secret(name: str, url: str, endpoint_url: str) -> str:
    """Put the login of ``url`` into a secret. Returns its ARN."""
    parts = urlsplit(url)
    secret = {"username": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    secrets = connect("secretsmanager", endpoint_url)
    return str(secrets.create_secret(Name=name, SecretString=json.dumps(secret))["ARN"])


def read_secrets(endpoint_url: str) -> dict[str, str]:
    """Return logical id -> ARN of the secrets that the template makes."""
    return _read_resources(endpoint_url).get("AWS::SecretsManager::Secret", {})


def read_deployed(endpoint_url: str) -> Deployed:
    resources = _read_resources(endpoint_url)
    functions = resources.get("AWS::Lambda::Function", {})
    deployed = _list_functions(connect("lambda", endpoint_url))
    environment = read_environment([_read_variables(function) for function in deployed])
    apis = resources.get("AWS::ApiGatewayV2::Api", {})
    if len(apis) != 1:
        raise CommandError(f"the stack has {len(apis)} HTTP APIs instead of one")
    queues = {
        name_queue(logical_id): url
        for logical_id, url in resources.get("AWS::SQS::Queue", {}).items()
    }
    environment |= list_queues(queues)
    return Deployed(next(iter(apis.values())), functions, queues, environment)


def list_queues(urls: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of queues, name -> URL, whose URLs differ in their ends."""
    names = sorted(urls)
    return {"PLAZA_QUEUES_URL": urls[names[0]], "PLAZA_QUEUES": ",".join(names)}


def read_environment(functions: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the settings that all functions share, plus the archive bucket and the names of
    keys."""
    settings = {
        name: value
        for function in functions
        for name, value in function.items()
        if name.startswith("PLAZA_")
    }
    return {
        name: value
        for name, value in settings.items()
        if name in ("PLAZA_ARCHIVE_BUCKET", "PLAZA_AUTH_SECRET_ID", "PLAZA_WEBHOOK_KEY_ID")
        or all(function.get(name) == value for function in functions)
    }


def describe_service(
    deployed: Deployed,
    built: Path,
    endpoint_url: str,
    *,
    api_port: int,
    port: int,
    sqs_url: str,
) -> dict[str, Any]:
    """Return the plan of ``lambda_service``: the deployed API, functions and event sources.

    Code and layers stay where ``sam build`` put them. MiniStack is configured to forward
    invocations to the service (its proxy mode) and to poll no queue.
    """
    lambdas = connect("lambda", endpoint_url)
    logical_ids = {name: logical_id for logical_id, name in deployed.functions.items()}
    sources = _take_over_event_sources(lambdas, deployed)
    functions = {}
    body = _read_api_body(deployed, endpoint_url)
    synchronous = {route.function for route in read_routes(body)}
    for function in _list_functions(lambdas):
        name = function["FunctionName"]
        functions[name] = {
            "logical_id": logical_ids[name],
            "arn": function["FunctionArn"],
            "task_root": str(built.parent / logical_ids[name]),
            "handler": function["Handler"],
            "variables": _read_variables(function) | LOCAL_VARIABLES,
            "timeout_s": function["Timeout"],
            "memory_mb": function["MemorySize"],
            "reserved": lambdas.get_function_concurrency(FunctionName=name).get(
                "ReservedConcurrentExecutions"
            ),
            "background": name not in synchronous,
        }
        _forward(lambdas, name, functions[name]["variables"], port)
    return {
        "api_id": deployed.api_id,
        "api_body": body,
        "api_port": api_port,
        "port": port,
        "region": REGION,
        "account": ACCOUNT,
        "aws_endpoint_url": endpoint_url,
        "aws": {**credentials(), "AWS_ENDPOINT_URL": endpoint_url, "AWS_ENDPOINT_URL_SQS": sqs_url},
        "layers": [str(layer) for layer in sorted(built.parent.glob("*/python"))],
        "functions": functions,
        "event_sources": [asdict(source) for source in sources],
    }


def _read_api_body(deployed: Deployed, endpoint_url: str) -> dict[str, Any]:
    """Return the OpenAPI body that SAM generated, with its references resolved; MiniStack ignores
    it."""
    formation = connect("cloudformation", endpoint_url)
    template = formation.get_template(StackName=STACK_NAME, TemplateStage="Processed")
    (stack,) = formation.describe_stacks(StackName=STACK_NAME)["Stacks"]
    values = {
        parameter["ParameterKey"]: parameter["ParameterValue"]
        for parameter in stack.get("Parameters", [])
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
    return read_body(template["TemplateBody"], values)


def _take_over_event_sources(lambdas: Any, deployed: Deployed) -> list[EventSource]:
    """Return the event source mappings, and disable MiniStack's own poller for them."""
    urls = {url.rpartition("/")[2]: url for url in deployed.queues.values()}
    sources = []
    for page in lambdas.get_paginator("list_event_source_mappings").paginate():
        for mapping in page["EventSourceMappings"]:
            queue = mapping["EventSourceArn"].rpartition(":")[2]
            sources.append(EventSource.from_description(mapping, urls[queue]))
            lambdas.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    return sources


def _forward(lambdas: Any, name: str, variables: Mapping[str, str], port: int) -> None:
    lambdas.update_function_configuration(
        FunctionName=name,
        Environment={
            "Variables": {
                **variables,
                "MINISTACK_LAMBDA_PROXY_URL": f"http://127.0.0.1:{port}/functions/{name}",
            }
        },
    )


def invoke(deployed: Deployed, lambda_url: str, logical_id: str, event: Mapping[str, Any]) -> Any:
    """Run a function once. Returns its result; raises CommandError with its error."""
    if logical_id not in deployed.functions:
        raise CommandError(f"the template has no function with the logical id {logical_id}")
    status, payload = call_service(
        lambda_url, "POST", f"/functions/{deployed.functions[logical_id]}", json.dumps(event)
    )
    if status != 200:
        trace = "".join(payload.get("stackTrace", []))
        raise CommandError(f"{logical_id} failed: {payload.get('errorMessage', payload)}\n{trace}")
    return payload


def call_service(
    lambda_url: str, method: str, path: str, body: str | None = None
) -> tuple[int, Any]:
    """Return status and body of the Lambda service. Raises CommandError without a response."""
    parts = urlsplit(lambda_url)
    connection = HTTPConnection(str(parts.hostname), parts.port, timeout=MAX_INVOCATION_S)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except (OSError, HTTPException) as error:
        raise CommandError(f"the Lambda service does not answer: {error}") from None
    finally:
        connection.close()


def name_queue(logical_id: str) -> str:
    """Return ``save_reactions_dlq`` for ``SaveReactionsDlq``; a final ``Queue`` is dropped."""
    words = "".join(f"_{char.lower()}" if char.isupper() else char for char in logical_id)
    return words.lstrip("_").removesuffix("_queue")


def _list_functions(lambdas: Any) -> list[dict[str, Any]]:
    pages = lambdas.get_paginator("list_functions").paginate()
    return [function for page in pages for function in page["Functions"]]


def _read_variables(function: Mapping[str, Any]) -> dict[str, str]:
    variables = function.get("Environment", {}).get("Variables", {})
    return {key: str(value) for key, value in variables.items()}


def _read_resources(endpoint_url: str) -> dict[str, dict[str, str]]:
    formation = connect("cloudformation", endpoint_url)
    resources: dict[str, dict[str, str]] = {}
    for page in formation.get_paginator("list_stack_resources").paginate(StackName=STACK_NAME):
        for resource in page["StackResourceSummaries"]:
            of_type = resources.setdefault(resource["ResourceType"], {})
            of_type[resource["LogicalResourceId"]] = resource["PhysicalResourceId"]
    return resources


def _sam_environment(directory: Path, *, endpoint_url: str | None) -> dict[str, str]:
    """Return the shell's environment without AWS settings, with SAM's files in ``directory``.

    The rest stays because pip, which ``sam build`` runs, may need it. The recorded time of the last
    version check keeps SAM off the network.
    """
    (directory / "sam").mkdir(exist_ok=True)
    (directory / "sam" / "metadata.json").write_text(json.dumps({"lastVersionCheck": time.time()}))
    env = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    env.pop("PYTHONPATH", None)
    env |= credentials() | {
        "PATH": f"{TOOLS}{os.pathsep}{env.get('PATH', os.defpath)}",
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": "0.1",  # seconds; the emulator answers at once
        "__SAM_CLI_APP_DIR": str(directory / "sam"),
    }
    if endpoint_url is not None:
        env["AWS_ENDPOINT_URL"] = endpoint_url
    return env
