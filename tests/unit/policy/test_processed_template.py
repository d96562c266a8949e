"""The template after the transform of SAM: what CloudFormation is given."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cli.paths import ROOT, TEMPLATE, TOOLS
from deploy.preflight import count_reserved
from tests.unit.policy import template
from tests.unit.policy.template import TEMPLATE as TEMPLATE_SOURCE
from tools.alarms import expand_template

DEPLOY = ROOT / "deploy"
TRANSFORM = ROOT / "tests" / "support" / "sam_transform.py"


@cache
def read_processed(path: Path = TEMPLATE) -> dict[str, Any]:
    """Return a processed template."""
    text = path.read_text()
    completed = subprocess.run(
        [TOOLS / "python", TRANSFORM],
        input=expand_template(text) if path == TEMPLATE else text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr[-2000:]
    document: dict[str, Any] = json.loads(completed.stdout)
    return document


def processed(path: Path = TEMPLATE) -> dict[str, dict[str, Any]]:
    """Return name -> resource of a processed template."""
    resources: dict[str, dict[str, Any]] = read_processed(path)["Resources"]
    return resources


def of_type(kind: str, path: Path = TEMPLATE) -> dict[str, dict[str, Any]]:
    """Name -> properties of the resources of a type."""
    return {
        name: resource.get("Properties", {})
        for name, resource in processed(path).items()
        if resource["Type"] == kind
    }


def scheduled_functions() -> set[str]:
    """The functions that a schedule invokes."""
    return {
        schedule["Target"]["Arn"]["Fn::GetAtt"][0]
        for schedule in of_type("AWS::Scheduler::Schedule").values()
    }


def test_there_is_something_to_look_at() -> None:
    assert len(of_type("AWS::Lambda::Function")) > 30
    assert len(scheduled_functions()) > 8


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("AWS::Scheduler::Schedule", "Name"),
        ("AWS::Lambda::Function", "FunctionName"),
        ("AWS::S3::Bucket", "BucketName"),
        ("AWS::IAM::Role", "RoleName"),
        ("AWS::SecretsManager::Secret", "Name"),
        ("AWS::CloudWatch::Alarm", "AlarmName"),
    ],
)
def test_no_resource_has_a_fixed_name(kind: str, name: str) -> None:
    """A second stack in the same account and region would fail."""
    assert of_type(kind)
    assert [resource for resource, item in of_type(kind).items() if name in item] == []


def is_number(parameter: str) -> bool:
    return bool(TEMPLATE_SOURCE["Parameters"].get(parameter, {}).get("Type") == "Number")


def count_environment_bytes(function: dict[str, Any]) -> int:
    """The size of a function's environment, with long names of stack and region."""
    stack, region, account = "s" * 40, "ap-southeast-1", "1" * 12
    url = f"https://sqs.{region}.amazonaws.com/{account}/{stack}-acknowledgements_dlq"
    total = 0
    for name, value in function.get("Environment", {}).get("Variables", {}).items():
        match value:
            case {"Fn::Join": [separator, list() as parts]}:
                text = separator.join(map(str, parts))
            case {"Ref": str(other)} if other in of_type("AWS::SQS::Queue"):
                text = url
            case {"Ref": str(parameter)} if is_number(parameter):
                text = "x" * 10
            case dict():
                text = "x" * 120  # another parameter, an ARN
            case _:
                text = str(value)
        total += len(name) + len(text)
    return total


@pytest.mark.parametrize("function", sorted(template.resources(template.FUNCTION)))
def test_the_environment_fits_into_4_kb(function: str) -> None:
    assert count_environment_bytes(of_type("AWS::Lambda::Function")[function]) <= 4_096


# ---------------------------------------------------------------- executions

UNRESERVED = 100  # of a region, which Lambda keeps out of reservations


def reserved_with(value: str) -> dict[str, int]:
    """Function -> executions that are reserved for it, with a value of ReserveConcurrency."""
    conditions = read_processed()["Conditions"]
    assert conditions["ReservesConcurrency"] == {"Fn::Equals": [{"Ref": "ReserveConcurrency"}, "1"]}
    reserved = {}
    for name, function in of_type("AWS::Lambda::Function").items():
        match function.get("ReservedConcurrentExecutions", {"Ref": "AWS::NoValue"}):
            case {"Fn::If": ["ReservesConcurrency", yes, no]}:
                chosen = yes if value == "1" else no
            case other:
                chosen = other
        if chosen != {"Ref": "AWS::NoValue"}:
            reserved[name] = chosen
    return reserved


def consumers() -> dict[str, int]:
    """Consumer -> executions that its queue starts at once, at most."""
    return {
        mapping["FunctionName"]["Ref"]: mapping["ScalingConfig"]["MaximumConcurrency"]
        for mapping in of_type("AWS::Lambda::EventSourceMapping").values()
    }


def test_in_an_account_without_room_nothing_is_reserved() -> None:
    """The quota of a new account is 10 or 50, and 100 must stay unreserved: it would not deploy."""
    assert reserved_with("0") == {}
    assert TEMPLATE_SOURCE["Parameters"]["ReserveConcurrency"]["Default"] == "0"


def test_a_consumer_keeps_what_its_queue_may_start_and_a_schedule_keeps_one() -> None:
    """With fewer its queue would be refused; more would lie idle."""
    reserved = reserved_with("1")
    assert {name: reserved.get(name) for name in consumers()} == consumers()
    assert {name: reserved.get(name) for name in scheduled_functions()} == dict.fromkeys(
        scheduled_functions(), 1
    )


def test_operators_keep_executions_of_their_own_and_no_other_function_does() -> None:
    """Operators lower a level while a flood takes everything else."""
    others = set(reserved_with("1")) - set(consumers()) - scheduled_functions()
    assert others == {"Operate", "OperationsApi"}


def test_an_account_with_the_usual_quota_keeps_most_of_it_for_requests() -> None:
    total = sum(reserved_with("1").values())
    assert 1_000 - total >= 8 * UNRESERVED
    assert total == count_reserved(), "what the deploy compares with the quota"


def test_a_scheduled_run_is_not_repeated_by_lambda() -> None:
    """The scheduler invokes asynchronously; by default Lambda repeats a failed run twice."""
    configured = {
        config["FunctionName"]["Ref"]: config
        for config in of_type("AWS::Lambda::EventInvokeConfig").values()
    }
    for name in scheduled_functions():
        assert configured[name]["MaximumRetryAttempts"] == 0
        assert configured[name]["MaximumEventAgeInSeconds"] == 60


def test_the_role_of_the_schedules_invokes_them_and_nothing_else() -> None:
    schedules = of_type("AWS::Scheduler::Schedule").values()
    [role] = {json.dumps(schedule["Target"]["RoleArn"]) for schedule in schedules}
    properties = of_type("AWS::IAM::Role")[json.loads(role)["Fn::GetAtt"][0]]
    [trust] = properties["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    account = {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert trust["Condition"] == {"StringEquals": account}, "no schedule of another account"
    [policy] = properties["Policies"]
    [statement] = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == "lambda:InvokeFunction"
    invoked = {arn["Fn::GetAtt"][0] for arn in statement["Resource"]}
    assert invoked == scheduled_functions()
    assert not properties.get("ManagedPolicyArns")


def test_no_role_has_a_managed_policy_for_all_queues() -> None:
    """AWSLambdaSQSQueueExecutionRole receives from and deletes in every queue of the account."""
    for name, role in of_type("AWS::IAM::Role").items():
        assert "SQSQueueExecution" not in json.dumps(role.get("ManagedPolicyArns", [])), name


# ---------------------------------------------------------------- what a function may do

UNLIMITED = {
    "Traces": "X-Ray has no ARN for traces",
    "Network": "an interface of the VPC has no name before Lambda creates it",
    "ButNotByTheCode": "it denies",
    "Texts": "a phone number has no ARN; topics are excluded",
    "Metrics": "metrics have no ARN",
    "Deployments": "AWS names no resource for the actions of a hook",
}
"""Statement of the boundary -> why it names no resource."""


def boundary() -> list[dict[str, Any]]:
    result = of_type("AWS::IAM::ManagedPolicy")["FunctionBoundary"]["PolicyDocument"]["Statement"]
    return list(result)


def is_unlimited(statement: dict[str, Any]) -> bool:
    return "NotResource" in statement or "*" in (
        [statement["Resource"]] if isinstance(statement["Resource"], str) else statement["Resource"]
    )


def test_every_role_of_a_function_has_the_boundary() -> None:
    """SAM attaches managed policies of AWS, which allow all log groups and all interfaces."""
    functions = of_type("AWS::Lambda::Function").values()
    roles = {function["Role"]["Fn::GetAtt"][0] for function in functions}
    assert len(roles) == len(functions), "each has a role of its own"
    for name in roles:
        role = of_type("AWS::IAM::Role")[name]
        assert role["PermissionsBoundary"] == {"Ref": "FunctionBoundary"}, name


@pytest.mark.parametrize(
    "path", [TEMPLATE, *(DEPLOY / f"{name}.yaml" for name in ("canary", "data", "network"))],
    ids=lambda path: path.stem,
)  # fmt: skip
def test_every_role_has_a_boundary(path: Path) -> None:
    """Also those that a service assumes: the right to change a role's policy is no right to all."""
    own = of_type("AWS::IAM::ManagedPolicy", path)
    roles = of_type("AWS::IAM::Role", path)
    assert roles
    for name, role in roles.items():
        assert role.get("PermissionsBoundary", {}).get("Ref") in own, name


def test_the_templates_with_roles_are_known() -> None:
    with_roles = {
        path.stem for path in DEPLOY.glob("*.yaml")
        if re.search(r"AWS::(IAM::Role|Serverless::Function)\n", path.read_text())
    }  # fmt: skip
    assert with_roles == {"canary", "data", "network"}


def test_no_role_allows_actions_by_a_pattern() -> None:
    """SAM's SQSSendMessagePolicy allows sqs:SendMessage*."""
    for name, role in of_type("AWS::IAM::Role").items():
        for policy in role.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                assert "*" not in str(statement["Action"]), name


def test_a_dead_letter_queue_takes_letters_of_its_queue_only() -> None:
    """Without RedriveAllowPolicy each queue of the account may name it."""
    queues = of_type("AWS::SQS::Queue")
    sources: dict[str, list[str]] = {}
    for queue in queues.values():
        if "RedrivePolicy" in queue:
            dlq = queue["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
            sources.setdefault(dlq, []).append(queue["QueueName"]["Fn::Sub"])
    assert len(sources) > 10
    for name, queue in queues.items():
        allowed = queue.get("RedriveAllowPolicy", {})
        # Not by Fn::GetAtt: the queue names its DLQ, too.
        arns = [
            arn["Fn::Sub"].split("AccountId}:")[1] for arn in allowed.get("sourceQueueArns", [])
        ]
        assert arns == sources.get(name, []), name
        assert not arns or allowed["redrivePermission"] == "byQueue"


def test_a_statement_without_a_resource_has_a_reason() -> None:
    assert {s["Sid"] for s in boundary() if is_unlimited(s)} == set(UNLIMITED)


def test_the_code_of_a_function_changes_no_network() -> None:
    """Lambda uses the role to connect the function; code that was broken into uses it, too."""
    [denied] = [s for s in boundary() if s["Effect"] == "Deny"]
    assert denied["Action"] == "ec2:*"
    assert denied["Condition"] == {"Null": {"lambda:SourceFunctionArn": "false"}}


def test_the_boundary_allows_no_action_by_a_wildcard() -> None:
    for statement in boundary():
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            assert statement["Effect"] == "Deny" or "*" not in action


def test_no_other_policy_of_a_function_is_unlimited() -> None:
    own = {
        "AuthApi": "sns:Publish",
        "OperationsApi": "cloudwatch:GetMetricData",
        "SmokeVersion": [
            "codedeploy:ListDeploymentTargets",
            "codedeploy:BatchGetDeploymentTargets",
            "codedeploy:PutLifecycleEventHookExecutionStatus",
        ],
    }
    functions = {
        f["Role"]["Fn::GetAtt"][0]: name for name, f in of_type("AWS::Lambda::Function").items()
    }
    for role, name in functions.items():
        for policy in of_type("AWS::IAM::Role")[role].get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                if is_unlimited(statement):
                    assert statement["Action"] == own[name]


# ---------------------------------------------------------------- secrets


def test_no_variable_and_no_parameter_of_a_function_is_a_secret() -> None:
    for name, function in of_type("AWS::Lambda::Function").items():
        for variable in function["Environment"]["Variables"]:
            assert "PASSWORD" not in variable, name
            assert "SECRET" not in variable or variable.endswith("_SECRET_ID"), name


@pytest.mark.parametrize("path", [TEMPLATE, DEPLOY / "data.yaml"], ids=lambda path: path.stem)
def test_secrets_are_rotated_each_month(path: Path) -> None:
    schedules = of_type("AWS::SecretsManager::RotationSchedule", path)
    assert schedules
    assert read_processed(path)["Parameters"]["RotationDays"]["Default"] == 30
    for name, schedule in schedules.items():
        days = schedule["RotationRules"]["AutomaticallyAfterDays"]
        assert days in ({"Ref": "RotationDays"}, 30), name


def test_stores_are_encrypted_with_keys_of_aws() -> None:
    """A restored cluster is encrypted as its source."""
    data = DEPLOY / "data.yaml"
    [redis] = of_type("AWS::ElastiCache::ReplicationGroup", data).values()
    mysql = of_type("AWS::RDS::DBCluster", data)["Mysql"]
    assert redis["AtRestEncryptionEnabled"] is mysql["StorageEncrypted"] is True
    assert not any("KmsKeyId" in store for store in (redis, mysql))


def test_only_the_functions_that_create_users_may_read_the_administrators_secret() -> None:
    readers = {
        name for name, role in of_type("AWS::IAM::Role").items() if "MysqlAdmin" in json.dumps(role)
    }
    assert readers == {"CreateUsersRole", "RotateSecretRole"}


def test_one_function_changes_a_secret_that_is_rotated() -> None:
    roles = {name: json.dumps(role) for name, role in of_type("AWS::IAM::Role").items()}
    changing = {name for name, role in roles.items() if "PutSecretValue" in role}
    assert changing == {"RotateSecretRole", "RenewCanaryRole", "RefreshIssuersRole"}
    for schedule in of_type("AWS::SecretsManager::RotationSchedule").values():
        secret = schedule["SecretId"]["Ref"]
        is_canary = secret == "CanarySecret"
        function = "RenewCanary" if is_canary else "RotateSecret"
        assert schedule["RotationLambdaARN"]["Fn::GetAtt"] == [function, "Arn"]
        assert f'"{secret}"' in roles[f"{function}Role"]
        # A deploy makes the first session of the canary, and would rotate any other secret.
        assert schedule["RotateImmediatelyOnUpdate"] is is_canary


def test_only_functions_that_change_tables_log_in_as_the_migrator() -> None:
    users = {
        name: json.dumps(function["Environment"]["Variables"]["PLAZA_MYSQL_SECRET_ID"])
        for name, function in of_type("AWS::Lambda::Function").items()
    }
    assert {n for n, user in users.items() if "Migrator" in user} == {"Migrate", "MaintainLog"}
    assert {n for n, user in users.items() if "Replication" in user} == {"FollowBinlog"}


# ---------------------------------------------------------------- deploys


def test_every_function_changes_after_the_migration() -> None:
    """Its environment refers to the migration, so CloudFormation waits for it."""
    steps = {"Migrate", "CreateUsers"}
    for name, function in of_type("AWS::Lambda::Function").items():
        schema = function["Environment"]["Variables"]["PLAZA_SCHEMA"]
        if name in steps:
            assert schema == "", "it would wait for itself"
        else:
            assert schema == {"Fn::If": ["Migrates", {"Ref": "Migration"}, ""]}


def test_the_migration_runs_again_when_the_layer_changes() -> None:
    """The layer has the migrations, and SAM names each of its versions by its content."""
    for kind in ("Custom::Migration", "Custom::DatabaseUsers"):
        [step] = of_type(kind).values()
        assert step["Layer"]["Ref"].startswith("CommonLayer")
        assert step["Layer"]["Ref"] != "CommonLayer"


def test_the_users_exist_before_the_migration_logs_in() -> None:
    [migration] = of_type("Custom::Migration").values()
    assert migration["Users"]["Fn::If"][1] == {"Ref": "DatabaseUsers"}


API = sorted(
    name
    for name, function in template.resources(template.FUNCTION).items()
    if "AutoPublishAlias" in function
)


def test_only_the_api_of_the_stack_invokes_the_functions_of_its_routes() -> None:
    permissions = [
        permission
        for permission in of_type("AWS::Lambda::Permission").values()
        if permission["Principal"] == "apigateway.amazonaws.com"
    ]
    assert len(permissions) == len(API)
    for permission in permissions:
        arn = permission["SourceArn"]["Fn::Sub"]
        assert arn.startswith("arn:${AWS::Partition}:execute-api:")
        assert arn.endswith(":${AWS::AccountId}:${Api}/*")


def test_all_functions_of_the_api_are_deployed_in_steps() -> None:
    routed = {
        permission["FunctionName"]["Ref"].removesuffix("Aliaslive")
        for permission in of_type("AWS::Lambda::Permission").values()
        if permission["Principal"] == "apigateway.amazonaws.com"
    }
    assert set(API) == routed
    assert {f"{name}DeploymentGroup" for name in API} == set(
        of_type("AWS::CodeDeploy::DeploymentGroup")
    )


@pytest.mark.parametrize("function", API)
def test_a_deployment_goes_back_when_the_function_fails(function: str) -> None:
    group = of_type("AWS::CodeDeploy::DeploymentGroup")[f"{function}DeploymentGroup"]
    assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
    assert f"{function}FailuresAlarm" in json.dumps(group["AlarmConfiguration"])


@pytest.mark.parametrize("function", API)
def test_the_alarm_of_a_deployment_is_a_share_of_the_new_version(function: str) -> None:
    """Not of the old one, which has nine tenths of the requests; and not a number, which the rate
    decides."""
    parts = of_type("AWS::CloudWatch::Alarm")[f"{function}FailuresAlarm"]["Metrics"]
    [alias] = [alias for name, alias in of_type("AWS::Lambda::Alias").items() if function in name]
    metrics = {part["Id"]: part["MetricStat"]["Metric"] for part in parts[1:]}
    assert [metric["MetricName"] for metric in metrics.values()] == [
        "Errors",
        "server_errors",
        "Invocations",
    ]
    for id_, metric in metrics.items():
        dimensions = {d["Name"]: d["Value"] for d in metric["Dimensions"]}
        version = "version" if id_ == "own" else "ExecutedVersion"
        assert dimensions[version] == alias["FunctionVersion"]
        if id_ != "own":
            assert dimensions["Resource"] == {"Fn::Sub": f"${{{function}}}:live"}
    assert parts[0]["Expression"].endswith("/ requests, 0)")


@pytest.mark.parametrize("function", API)
def test_a_version_is_tried_before_it_gets_traffic(function: str) -> None:
    alias = processed()[f"{function}Aliaslive"]
    update = alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
    assert update["BeforeAllowTrafficHook"] == {"Ref": "SmokeVersion"}
    variables = of_type("AWS::Lambda::Function")["SmokeVersion"]["Environment"]["Variables"]
    requests = dict(entry.split("=") for entry in variables["PLAZA_SMOKE_REQUESTS"].split(","))
    method, path = requests[function].split(" ")
    assert template.routes()[method, path] == function


def test_codedeploy_may_invoke_the_hook_and_nothing_else() -> None:
    groups = of_type("AWS::CodeDeploy::DeploymentGroup").values()
    assert {json.dumps(g["ServiceRoleArn"]) for g in groups} == {
        json.dumps({"Fn::GetAtt": ["DeploymentRole", "Arn"]})
    }
    role = of_type("AWS::IAM::Role")["DeploymentRole"]
    [statement] = role["Policies"][0]["PolicyDocument"]["Statement"]
    assert statement["Resource"] == {"Fn::GetAtt": ["SmokeVersion", "Arn"]}
    [managed] = role["ManagedPolicyArns"]
    assert managed["Fn::Sub"].endswith("AWSCodeDeployRoleForLambdaLimited")


@pytest.mark.parametrize("function", API)
def test_a_new_layer_alone_publishes_a_new_version(function: str) -> None:
    """The code is in the layer. By default SAM publishes a version for new function code only."""
    from tests.unit.policy.template import FUNCTION, resources

    assert resources(FUNCTION)[function]["AutoPublishAliasAllProperties"] is True


def test_nothing_outside_of_deploys_invokes_a_version_that_traffic_was_moved_from() -> None:
    """``!Ref X.Alias`` would name the same alias, but `sam local start-api` cannot read that."""
    for integration in json.dumps(of_type("AWS::ApiGatewayV2::Api")).split("functions/")[1:]:
        assert re.match(r"\$\{\w+\.Arn\}:live/", integration)


# ---------------------------------------------------------------- logs, limits, archive


def test_all_logs_end() -> None:
    groups = of_type("AWS::Logs::LogGroup")
    assert groups
    for name, group in groups.items():
        assert group["RetentionInDays"] == {"Ref": "LogDays"}, name


def test_functions_write_json_into_one_group_and_lambda_is_quiet() -> None:
    for name, function in of_type("AWS::Lambda::Function").items():
        logging = function["LoggingConfig"]
        assert logging["LogGroup"] == {"Ref": "FunctionLogs"}, name
        assert (logging["LogFormat"], logging["SystemLogLevel"]) == ("JSON", "WARN")


def test_the_api_has_a_rate_limit_and_an_access_log_without_addresses() -> None:
    [stage] = of_type("AWS::ApiGatewayV2::Stage").values()
    assert set(stage["DefaultRouteSettings"]) == {"ThrottlingRateLimit", "ThrottlingBurstLimit"}
    line = stage["AccessLogSettings"]["Format"]
    assert isinstance(json.loads(line), dict)
    assert not [
        word for word in ("sourceIp", "authorizer", "header", "querystring") if word in line
    ]


def test_the_archive_keeps_what_is_overwritten() -> None:
    [bucket] = of_type("AWS::S3::Bucket").values()
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}


def test_the_processor_and_the_python_are_parameters_of_functions_and_layer() -> None:
    [layer] = of_type("AWS::Lambda::LayerVersion").values()
    assert layer["CompatibleArchitectures"] == [{"Ref": "Architecture"}]
    for name, function in of_type("AWS::Lambda::Function").items():
        assert function["Architectures"] == [{"Ref": "Architecture"}], name
        assert function["Runtime"] == {"Ref": "Runtime"}


def test_the_transform_writes_no_name_of_parameter_store_in_place_of_its_value() -> None:
    """SAM gets the names, and CloudFormation reads the values after it."""
    assert "/plaza/staging/" not in json.dumps(processed())


def test_the_stack_has_room_for_features() -> None:
    """CloudFormation allows 500 resources; a feature needs up to ten. Of the 446, 29 see silence:
    an alarm for each schedule and seven for what no function counts, the hook of deployments, and
    the session of the canary; eight keep the keys of issuers, 24 are the functions of totals,
    notifications and accounts, 15 push: two functions, queues and DLQs with their alarms, and a
    key; and 22 send webhooks: three functions, two queues and DLQs, their alarms, and a key; one is
    the policy of all queues."""
    assert len(processed()) <= 470
