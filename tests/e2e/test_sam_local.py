"""The files of ``python -m local sam`` give SAM the environment of the deployed functions.

Each night ``sam local invoke`` and ``sam local start-api`` run with them in containers.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from cli.paths import ROOT, TOOLS
from local.stack import sam_local
from local.stack.ports import free_port
from local.stack.processes import start_process, stop_process, wait_until
from local.stack.stack import Stack

# Runs in SAM's virtual environment: the environment that `sam local invoke` passes to functions.
RESOLVE = """
import json, sys, tomllib
from samcli.cli.types import CfnParameterOverridesType
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
from samcli.local.lambdafn.env_vars import EnvironmentVariables

config = tomllib.load(open(sys.argv[1], "rb"))["default"][sys.argv[2]]["parameters"]
overrides = CfnParameterOverridesType().convert(config["parameter_overrides"], None, None)
stacks, _ = SamLocalStackProvider.get_stacks(
    config["template_file"], parameter_overrides=overrides
)
overriding = json.load(open(config["env_vars"]))
found = {}
for function in SamFunctionProvider(stacks).get_all():
    variables = (function.environment or {}).get("Variables")
    resolved = EnvironmentVariables(
        function.name, function.memory, function.timeout, function.handler,
        variables=variables, shell_env_values={}, override_values=overriding.get(function.name),
    ).resolve()
    found[function.name] = {
        "before": variables, "after": {k: v for k, v in resolved.items() if k in variables}
    }
print(json.dumps(found))
"""


def resolve(stack: Stack, section: str) -> dict[str, Any]:
    config = sam_local.write_files(stack)
    command = [str(TOOLS / "python"), "-c", RESOLVE, str(config), section]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    document = json.loads(completed.stdout.splitlines()[-1])
    assert isinstance(document, dict)
    return document


def test_sam_passes_each_function_the_environment_of_the_stack(stack: Stack) -> None:
    service = json.loads((stack.directory / "lambda.json").read_text())
    deployed = {item["logical_id"]: item["variables"] for item in service["functions"].values()}
    for section in ("local_invoke", "local_start_api"):
        result = resolve(stack, section)
        assert set(result) == set(deployed)
        for name, variables in deployed.items():
            expected = {**variables, "AWS_ENDPOINT_URL": stack.aws_endpoint_url}
            assert result[name]["after"] == expected
            assert result[name]["before"]["PLAZA_ENVIRONMENT"] == "local"  # from the parameters
            assert result[name]["before"]["PLAZA_REDIS_URL"] == stack.redis_url


# ---------------------------------------------------------------- in containers

needs_docker = pytest.mark.skipif(
    os.environ.get("PLAZA_TEST_DOCKER") != "1",
    reason="PLAZA_TEST_DOCKER=1 runs it, with Docker and images of AWS (nightly)",
)
IMAGE_S = 600  # the first run downloads the image of the runtime


@needs_docker
def test_sam_local_invoke_answers_as_the_stack_does(stack: Stack) -> None:
    event = ROOT / "events" / "recommendations.list_ranked_posts.json"
    config = sam_local.write_files(stack)
    completed = subprocess.run(
        [
            *(TOOLS / "sam", "local", "invoke", "RecommendationsApi"),
            *("--event", event, "--config-file", config),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=IMAGE_S,
    )
    assert completed.returncode == 0, completed.stderr
    document = json.loads(completed.stdout.splitlines()[-1])
    expected = stack.invoke("RecommendationsApi", json.loads(event.read_text()))
    assert document["statusCode"] == expected["statusCode"] == 200
    assert json.loads(document["body"]).keys() == json.loads(expected["body"]).keys()


@needs_docker
def test_sam_local_start_api_serves_the_routes(stack: Stack, tmp_path: Path) -> None:
    config = sam_local.write_files(stack)
    port = free_port()
    process = start_process(
        "sam",
        [TOOLS / "sam", "local", "start-api", "--config-file", config, "--port", str(port)],
        log=tmp_path / "sam.log",
        cwd=tmp_path,
        attached=True,
        env=dict(os.environ),
    )

    def is_served() -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{port}/health", timeout=60) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    try:
        wait_until(lambda: is_served() or process.find() is None, IMAGE_S)
        assert is_served(), (tmp_path / "sam.log").read_text()
        with urlopen(f"http://127.0.0.1:{port}/posts/ranking", timeout=60) as response:
            assert "items" in json.load(response)
    finally:
        stop_process(process)
