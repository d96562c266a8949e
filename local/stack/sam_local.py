"""``sam``: files to run ``sam local invoke`` and ``sam local start-api`` against this stack.

SAM resolves a Ref of a parameter without a value to its name, and a Ref of a queue to its logical
id. So the parameters and the variables of each function come from the deployed stack, and a copy of
the built template adds the endpoint of AWS, and what only a local stack has, to each function.
"""

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.paths import CommandError
from local.stack.deployment import LOCAL_VARIABLES, STACK_NAME
from local.stack.stack import Stack

TEMPLATE = "sam-local.yaml"
ENDPOINT = "AWS_ENDPOINT_URL"
PORT = 3000
_GLOBAL_VARIABLES = re.compile(r"^(Globals:\n(?:  .*\n)*?      Variables:\n)", re.MULTILINE)


def main(stack: Stack, args: argparse.Namespace) -> int:
    config = write_files(stack)
    events = stack.directory / "events"  # which `make events` writes
    if not events.is_dir():
        raise CommandError(
            "there are no events with tokens and ids of this stack; run `make events`"
        )
    sample = "reactions.like_post"
    for command in (f"invoke ReactionsApi -e {events / sample}.json", "start-api"):
        print(f"sam local {command} --config-file {config}")
    return 0


def write_files(stack: Stack) -> Path:
    """Write the SAM configuration, environment and template. Returns the configuration's path.

    They contain credentials of the stack's database: only their owner may read them. Raises
    CommandError.
    """
    folder = stack.directory / "sam-local"
    folder.mkdir(exist_ok=True)
    template = stack.directory / "build" / TEMPLATE  # beside the code that it refers to
    built = (stack.directory / "build" / "template.yaml").read_text()
    template.write_text(add_endpoint(built))
    environment = folder / "env.json"
    service = json.loads((stack.directory / "lambda.json").read_text())
    _write(environment, json.dumps(make_environment(service), indent=2) + "\n")
    parameters = {
        described["ParameterKey"]: described.get(
            "ResolvedValue", described.get("ParameterValue", "")
        )
        for described in stack.connect("cloudformation").describe_stacks(StackName=STACK_NAME)[
            "Stacks"
        ][0]["Parameters"]
    }
    config = folder / "samconfig.toml"
    _write(config, make_config(template, environment, parameters))
    return config


def add_endpoint(template: str) -> str:
    """Add the variables that only a local stack has to all functions of a template. Raises
    CommandError."""
    lines = "".join(f"        {name}: ''\n" for name in (ENDPOINT, *LOCAL_VARIABLES))
    added, count = _GLOBAL_VARIABLES.subn(lambda match: match[1] + lines, template, count=1)
    if count != 1:
        raise CommandError("the template has no variables in its Globals")
    return added


def make_environment(service: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return logical id -> variables, as ``sam local --env-vars`` reads them."""
    return {
        function["logical_id"]: {
            **function["variables"],
            ENDPOINT: service["aws"]["AWS_ENDPOINT_URL"],
        }
        for function in service["functions"].values()
    }


def make_config(template: Path, environment: Path, parameters: Mapping[str, str]) -> str:
    """Return the sections of ``sam local``; the container shares the network of this machine."""
    overrides = " ".join(f'{name}="{value}"' for name, value in sorted(parameters.items()) if value)
    common = {
        "template_file": str(template),
        "env_vars": str(environment),
        "parameter_overrides": overrides,
        "docker_network": "host",
        "skip_pull_image": False,
    }
    sections = {"local_invoke": common, "local_start_api": {**common, "port": PORT}}
    lines = ["version = 0.1"]
    for name, values in sections.items():
        lines += ["", f"[default.{name}.parameters]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
