"""The blocks of template.yaml that ``make generate`` writes, and what they may not change."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from cli.paths import TEMPLATE, TOOLS
from tests.unit.policy.template import QUEUE, resources, routes
from tools.template.blocks import write_template
from tools.template.text import count_own_lines

TEXT = TEMPLATE.read_text()

# Queues of version 0.3.0. CloudFormation deletes one whose logical id or name changes, with the
# messages in it.
QUEUES = {
    "AcknowledgementsDlq": "acknowledgements_dlq",
    "AcknowledgementsQueue": "acknowledgements",
    "CheckinsDlq": "checkins_dlq",
    "CheckinsQueue": "checkins",
    "ComparisonsDlq": "comparisons_dlq",
    "ComparisonsQueue": "comparisons",
    "DropsDlq": "drops_dlq",
    "DropsQueue": "drops",
    "FanoutsDlq": "fanouts_dlq",
    "FanoutsQueue": "fanouts",
    "FollowsDlq": "follows_dlq",
    "FollowsQueue": "follows",
    "InboxesDlq": "inboxes_dlq",
    "InboxesQueue": "inboxes",
    "OrdersDlq": "orders_dlq",
    "OrdersDlqDlq": "orders_dlq_dlq",
    "OrdersQueue": "orders",
    "ReactionsDlq": "reactions_dlq",
    "ReactionsQueue": "reactions",
    "RebuildsDlq": "rebuilds_dlq",
    "RebuildsQueue": "rebuilds",
    "RecommendationsDlq": "recommendations_dlq",
    "RecommendationsQueue": "recommendations",
    "RefreshesDlq": "refreshes_dlq",
    "RefreshesQueue": "refreshes",
    "RepairsDlq": "repairs_dlq",
    "RepairsQueue": "repairs",
    "ShopsDlq": "shops_dlq",
    "ShopsQueue": "shops",
}
# Other resources of version 0.3.0 that have data, or an address that clients know.
OTHERS = {
    "AccessLogs": "AWS::Logs::LogGroup",
    "Api": "AWS::Serverless::HttpApi",
    "AuthSecret": "AWS::SecretsManager::Secret",
    "FunctionLogs": "AWS::Logs::LogGroup",
    "LogArchive": "AWS::S3::Bucket",
    "OriginSecret": "AWS::SecretsManager::Secret",
}


def test_the_blocks_are_up_to_date() -> None:
    assert write_template(TEXT) == TEXT, "`make generate` writes them"


def test_an_update_replaces_no_queue_with_messages() -> None:
    names = {name: properties["QueueName"] for name, properties in resources(QUEUE).items()}
    stack = "${AWS::StackName}"
    assert {name: {"Fn::Sub": f"{stack}-{queue}"} for name, queue in QUEUES.items()} == {
        name: names.get(name) for name in QUEUES
    }


def test_an_update_replaces_no_other_resource_with_data_and_not_the_api() -> None:
    for name, kind in OTHERS.items():
        assert name in resources(kind)


# Runs in SAM's virtual environment: the routes that `sam local start-api` serves.
READ_ROUTES = """
import json, sys
from samcli.lib.providers.api_provider import ApiProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider

stacks, _ = SamLocalStackProvider.get_stacks(sys.argv[1])
routes = ApiProvider(stacks).api.routes
print(json.dumps([[m, r.path, r.function_name] for r in routes for m in r.methods]))
"""


def test_sam_local_start_api_serves_the_routes() -> None:
    command: list[str | Path] = [TOOLS / "python", "-c", READ_ROUTES, TEMPLATE]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    served = {
        (m, path): function for m, path, function in json.loads(completed.stdout) if m != "OPTIONS"
    }
    heads = {("HEAD", path): f for (method, path), f in routes().items() if method == "GET"}
    default = {key: function for key, function in served.items() if key[1] == "$default"}
    assert set(default.values()) == {"SystemApi"}
    assert {key: f for key, f in served.items() if key not in default} == routes() | heads


def test_most_of_the_template_is_generated() -> None:
    assert count_own_lines(TEXT) <= 1_400
