"""deploy/balancer.yaml with what it includes: each route reaches its function, and nothing more."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest

from cli.paths import ROOT
from tests.support.routes import find_match
from tests.unit.policy import template
from tests.unit.policy.template import load_template
from tools import balancer
from tools.balancer import FREE_RULES, ORDER, PRIORITIES, RULES, SOURCE
from tools.template.routes import DEFAULT

EXPANDED = load_template(balancer.expand_template())
RESOURCES: dict[str, dict[str, Any]] = EXPANDED["Resources"]
ROUTES = template.routes()
RULE = "AWS::ElasticLoadBalancingV2::ListenerRule"
GROUP = "AWS::ElasticLoadBalancingV2::TargetGroup"
NETWORK = load_template((ROOT / "deploy" / "network.yaml").read_text())["Resources"]
EDGE = load_template((ROOT / "deploy" / "edge.yaml").read_text())["Resources"]


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    return {n: r["Properties"] for n, r in RESOURCES.items() if r["Type"] == kind}


def rules() -> list[tuple[list[str], str]]:
    """The patterns of each rule and its function, in the order of their priorities."""
    results = sorted(of_type(RULE).values(), key=lambda rule: int(rule["Priority"]))
    listed = []
    for rule in results:
        [condition], [action] = rule["Conditions"], rule["Actions"]
        assert condition["Field"] == "path-pattern"
        function = action["TargetGroupArn"]["Ref"].removesuffix("Targets") + "Api"
        listed.append((condition["PathPatternConfig"]["Values"], function))
    return listed


IN_ORDER = rules()


def function_of(path: str) -> str:
    """The function that the load balancer sends a request to; its ``*`` also fits ``/``."""
    for patterns, function in IN_ORDER:
        if any(fnmatchcase(path, pattern) for pattern in patterns):
            return function
    [action] = RESOURCES["Listener"]["Properties"]["DefaultActions"]
    return str(action["TargetGroupArn"]["Ref"]).removesuffix("Targets") + "Api"


def test_the_included_file_is_up_to_date() -> None:
    assert balancer.make_file() == RULES.read_text(), "`make generate` writes it"


@pytest.mark.parametrize(("method", "path"), sorted(ROUTES))
def test_a_request_reaches_the_function_that_api_gateway_sends_it_to(
    method: str, path: str
) -> None:
    for id_ in ("7", "9223372036854775807", "me", "a%2Fb", "7.8"):
        sent = re.sub(r"\{\w+\}", id_, path)
        key = find_match(method, sent).route.key
        assert function_of(sent) == ROUTES[tuple(key.split(" ", 1))]  # type: ignore[index]


def test_a_path_is_served_by_one_function() -> None:
    """So that this function can answer 405 for it."""
    functions: dict[str, set[str]] = {}
    for (_, path), function in ROUTES.items():
        functions.setdefault(path, set()).add(function)
    assert [path for path, item in functions.items() if len(item) > 1] == []


def test_a_name_in_place_of_an_id_reaches_a_function_that_knows_the_path() -> None:
    """``/posts/ranking/likes/me``: API Gateway takes ``ranking`` for an id. Two requests reach
    another function there, which answers 405, too; others, with what is no id of a session
    or of a key, reach one that answers 404."""
    names = {part for _, path in ROUTES for part in path.split("/") if part and part[0] != "{"}
    differing = set()
    for (method, path), name in product(ROUTES, names):
        if path.count("{") == 1:
            path = re.sub(r"\{\w+\}", name, path)
            key = find_match(method, path).route.key
            if function_of(path) != ROUTES[tuple(key.split(" ", 1))]:  # type: ignore[index]
                differing.add(f"{method} {path}")
    assert differing == {
        *("DELETE /posts/ranking", "PATCH /posts/ranking", "DELETE /ops/server-keys/likers"),
        *(
            f"DELETE /users/me/sessions/{name}"
            for name in ("common-follows", "export", "followers", "following", "likers", "posts")
        ),
    }


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/health", "/openapi.json", "/Posts/7", "//posts"]
)
def test_all_other_requests_reach_the_function_of_unknown_paths(path: str) -> None:
    assert function_of(path) == DEFAULT == "SystemApi"


def test_a_route_that_another_function_would_take_is_refused() -> None:
    routes = balancer.read_routes()
    with pytest.raises(ValueError, match=r"of \w+Api, and sent to FeedApi$"):
        balancer.make_rules({**routes, "FeedApi": ["/posts/{id}"]})
    with pytest.raises(ValueError, match="NewApi"):
        balancer.make_rules({**routes, "NewApi": ["/new"]})


def test_the_rules_keep_the_limits_of_a_load_balancer() -> None:
    assert len(IN_ORDER) < 100
    assert len(of_type(GROUP)) < 100
    for patterns, _ in IN_ORDER:
        assert 0 < len(patterns) <= 3, "of a condition; five in a rule"
        assert sum(pattern.count("*") for pattern in patterns) <= 5
        assert all(len(pattern) <= 128 for pattern in patterns)
    priorities = [rule["Priority"] for rule in of_type(RULE).values()]
    assert len(set(priorities)) == len(priorities)
    for name, rule in of_type(RULE).items():
        function = name.rpartition("Rule")[0] + "Api"
        assert rule["Priority"] // PRIORITIES == ORDER.index(function) + 1, "a range each"


@pytest.mark.parametrize(
    "path", ["/posts/7/likes/me", "/feed", "/posts/ranking", "/vouchers/7/orders", "/orders/7"]
)
def test_frequent_requests_evaluate_no_rule_that_is_paid_for(path: str) -> None:
    routes = balancer.read_routes()
    assert balancer.count_evaluated(balancer.make_rules(routes), path) <= FREE_RULES


# ---------------------------------------------------------------- who may do what

PROCESSED_ALIAS = (
    "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${Name}:live"
)


def alias_of(value: dict[str, Any]) -> str:
    """The function whose alias ``live`` an ARN names: one of the output of the application."""
    text, names = value["Fn::Sub"]
    assert text == PROCESSED_ALIAS
    number, listed = names["Name"]["Fn::Select"]
    assert listed == {"Ref": "ApiFunctions"}
    _, functions = template.TEMPLATE["Outputs"]["ApiFunctions"]["Value"]["Fn::Join"]
    return str(functions[number]["Ref"])


def test_each_function_of_the_api_has_a_target_group_of_its_alias() -> None:
    api = {f for f, p in template.resources(template.FUNCTION).items() if "AutoPublishAlias" in p}
    results = {}
    for name, group in of_type(GROUP).items():
        [target] = group["Targets"]
        results[alias_of(target["Id"])] = name.removesuffix("Targets") + "Api"
        assert group["TargetType"] == "lambda"
        assert group["HealthCheckEnabled"] is False
        assert group["TargetGroupAttributes"] == [
            {"Key": "lambda.multi_value_headers.enabled", "Value": "true"}
        ]
        assert RESOURCES[name]["DependsOn"] == name.replace("Targets", "Permission")
    assert results == {function: function for function in api}


def test_names_of_target_groups_differ_and_fit() -> None:
    names = [group["Name"]["Fn::Sub"] for group in of_type(GROUP).values()]
    assert len(set(names)) == len(names)
    assert max(len(name.replace("${Environment}", "e" * 20)) for name in names) <= 32


def test_only_its_own_target_group_may_invoke_a_function() -> None:
    permissions = of_type("AWS::Lambda::Permission")
    assert len(permissions) == len(of_type(GROUP))
    for name, permission in permissions.items():
        group = RESOURCES[name.replace("Permission", "Targets")]["Properties"]
        assert permission["Action"] == "lambda:InvokeFunction"
        assert permission["Principal"] == "elasticloadbalancing.amazonaws.com"
        assert permission["FunctionName"] == group["Targets"][0]["Id"]
        service, _, resource = permission["SourceArn"]["Fn::Sub"].partition(":targetgroup/")
        assert service.endswith(":${AWS::Region}:${AWS::AccountId}")
        assert resource == f"{group['Name']['Fn::Sub']}/*", "its random end is not known before"


def test_it_listens_with_tls_only_and_drops_invalid_headers() -> None:
    [listener] = of_type("AWS::ElasticLoadBalancingV2::Listener").values()
    assert (listener["Port"], listener["Protocol"]) == (443, "HTTPS")
    assert "TLS13-1-2" in listener["SslPolicy"]
    [certificate] = listener["Certificates"]
    chosen = certificate["CertificateArn"]["Fn::If"]
    assert chosen == ["HasZone", {"Ref": "Certificate"}, {"Ref": "BalancerCertificateArn"}]
    assert set(of_type("AWS::CertificateManager::Certificate")) == {"Certificate"}
    [balancer_] = of_type("AWS::ElasticLoadBalancingV2::LoadBalancer").values()
    attributes = {item["Key"]: item["Value"] for item in balancer_["LoadBalancerAttributes"]}
    assert attributes["routing.http.drop_invalid_header_fields.enabled"] == "true"
    assert attributes["routing.http.xff_header_processing.mode"] == "append"
    assert attributes["routing.http.xff_client_port.enabled"] == "false"
    assert attributes["deletion_protection.enabled"] == {"Ref": "DeletionProtection"}
    assert EXPANDED["Parameters"]["DeletionProtection"]["Default"] == "true"
    assert attributes["access_logs.s3.enabled"] == "true"


def test_only_the_load_balancer_is_reached_from_the_internet_and_it_reaches_nothing() -> None:
    for name, group in NETWORK.items():
        if group["Type"] == "AWS::EC2::SecurityGroup":
            open_ = "0.0.0.0/0" in json.dumps(group["Properties"].get("SecurityGroupIngress", []))
            assert open_ == (name == "BalancerGroup"), name
    group = NETWORK["BalancerGroup"]["Properties"]
    [rule] = group["SecurityGroupIngress"]
    for each in rule["Fn::If"][1:]:
        assert (each["FromPort"], each["ToPort"]) == (443, 443)
    assert [each["CidrIp"] for each in group["SecurityGroupEgress"]] == ["127.0.0.1/32"]


def test_private_subnets_have_no_route_to_the_internet() -> None:
    routes = {n: r["Properties"] for n, r in NETWORK.items() if r["Type"] == "AWS::EC2::Route"}
    assert [route["RouteTableId"] for route in routes.values()] == [{"Ref": "PublicRoutes"}]
    for name, resource in NETWORK.items():
        if resource["Type"] == "AWS::EC2::SubnetRouteTableAssociation":
            is_public = "Public" in name
            table = "PublicRoutes" if is_public else "Routes"
            assert resource["Properties"]["RouteTableId"] == {"Ref": table}, name
            assert ("Public" in resource["Properties"]["SubnetId"]["Ref"]) == is_public


def test_without_a_load_balancer_the_network_stays_private() -> None:
    public = {"AWS::EC2::InternetGateway", "AWS::EC2::VPCGatewayAttachment", "AWS::EC2::Route"}
    for name, resource in NETWORK.items():
        if resource["Type"] in public or "Public" in name or name == "BalancerGroup":
            assert resource["Condition"] in {"CreatesPublicSubnets", "HasBalancer"}, name


def test_the_bucket_of_the_access_log_takes_logs_of_this_account_only() -> None:
    [policy] = of_type("AWS::S3::BucketPolicy").values()
    allowed, denied = policy["PolicyDocument"]["Statement"]
    assert allowed["Principal"] == {"Service": "logdelivery.elasticloadbalancing.amazonaws.com"}
    assert allowed["Action"] == "s3:PutObject"
    assert allowed["Resource"] == {"Fn::Sub": "${AccessLogs.Arn}/AWSLogs/${AWS::AccountId}/*"}
    assert denied["Effect"] == "Deny"
    [bucket] = of_type("AWS::S3::Bucket").values()
    [rule] = bucket["LifecycleConfiguration"]["Rules"]
    assert rule["ExpirationInDays"] == {"Ref": "BalancerLogDays"}, "it has addresses"


# ---------------------------------------------------------------- the firewall


def test_the_firewall_has_the_rules_of_the_edge() -> None:
    [acl] = of_type("AWS::WAFv2::WebACL").values()
    assert acl["Scope"] == "REGIONAL"
    assert acl["Rules"] == EDGE["WebAcl"]["Properties"]["Rules"]
    assert (
        of_type("AWS::WAFv2::LoggingConfiguration")["RefusedRequestsLog"]
        == (EDGE["RefusedRequestsLog"]["Properties"])
    )
    assert of_type("AWS::WAFv2::WebACLAssociation")["WebAclOfBalancer"] == {
        "ResourceArn": {"Ref": "Balancer"},
        "WebACLArn": {"Fn::GetAtt": "WebAcl.Arn"},
    }


def test_behind_the_edge_no_rule_counts_the_addresses_of_the_edge() -> None:
    assert EXPANDED["Conditions"]["HasFirewall"]["Fn::And"] == [
        {"Fn::Equals": [{"Ref": "BalancerFirewall"}, "1"]},
        {"Fn::Equals": [{"Ref": "GuardOrigin"}, "off"]},
    ]
    for name, resource in RESOURCES.items():
        if "WAF" in resource["Type"] or name.startswith("Refused"):
            assert resource["Condition"] == "HasFirewall", name


# ---------------------------------------------------------------- alarms


def test_the_alarms_are_those_of_the_api_with_its_runbooks() -> None:
    kinds = {"AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"}
    results = {name: r for name, r in RESOURCES.items() if r["Type"] in kinds}
    application = template.TEMPLATE["Resources"]
    of_api = {
        name
        for name, alarm in template.resources(template.ALARM).items()
        if any(m["Namespace"] == "AWS/ApiGateway" for m in template.metrics_of(alarm))
    } | set(template.resources("AWS::CloudWatch::CompositeAlarm"))
    assert set(results) == of_api
    for name, alarm in results.items():
        assert alarm["Condition"] == "HasAlarmTopic"
        text = "AlarmDescription"
        assert alarm["Properties"][text] == application[name]["Properties"][text]
        assert ("AlarmActions" in alarm["Properties"]) == (
            "AlarmActions" in application[name]["Properties"]
        )


@pytest.mark.parametrize(
    ("name", "expression", "threshold"),
    [
        (
            "ApiErrorsAlarm",
            "IF((FILL(m0, 0) + FILL(m1, 0)) > 3, 100 * (FILL(m0, 0) + FILL(m1, 0)) / m2, 0)",
            1,
        ),
        ("ApiLatencyAlarm", "FILL(m0, 0)", 1),
        (
            "HourErrorsAlarm",
            "IF(m2 > 100, 100 * (FILL(m0, 0) + FILL(m1, 0)) / m2, 0)",
            1.44,
        ),
    ],
)
def test_an_alarm_of_the_load_balancer_counts_its_own_errors_and_those_of_functions(
    name: str, expression: str, threshold: float
) -> None:
    alarm = RESOURCES[name]["Properties"]
    watched, *metrics = alarm["Metrics"]
    assert (watched["Expression"], alarm["Threshold"]) == (expression, threshold)
    names = [metric["MetricStat"]["Metric"]["MetricName"] for metric in metrics]
    errors = ["HTTPCode_ELB_5XX_Count", "HTTPCode_Target_5XX_Count"]
    assert names in (errors, ["TargetResponseTime"], [*errors, "RequestCount"])


# ---------------------------------------------------------------- the template


def test_the_template_without_its_include_is_what_is_deployed() -> None:
    own = load_template(SOURCE.read_text())
    included = own["Resources"].pop("Fn::Transform")
    assert included["Parameters"]["Location"] == RULES.name
    assert not set(own["Resources"]) & set(json.loads(RULES.read_text()))
    assert EXPANDED["Metadata"] == {"cfn-lint": {"config": {}}}, "all is checked"


def test_the_http_api_is_closed_by_a_step_of_its_own() -> None:
    """Closed with the first deploy of the load balancer, it would refuse clients meanwhile."""
    api = template.TEMPLATE["Resources"]["Api"]["Properties"]
    assert api["DisableExecuteApiEndpoint"] == {"Fn::If": ["ClosesHttpApi", True, False]}
    assert template.TEMPLATE["Parameters"]["HttpApi"]["Default"] == "open"
    assert template.TEMPLATE["Parameters"]["Ingress"]["Default"] == "http-api"


def test_functions_know_the_allowed_origins_only_behind_a_load_balancer() -> None:
    value = template.GLOBALS["Environment"]["Variables"]["PLAZA_ALLOWED_ORIGINS"]
    assert value == {"Fn::If": ["HasBalancer", {"Fn::Join": [",", {"Ref": "AllowedOrigins"}]}, ""]}
