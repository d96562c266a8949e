"""Rules of every deployment, checked in the template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from cli.paths import ALARMS, CONTRACT
from local.stack.functions import load_function
from plaza.infra.http.routes import BEARER, BY_ROLE, MEMBER, OPTIONAL, OWNER, PUBLIC
from plaza.people.auth.caller_identity import identify, identify_poll
from tests.unit.policy import template
from tests.unit.policy.modules import (
    LAYER,
    ROOT,
)
from tests.unit.policy.template import ALARM, FUNCTION, QUEUE, EventSource, resources
from tools.alarms import (
    MAX_HOURLY_WINDOW_S,
    MAX_WINDOW_S,
    expand_template,
    limit_silence,
    make_alarms,
)
from tools.contract import API, make_contract

FUNCTIONS = sorted(resources(FUNCTION))
SOURCES = list(template.event_sources())
WORKING = sorted(template.working_queues())

NOTHING = {"Ref": "AWS::NoValue"}

every_function = pytest.mark.parametrize("function", FUNCTIONS)
every_queue = pytest.mark.parametrize("queue", WORKING)
every_source = pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.function)


def alarms_on(metric: str, queue: str) -> list[dict[str, Any]]:
    return [
        alarm
        for alarm in resources(ALARM).values()
        if (alarm.get("Namespace"), alarm.get("MetricName")) == ("AWS/SQS", metric)
        and [template.name_in(d["Value"]) for d in alarm["Dimensions"]] == [queue]
        and [d["Name"] for d in alarm["Dimensions"]] == ["QueueName"]
    ]


def statements() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in FUNCTIONS:
        for policy in resources(FUNCTION)[name].get("Policies", []):
            if isinstance(policy, str):
                yield name, {"Action": policy, "Resource": ""}
            for statement in policy.get("Statement", []) if isinstance(policy, dict) else []:
                yield name, statement


# ---------------------------------------------------------------- queues


def test_only_the_dlq_of_orders_has_a_consumer_and_that_has_an_alarm() -> None:
    assert template.dead_letter_queues() & set(WORKING) == {"OrdersDlq"}
    # Its messages may be deleted before CloudWatch counts them, so the consumer counts them.
    [alarm] = [a for a in resources(ALARM).values() if a.get("MetricName") == "dead_orders_decided"]
    assert alarm["Dimensions"] == [{"Name": "function", "Value": {"Ref": "DecideDeadOrders"}}]
    assert (alarm["Statistic"], alarm["Threshold"]) == ("Sum", 0)


@every_queue
def test_the_first_message_in_a_dlq_raises_an_alarm(queue: str) -> None:
    dlq = template.name_in(resources(QUEUE)[queue]["RedrivePolicy"]["deadLetterTargetArn"])
    [alarm] = alarms_on("ApproximateNumberOfMessagesVisible", dlq)
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    assert alarm["Threshold"] == 0


@every_queue
def test_an_old_message_in_a_queue_raises_an_alarm(queue: str) -> None:
    [alarm] = alarms_on("ApproximateAgeOfOldestMessage", queue)
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"


SCHEDULED = sorted(
    name
    for name, function in resources(FUNCTION).items()
    if any(event["Type"] == "ScheduleV2" for event in function.get("Events", {}).values())
)


@pytest.mark.parametrize("name", SCHEDULED)
def test_a_schedule_that_fails_raises_an_alarm(name: str) -> None:
    [alarm] = [
        alarm
        for alarm in resources(ALARM).values()
        if (alarm.get("Namespace"), alarm.get("MetricName")) == ("AWS/Lambda", "Errors")
        and {"Name": "FunctionName", "Value": {"Ref": name}} in alarm["Dimensions"]
    ]
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"


# They need what the VPC has no endpoints for, and no store: CodeDeploy and Lambda, the internet.
OUTSIDE = {"RefreshIssuers", "SendPushes", "SendWebhooks", "SmokeVersion"}


@pytest.mark.parametrize("name", SCHEDULED)
def test_a_schedule_stores_how_its_runs_end(name: str) -> None:
    """Under the name of its folder, which GET /ops/lag shows. Outside of the VPC is no Redis."""
    folder = template.folder_of(name)
    stored = "" if name not in OUTSIDE else ", is_in_network=False"
    assert f'@scheduled("{folder.name}"{stored})\ndef handler(' in (folder / "app.py").read_text()


def test_the_included_alarms_are_up_to_date() -> None:
    assert make_alarms() == ALARMS.read_text(), "`make generate` writes it"


def test_the_validated_template_includes_the_alarms() -> None:
    expanded = template.load_template(expand_template((ROOT / "template.yaml").read_text()))
    assert expanded.pop("Metadata") == {"cfn-lint": {"config": {}}}, "all is checked"
    assert expanded == {
        name: part for name, part in template.TEMPLATE.items() if name != "Metadata"
    }


def test_all_alarms_are_generated() -> None:
    assert ALARM not in (ROOT / "template.yaml").read_text()
    assert len(resources(ALARM)) > 60


OF_ACCOUNT = {
    "AsyncDropsAlarm": "AWS/Lambda",
    "BreakersAlarm": "Plaza",
    "ConcurrencyAlarm": "AWS/Usage",
    "MessagesUnsentAlarm": "Plaza",
    "SchedulerAlarm": "AWS/Scheduler",
    "SpillsFailedAlarm": "Plaza",
    "ThrottlesAlarm": "AWS/Lambda",
}
"""Alarms on quotas that functions of an account share, and on metrics that any of them writes."""


@pytest.mark.parametrize("name", sorted(resources(ALARM)))
def test_an_alarm_watches_a_resource_of_the_template(name: str) -> None:
    watched = [
        template.name_in(dimension["Value"]).removesuffix(".Version")
        for metric in template.metrics_of(resources(ALARM)[name])
        for dimension in metric["Dimensions"]
        if not isinstance(dimension["Value"], str) and "Fn::Sub" not in dimension["Value"]
    ]
    assert bool(watched) is (name not in OF_ACCOUNT)
    assert set(watched) <= set(template.TEMPLATE["Resources"])


def test_the_page_lists_the_alarms_that_watch_other_environments_too() -> None:
    page = (ROOT / "docs" / "alarms.md").read_text()
    [text] = re.findall(r"Some alarms watch all environments.*?\n\n", page, re.DOTALL)
    assert set(re.findall(r"\w+Alarm\b", text)) == set(OF_ACCOUNT)


# ---------------------------------------------------------------- silence


@pytest.mark.parametrize("name", SCHEDULED)
def test_a_schedule_that_does_not_run_raises_an_alarm(name: str) -> None:
    alarm = resources(ALARM)[f"{name}SilentAlarm"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("Plaza", "ran")
    assert alarm["Dimensions"] == [{"Name": "function", "Value": {"Ref": name}}]
    assert alarm["TreatMissingData"] == "breaching"
    assert (alarm["Statistic"], alarm["Threshold"]) == ("Sum", 1)
    assert alarm["ComparisonOperator"] == "LessThanThreshold"


def test_an_alarm_on_silence_has_a_schedule() -> None:
    silent = {name for name in resources(ALARM) if name.endswith("SilentAlarm")}
    assert silent == {f"{name}SilentAlarm" for name in SCHEDULED}


@pytest.mark.parametrize(
    ("schedule", "period_s", "silent_s"),
    [
        ("rate(1 minute)", 60, 900),
        ("rate(5 minutes)", 300, 900),
        ("rate(20 minutes)", 300, 3_600),
        ("rate(1 hour)", 3_600, 10_800),
        ("rate(12 hours)", 3_600, 129_600),
        ("cron(30 3 * * ? *)", 3_600, 93_600),
        ("rate(6 days)", 3_600, 525_600),
    ],
)
def test_silence_is_three_intervals_and_more_than_a_day_for_a_daily_run(
    schedule: str, period_s: int, silent_s: int
) -> None:
    silence = limit_silence(schedule)
    assert (silence.period_s, silence.period_s * silence.periods) == (period_s, silent_s)


@pytest.mark.parametrize("schedule", ["rate(7 days)", "rate(30 days)"])
def test_a_schedule_that_no_alarm_can_watch_is_refused(schedule: str) -> None:
    with pytest.raises(ValueError, match="run daily"):
        limit_silence(schedule)


@pytest.mark.parametrize("schedule", ["cron(0 3 1 * ? *)", "cron(0/5 * * * ? *)", "at(noon)"])
def test_a_schedule_whose_interval_is_unknown_is_refused(schedule: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        limit_silence(schedule)


@pytest.mark.parametrize("name", sorted(resources(ALARM)))
def test_cloudwatch_can_look_back_as_far_as_an_alarm_needs(name: str) -> None:
    alarm = resources(ALARM)[name]
    parts = alarm.get("Metrics", [])
    stats = [part["MetricStat"] for part in parts if "MetricStat" in part]
    for period_s in {part["Period"] for part in [alarm, *parts, *stats] if "Period" in part}:
        window_s = period_s * alarm["EvaluationPeriods"]
        assert window_s <= (MAX_HOURLY_WINDOW_S if period_s >= 3600 else MAX_WINDOW_S)
        if any("SELECT" in part.get("Expression", "") for part in parts):
            assert window_s <= 3 * 3600, "of a query"


COMPOSITES = resources("AWS::CloudWatch::CompositeAlarm")


@pytest.mark.parametrize("name", sorted(resources(ALARM)))
def test_an_alarm_notifies_the_topic_of_the_deployment(name: str) -> None:
    alarm = resources(ALARM)[name]
    if "AlarmActions" not in alarm:  # it is part of an alarm that does
        assert any(f"${{{name}}}" in str(both["AlarmRule"]) for both in COMPOSITES.values())
        return
    topic = [{"Ref": "AlarmTopicArn"}]
    has_condition = template.TEMPLATE["Resources"][name].get("Condition") == "HasAlarmTopic"
    expected = topic if has_condition else {"Fn::If": ["HasAlarmTopic", topic, []]}
    assert alarm["AlarmActions"] == alarm["OKActions"] == expected


def test_a_composite_alarm_notifies_when_it_ends() -> None:
    for alarm in COMPOSITES.values():
        assert alarm["OKActions"] == alarm["AlarmActions"] == [{"Ref": "AlarmTopicArn"}]


@pytest.mark.parametrize("name", sorted(COMPOSITES))
def test_the_error_budget_is_watched_in_a_long_and_a_short_window(name: str) -> None:
    """The long window has weight, and the short one ends the alarm soon after the errors end."""
    assert COMPOSITES[name]["AlarmActions"] == [{"Ref": "AlarmTopicArn"}]
    rule = str(COMPOSITES[name]["AlarmRule"]["Fn::Sub"])
    parts = re.findall(r'ALARM\("\$\{(\w+)\}"\)', rule)
    long, short = (resources(ALARM)[part] for part in parts)
    periods = [a["Metrics"][1]["MetricStat"]["Period"] for a in (long, short)]
    assert periods[0] == 12 * periods[1]
    assert long["Threshold"] == short["Threshold"]
    budget_percent = 0.1  # what 99.9 % leaves
    days_left = 30 * budget_percent / long["Threshold"]
    assert (
        f"in {'two' if round(days_left) == 2 else 'five'} days"
        in COMPOSITES[name]["AlarmDescription"]
    )


@every_source
def test_the_visibility_timeout_is_six_times_the_consumers_timeout(source: EventSource) -> None:
    timeout_s = resources(FUNCTION)[source.function].get("Timeout", template.GLOBALS["Timeout"])
    window_s = source.properties.get("MaximumBatchingWindowInSeconds", 0)
    assert resources(QUEUE)[source.queue]["VisibilityTimeout"] >= 6 * timeout_s + window_s


@every_source
def test_a_batch_of_more_than_ten_has_a_window(source: EventSource) -> None:
    if source.properties["BatchSize"] > 10:
        assert source.properties["MaximumBatchingWindowInSeconds"] >= 1


@every_source
def test_a_consumer_has_a_concurrency_limit(source: EventSource) -> None:
    assert 2 <= source.properties["ScalingConfig"]["MaximumConcurrency"] <= 50


# ---------------------------------------------------------------- secrets


def test_no_parameter_has_credentials() -> None:
    """Addresses are read from Parameter Store; deploy/data.yaml refuses those with a login."""
    for name, parameter in template.TEMPLATE["Parameters"].items():
        assert not parameter.get("NoEcho"), name
        is_read = parameter["Type"].startswith("AWS::SSM::Parameter::Value<")
        assert is_read or not name.endswith("Url"), name


# ---------------------------------------------------------------- functions


@pytest.mark.parametrize("parameter", ["SubnetIds", "SecurityGroupIds", "AlarmTopicArn"])
def test_a_deploy_without_network_or_alarm_topic_is_refused(parameter: str) -> None:
    """CloudFormation refuses a name that Parameter Store does not have."""
    declared = template.TEMPLATE["Parameters"][parameter]
    assert declared["Type"].startswith("AWS::SSM::Parameter::Value<")
    assert "Default" not in declared


def test_all_functions_run_the_same_python_in_the_vpc() -> None:
    assert template.GLOBALS["Runtime"] == {"Ref": "Runtime"}
    condition, within, without = template.GLOBALS["VpcConfig"]["Fn::If"]
    assert condition == "InVpc"
    assert set(within) == {"SubnetIds", "SecurityGroupIds"}
    assert without == {"Ref": "AWS::NoValue"}


@every_function
def test_a_function_overrides_no_global_setting(function: str) -> None:
    own = resources(FUNCTION)[function]
    assert not own.keys() & {"Runtime", "Layers", "Handler", "Architectures"}
    assert own.get("VpcConfig") == (NOTHING if function in OUTSIDE else None)


@pytest.mark.parametrize("function", sorted(OUTSIDE))
def test_a_function_outside_of_the_vpc_has_no_login_at_a_store(function: str) -> None:
    text = json.dumps(resources(FUNCTION)[function].get("Policies"))
    assert not re.search("RedisLogin|Mysql|AuthSecret", text)


def test_a_function_with_requirements_of_its_own_is_built_with_their_hashes() -> None:
    own = {file.parent for file in (ROOT / "functions").glob("*/*/requirements.txt")}
    assert own == {ROOT / "functions" / name for name in ("api/auth", "queue/send_pushes")}
    for name in FUNCTIONS:
        metadata = template.TEMPLATE["Resources"][name].get("Metadata", {})
        is_made = metadata.get("BuildMethod") == "makefile"
        assert is_made == (template.folder_of(name) in own), name
        if is_made:
            assert metadata["ContextPath"] == {"Fn::Sub": "functions/build/${Architecture}"}
    for architecture in template.TEMPLATE["Parameters"]["Architecture"]["AllowedValues"]:
        assert (ROOT / "functions" / "build" / architecture / "Makefile").exists()
    assert "--require-hashes" in (ROOT / "functions" / "build" / "function.mk").read_text()


def test_the_layer_is_built_for_the_python_of_the_functions() -> None:
    layer = template.TEMPLATE["Resources"]["CommonLayer"]
    assert layer["Properties"]["CompatibleRuntimes"] == [template.GLOBALS["Runtime"]]


def test_the_layer_is_built_for_the_processor_of_the_functions() -> None:
    metadata = template.TEMPLATE["Resources"]["CommonLayer"]["Metadata"]
    assert metadata["ContextPath"] == {"Fn::Sub": "layers/common/${Architecture}"}
    for architecture in template.TEMPLATE["Parameters"]["Architecture"]["AllowedValues"]:
        assert (ROOT / "layers" / "common" / architecture / "Makefile").exists()


# A phone number has no ARN: sending to anything but a topic is allowed.
TEXTS = {
    "Effect": "Allow",
    "Action": "sns:Publish",
    "NotResource": {"Fn::Sub": "arn:${AWS::Partition}:sns:*:*:*"},
}
# Metrics have no ARN, either.
METRICS = {"Effect": "Allow", "Action": "cloudwatch:GetMetricData", "Resource": "*"}
UNNAMEABLE = [("AuthApi", TEXTS), ("OperationsApi", METRICS)]
# Objects that do not exist yet are allowed by their prefix.
_ORDERS = {"Fn::Sub": "${LogArchive.Arn}/orders/*"}
ARCHIVES = {
    "MaintainLog": {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject"],
        "Resource": [
            {"Fn::Sub": "${LogArchive.Arn}/reaction_log/*"},
            {"Fn::Sub": "${LogArchive.Arn}/event_log/*"},
            _ORDERS,
        ],
    },
    "FlashSalesApi": {"Effect": "Allow", "Action": "s3:GetObject", "Resource": _ORDERS},
}


# The hook of deployments names functions by their logical ids, since it must not wait for them,
# and no deployment group, whose names have the id of the deployment application.
_HOOKED = "arn:${AWS::Partition}:%s:${AWS::Region}:${AWS::AccountId}:%s"
BEFORE_TRAFFIC = {
    "SmokeVersion": [
        {
            "Effect": "Allow",
            "Action": [
                "codedeploy:ListDeploymentTargets",
                "codedeploy:BatchGetDeploymentTargets",
                "codedeploy:PutLifecycleEventHookExecutionStatus",
            ],
            "Resource": "*",
        },
        {
            "Effect": "Allow",
            "Action": "lambda:InvokeFunction",
            "Resource": [
                {"Fn::Sub": _HOOKED % ("lambda", f"function:${{AWS::StackName}}-{name}-*")}
                for name, function in sorted(resources(FUNCTION).items())
                if "AutoPublishAlias" in function
            ],
        },
    ]
}


@every_function
def test_no_policy_has_a_wildcard(function: str) -> None:
    for name, statement in statements():
        if name != function or (name, statement) in UNNAMEABLE:
            continue
        if ARCHIVES.get(function) == statement or statement in BEFORE_TRAFFIC.get(function, []):
            continue
        actions, where = statement["Action"], statement["Resource"]
        for action in [actions] if isinstance(actions, str) else actions:
            assert "*" not in action
        for resource in where if isinstance(where, list) else [where]:
            assert "*" not in json.dumps(resource)


def test_the_archive_is_private_and_is_never_deleted() -> None:
    """It outlives the stack, has no public access, and no function may delete from it."""
    [(name, bucket)] = resources("AWS::S3::Bucket").items()
    archive = template.TEMPLATE["Resources"][name]
    assert archive["DeletionPolicy"] == "RetainExceptOnCreate", "a failed creation leaves none"
    assert archive["UpdateReplacePolicy"] == "Retain"
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    for rule in bucket["LifecycleConfiguration"]["Rules"]:
        assert not [key for key in rule if key.startswith("Expiration")]
        # A recount reads all of it, so no storage class may need a restore.
        classes = {transition["StorageClass"] for transition in rule.get("Transitions", [])}
        assert classes <= {"STANDARD_IA", "GLACIER_IR"}
    [policy] = resources("AWS::S3::BucketPolicy").values()
    assert template.name_in(policy["Bucket"]) == name
    [denied] = policy["PolicyDocument"]["Statement"]
    assert (denied["Effect"], denied["Action"], denied["Principal"]) == ("Deny", "s3:*", "*")
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    users = {f for f, statement in statements() if "s3:" in json.dumps(statement)}
    configured = {f for f in FUNCTIONS if "PLAZA_ARCHIVE_BUCKET" in template.variables_of(f)}
    assert users == configured == set(ARCHIVES)


OWN_MANAGED_POLICIES = {("HasRedisLogin", "RedisLogin"), ("HasEdge", "EdgeLogin")}


def test_no_function_has_a_managed_policy_of_aws() -> None:
    for name in FUNCTIONS:
        for policy in resources(FUNCTION)[name].get("Policies", []):
            assert isinstance(policy, dict), f"{name}: {policy}"
            if "Fn::If" in policy:
                condition, own, otherwise = policy["Fn::If"]
                assert (condition, own["Ref"]) in OWN_MANAGED_POLICIES
                assert otherwise == {"Ref": "AWS::NoValue"}
                continue
            assert set(policy) <= {
                "AWSSecretsManagerGetSecretValuePolicy",
                "SQSPollerPolicy",
                "SQSSendMessagePolicy",
                "Statement",
            }


def test_an_announced_refresh_is_delayed_beyond_the_timeout_of_any_api_function() -> None:
    for name, function in resources(FUNCTION).items():
        if template.folder_of(name).parent.name == "api":
            timeout_s = function.get("Timeout", template.GLOBALS["Timeout"])
            assert timeout_s < template.TEMPLATE["Parameters"]["AnnounceDelay"]["Default"]


# ---------------------------------------------------------------- operators


def test_the_policy_of_operators_allows_one_function_and_nothing_else() -> None:
    policy = resources("AWS::IAM::ManagedPolicy")["OperatorPolicy"]["PolicyDocument"]
    allowed = {entry["Action"]: entry["Resource"] for entry in policy["Statement"]}
    assert allowed == {
        "lambda:InvokeFunction": {"Fn::GetAtt": "Operate.Arn"},
        "cloudformation:DescribeStacks": {"Ref": "AWS::StackId"},
    }


def test_only_people_invoke_the_function_of_the_commands() -> None:
    """No API, schedule, queue or other function does, and it has no URL."""
    own = resources(FUNCTION)["Operate"]
    assert not {"Events", "FunctionUrlConfig", "AutoPublishAlias"} & set(own)
    naming = {
        name
        for name, resource in template.TEMPLATE["Resources"].items()
        if name != "Operate" and re.search(r"'(Operate|Operate\.Arn)'", str(resource))
    }
    assert naming == {"OperatorPolicy"}
    may = [statement for name, statement in statements() if name == "Operate"]
    assert {action for entry in may for action in as_list(entry["Action"])} == {
        "sqs:SendMessage",
        "sqs:GetQueueAttributes",
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:ChangeMessageVisibility",
    }


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_operators_may_measure_every_queue_and_redrive_dlqs_without_a_consumer() -> None:
    own = resources(FUNCTION)["OperationsApi"]["Environment"]["Variables"]
    names = own["PLAZA_QUEUES"].split(",")
    assert template.queue_name(template.name_in(own["PLAZA_QUEUES_URL"])) == names[0]
    assert sorted(names) == sorted(map(template.queue_name, resources(QUEUE)))
    may: dict[str, set[str]] = {}
    for name, statement in statements():
        if name == "OperationsApi" and statement != METRICS:
            actions, where = statement["Action"], statement["Resource"]
            for action in [actions] if isinstance(actions, str) else actions:
                assert action not in may
                may[action.removeprefix("sqs:")] = {template.name_in(queue) for queue in where}
    redrivable = template.dead_letter_queues() - set(WORKING)
    their_queues = {
        queue
        for queue in WORKING
        if template.name_in(resources(QUEUE)[queue]["RedrivePolicy"]["deadLetterTargetArn"])
        in redrivable
    }
    assert may == {
        "GetQueueAttributes": set(resources(QUEUE)),
        "ReceiveMessage": redrivable,
        "DeleteMessage": redrivable,
        "ChangeMessageVisibility": redrivable,
        "SendMessage": their_queues,
    }


# ---------------------------------------------------------------- the contract


def test_the_contract_is_up_to_date() -> None:
    assert make_contract() == CONTRACT.read_text(), "`make generate` writes it"


def test_the_gateway_refuses_no_request_and_invokes_one_function() -> None:
    """An authorizer would cost an invocation, and its refusals are no problem+json."""
    assert "Auth" not in resources("AWS::Serverless::HttpApi")["Api"]


PUBLIC_ROUTES = {
    "send_code",
    "create_session",
    "create_visitor_id",
    "get_health",
    "get_contract",
    "get_totals",
}


@pytest.mark.parametrize("folder", [file.parent.name for file in API.glob("*/app.py")])
def test_every_route_identifies_its_caller_by_session_or_is_listed_as_public(folder: str) -> None:
    app = load_function(f"api/{folder}").app
    assert app.identify is (identify_poll if folder == "totals" else identify)
    for endpoint in app.endpoints.values():
        route = endpoint.route
        is_public = route.func.__name__ in PUBLIC_ROUTES
        allowed = (PUBLIC,) if is_public else (BEARER, *BY_ROLE, OWNER, MEMBER, OPTIONAL)
        assert route.security in allowed, endpoint.key


def test_functions_read_no_verdict_of_an_authorizer() -> None:
    for file in (*LAYER.rglob("*.py"), *template.FUNCTIONS.rglob("*.py")):
        assert "authorizer" not in file.read_text().lower(), file


def test_every_me_route_requires_a_session() -> None:
    for path, methods in json.loads(CONTRACT.read_text())["paths"].items():
        for method, operation in methods.items():
            if re.search(r"/me(?:/|$)", path):
                assert operation["security"] == [{"bearer": []}], f"{method} {path}"
                assert {"401", "503"} <= set(operation["responses"]), f"{method} {path}"
