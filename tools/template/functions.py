"""The functions of API, queues, schedules and operators: code, variables, roles."""

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from unittest import mock

from cli.paths import ROOT
from plaza.infra.queues.dead_letters import dlq_of
from plaza.infra.queues.queue import Queue
from tools.template.code import QueueUse, read_queue_use
from tools.template.queues import list_names, name_queue

FUNCTIONS = ROOT / "functions"
DECLARED = ROOT / "functions.yaml"
_LOGIN = "PLAZA_MYSQL_SECRET_ID"
_SIGNING = "PLAZA_AUTH_SECRET_ID"
_NONE = "none"
_NOTHING = {"Ref": "AWS::NoValue"}
_TAKE = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]
_ONCE = {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
_PROPERTIES = {
    "MemorySize", "Timeout", "Secrets", "Variables", "Statements", "Queues", "Schedule",
    "RetryPolicy", "Network", "Executions", "Stores", "Wing",
}  # fmt: skip


class Function(NamedTuple):
    """A function: ``name``, its logical id; the folders of its code; what functions.yaml has."""

    name: str
    kind: str
    folder: str
    declared: Mapping[str, Any]

    @property
    def queues(self) -> QueueUse:
        """The queues that its code uses."""
        return read_queue_use(FUNCTIONS / self.kind / self.folder / "app.py")


def importable() -> AbstractContextManager[object]:
    """Give this process, in a block, the settings without which functions cannot be imported."""
    return mock.patch.dict(
        os.environ,
        {
            "PLAZA_ENVIRONMENT": "local",
            "PLAZA_REDIS_URL": "redis://nowhere",
            "PLAZA_MYSQL_URL": "mysql://nobody@nowhere/plaza",
        }
        | os.environ,
    )


def name_function(folder: str, kind: str) -> str:
    """Return the logical id of the function in ``functions/KIND/FOLDER``."""
    name = "".join(word.capitalize() for word in folder.split("_"))
    return f"{name}Api" if kind == "api" else name


def list_functions(kind: str, declared: Mapping[str, Any]) -> list[Function]:
    """Return the functions of a kind, by folder."""
    return [
        Function(name, kind, folder, declared.get(name) or {})
        for folder in sorted(file.parent.name for file in (FUNCTIONS / kind).glob("*/app.py"))
        for name in [name_function(folder, kind)]
    ]


def check_declared(declared: Mapping[str, Any], functions: Iterable[Function]) -> None:
    """Raise ValueError for a name or a property in functions.yaml that is not written."""
    unknown = set(declared) - {function.name for function in functions}
    unknown |= {f"{name}.{key}" for name, own in declared.items() for key in set(own) - _PROPERTIES}
    if unknown:
        raise ValueError(f"functions.yaml has {sorted(unknown)}, which is unknown")


def make_api_function(function: Function) -> dict[str, Any]:
    """Return a function whose traffic a deployment moves, and goes back when it fails."""
    alarms = {"Fn::If": ["HasAlarmTopic", [{"Ref": f"{function.name}FailuresAlarm"}], []]}
    deployment = {
        "AutoPublishAlias": "live",
        "AutoPublishAliasAllProperties": True,
        "DeploymentPreference": {
            "Enabled": {"Ref": "ShiftTraffic"},
            "Type": {"Ref": "ApiDeployment"},
            "Role": {"Fn::GetAtt": "DeploymentRole.Arn"},
            "Hooks": {"PreTraffic": {"Ref": "SmokeVersion"}},
            "Alarms": alarms,
        },
    }
    return _make_function(function, deployment, {"PLAZA_MYSQL_STATEMENT_TIMEOUT_S": 2})


def make_hook(requests: Mapping[str, str]) -> dict[str, Any]:
    """Return the function that tries a version before it gets traffic, by a request of each
    function (``requests``: name -> request). It calls AWS only, so it is outside of the VPC."""
    arn = "arn:${AWS::Partition}:%s:${AWS::Region}:${AWS::AccountId}:%s"
    invoked = [arn % ("lambda", f"function:${{AWS::StackName}}-{name}-*") for name in requests]
    return {
        "Type": "AWS::Serverless::Function",
        "Properties": {
            "CodeUri": "functions/ops/smoke_version",
            "Timeout": 60,
            "VpcConfig": _NOTHING,
            "Environment": {
                "Variables": {
                    "PLAZA_SMOKE_REQUESTS": ",".join(f"{n}={r}" for n, r in requests.items())
                }
            },
            "Policies": [
                {
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Action": [
                                "codedeploy:ListDeploymentTargets",
                                "codedeploy:BatchGetDeploymentTargets",
                                "codedeploy:PutLifecycleEventHookExecutionStatus",
                            ],
                            "Resource": "*",  # AWS names no resource for these
                        },
                        {
                            "Effect": "Allow",
                            "Action": "lambda:InvokeFunction",
                            "Resource": [{"Fn::Sub": name} for name in invoked],
                        },
                    ]
                }
            ],
        },
    }


def make_consumer(function: Function, queue: Queue[Any]) -> dict[str, Any]:
    """Return the function of a queue."""
    timeout = {"Timeout": queue.visibility_s // 6}
    return _make_function(function, timeout, executions=queue.max_concurrency)


def make_scheduled(function: Function) -> dict[str, Any]:
    """Return a function with its schedule. Raises ValueError for a function without one."""
    if "Schedule" not in function.declared:
        raise ValueError(f"{function.name} has no Schedule in functions.yaml")
    schedule = {
        "ScheduleExpression": function.declared["Schedule"],
        "RetryPolicy": function.declared.get("RetryPolicy", _ONCE),
        "RoleArn": {"Fn::GetAtt": "ScheduleRole.Arn"},
        "OmitName": True,
    }
    resource = _make_function(
        function,
        {"Timeout": 55},
        executions=1,  # of a run; the next one is soon
    )
    resource["Properties"] |= {
        "EventInvokeConfig": _ONCE,
        "Events": {"Timer": {"Type": "ScheduleV2", "Properties": schedule}},
    }
    return resource


def make_operate(function: Function) -> dict[str, Any]:
    """Return the function of the operators' commands, which nothing but a person invokes."""
    return _make_function(function, {})


def make_schedule_role(functions: Iterable[Function]) -> dict[str, Any]:
    """Return the role of the scheduler, which may invoke all scheduled functions."""
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "scheduler.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
    }
    invoke = {
        "Effect": "Allow",
        "Action": "lambda:InvokeFunction",
        "Resource": [{"Fn::GetAtt": f"{function.name}.Arn"} for function in functions],
    }
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "PermissionsBoundary": {"Ref": "ServiceBoundary"},
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
            "Policies": [
                {
                    "PolicyName": "Invoke",
                    "PolicyDocument": {"Version": "2012-10-17", "Statement": [invoke]},
                }
            ],
        },
    }


def _make_function(
    function: Function,
    properties: Mapping[str, Any],
    variables: Mapping[str, Any] | None = None,
    executions: int | None = None,
) -> dict[str, Any]:
    """Return a function. ``executions``: those reserved for it, unless functions.yaml says."""
    own = function.declared
    executions = own.get("Executions", executions)
    if executions is not None:
        reserved = {"Fn::If": ["ReservesConcurrency", executions, _NOTHING]}
        properties = {**properties, "ReservedConcurrentExecutions": reserved}
    variables = {**(variables or {}), **_make_variables(function)}
    if own.get("Network") == _NONE:
        properties = {**properties, "VpcConfig": _NOTHING}
    return {
        "Type": "AWS::Serverless::Function",
        **_make_build(function),
        "Properties": {
            "CodeUri": f"functions/{function.kind}/{function.folder}",
            **properties,
            **{name: own[name] for name in ("MemorySize", "Timeout") if name in own},
            **({"Environment": {"Variables": variables}} if variables else {}),
            "Policies": _make_policies(function),
        },
    }


def _make_build(function: Function) -> dict[str, Any]:
    """Return how a function with requirements of its own is built, nothing for any other."""
    if not (FUNCTIONS / function.kind / function.folder / "requirements.txt").exists():
        return {}
    context = {"Fn::Sub": "functions/build/${Architecture}"}
    return {"Metadata": {"BuildMethod": "makefile", "ContextPath": context}}


def _make_variables(function: Function) -> dict[str, Any]:
    used = function.queues
    names = list_names() if "Queues" in function.declared else sorted(used.sent | used.measured)
    variables: dict[str, Any] = {}
    if names:  # their URLs differ in the name at the end
        variables["PLAZA_QUEUES_URL"] = {"Ref": name_queue(names[0])}
        variables["PLAZA_QUEUES"] = ",".join(names)
    for variable, secret in _own_secrets(function).items():
        if secret != _NONE:
            variables[variable] = {"Ref": secret}
    if function.declared.get("Stores"):
        if function.kind not in ("queue", "schedule"):
            raise ValueError(f"{function.name} answers requests, so it may not have Stores")
        variables["PLAZA_MYSQL_PACKETS"] = 1
    return {**variables, **function.declared.get("Variables", {})}


def _own_secrets(function: Function) -> dict[str, str]:
    """Return variable -> secret: of an API function also the one that verifies sessions."""
    shared = {_SIGNING: "AuthSecret"} if function.kind == "api" else {}
    return {**shared, **function.declared.get("Secrets", {})}


def _make_policies(function: Function) -> list[dict[str, Any]]:
    used, own = function.queues, function.declared
    secrets = {_LOGIN: "MysqlSecretArn"} | _own_secrets(function)
    shared = [("HasRedisLogin", "RedisLogin")] if own.get("Network") != _NONE else []
    if function.kind == "api":
        shared.append(("HasEdge", "EdgeLogin"))
    policies: list[dict[str, Any]] = [
        *({"Fn::If": [condition, {"Ref": policy}, _NOTHING]} for condition, policy in shared),
        *(
            {"AWSSecretsManagerGetSecretValuePolicy": {"SecretArn": {"Ref": secret}}}
            for secret in secrets.values()
            if secret != _NONE
        ),
    ]
    if used.consumed:
        policies.append({"SQSPollerPolicy": _name_of(used.consumed)})
    statements = _allow_operations(function) + own.get("Statements", [])
    return [*policies, {"Statement": statements}] if statements else policies


def _allow_operations(function: Function) -> list[dict[str, Any]]:
    """Return statements about queues beyond SAM's policies, whose one for senders allows
    ``sqs:SendMessage*``."""
    names = list_names()
    consumed = {name for name in names if dlq_of(name) in names}
    dead = [name for name in names if name not in consumed]
    how = function.declared.get("Queues")
    measured = names if how else sorted(function.queues.measured)
    sent = sorted(function.queues.sent)
    statements = [_allow("sqs:SendMessage", sent)] if sent else []
    if measured:
        statements.append(_allow("sqs:GetQueueAttributes", measured))
    if how in ("purge", "redrive"):  # only DLQs without a consumer
        statements.append(_allow(_TAKE, dead))
    if how == "redrive":
        redriven = sorted(name for name in consumed if dlq_of(name) in dead)
        statements.append(_allow("sqs:SendMessage", redriven))
    return statements


def _allow(action: str | list[str], queues: Iterable[str]) -> dict[str, Any]:
    resources = [{"Fn::GetAtt": f"{name_queue(queue)}.Arn"} for queue in queues]
    return {"Effect": "Allow", "Action": action, "Resource": resources}


def _name_of(queue: str) -> dict[str, Any]:
    return {"QueueName": {"Fn::GetAtt": f"{name_queue(queue)}.QueueName"}}
