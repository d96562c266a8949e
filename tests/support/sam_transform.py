"""The transform of SAM: a template on standard input, the processed template on standard output.

It runs in the environment of the tools, which has SAM. The policy tests call it.
Code is somewhere in S3, as after ``sam package``.
"""

# mypy: ignore-errors
import json
import logging
import os
import sys

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform

CODE = "s3://artifacts/code"
MANAGED = (
    "AWSLambdaBasicExecutionRole",
    "AWSLambdaVPCAccessExecutionRole",
    "AWSLambdaSQSQueueExecutionRole",
)


class ManagedPolicies:
    """The ARNs of the policies that AWS manages, without a call to AWS."""

    def load(self) -> dict[str, str]:
        """Return name -> ARN."""
        return {name: f"arn:aws:iam::aws:policy/service-role/{name}" for name in MANAGED}


def main() -> None:
    """Transform one template."""
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    logging.getLogger("samtranslator.feature_toggle").setLevel(logging.CRITICAL)
    template = yaml_parse(sys.stdin.read())
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        for name in {"CodeUri", "ContentUri"} & properties.keys():
            properties[name] = CODE
    parameters = {
        name: parameter.get("Default", f"/plaza/staging/{name}")
        for name, parameter in template["Parameters"].items()
    }
    json.dump(transform(template, parameters, ManagedPolicies()), sys.stdout)


if __name__ == "__main__":
    main()
