"""The files of ``python -m local sam`` give SAM the environment of the deployed functions."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from local.paths import TOOLS
from local.stack import sam_local
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
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_sam_passes_each_function_the_environment_of_the_stack(stack: Stack) -> None:
    service = json.loads((stack.directory / "lambda.json").read_text())
    deployed = {one["logical_id"]: one["variables"] for one in service["functions"].values()}
    for section in ("local_invoke", "local_start_api"):
        found = resolve(stack, section)
        assert set(found) == set(deployed)
        for name, variables in deployed.items():
            expected = {**variables, "AWS_ENDPOINT_URL": stack.aws_endpoint_url}
            assert found[name]["after"] == expected
            assert found[name]["before"]["PLAZA_ENVIRONMENT"] == "local"  # from the parameters
            assert found[name]["before"]["PLAZA_REDIS_URL"] == stack.redis_url
