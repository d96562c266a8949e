"""The alarms of the file that the template includes are deployed."""

import json

from local.stack.deployment import STACK_NAME
from local.stack.stack import Stack
from tools.alarms import make_alarms

ALARM = "AWS::CloudWatch::Alarm"


def test_every_alarm_is_deployed_with_its_threshold_and_watches_a_resource(stack: Stack) -> None:
    declared = json.loads(make_alarms())
    formation = stack.connect("cloudformation")
    resources = [
        item
        for page in formation.get_paginator("list_stack_resources").paginate(StackName=STACK_NAME)
        for item in page["StackResourceSummaries"]
    ]
    names = {  # the physical id of a queue is its URL
        item["PhysicalResourceId"].rpartition("/")[2]: item["LogicalResourceId"]
        for item in resources
    }
    deployed = {r["LogicalResourceId"] for r in resources if r["ResourceType"] == ALARM}
    here = {name for name, resource in declared.items() if "Condition" not in resource}
    assert deployed == {name for name in here if declared[name]["Type"] == ALARM}
    alarms = {
        names[alarm["AlarmName"]]: alarm
        for page in stack.connect("cloudwatch").get_paginator("describe_alarms").paginate()
        for alarm in page["MetricAlarms"]
    }
    for name in deployed:
        properties = declared[name]["Properties"]
        assert alarms[name]["MetricName"] == properties["MetricName"]
        assert alarms[name]["Threshold"] == properties["Threshold"]
        if not properties.get("Dimensions"):  # of the account
            assert not alarms[name].get("Dimensions")
            continue
        [dimension] = alarms[name]["Dimensions"]
        [reference] = properties["Dimensions"][0]["Value"].values()
        logical_id = reference if isinstance(reference, str) else reference[0]
        if logical_id != "Api":
            assert names[dimension["Value"]] == logical_id
