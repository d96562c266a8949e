"""Runs a command of an operator in an environment: it invokes the function Operate.

  python -m deploy operate staging set-role user_id=7 role=admin

It needs the policy of the output OperatorPolicyArn, and no other way into the environment. The line
that the function logs has the caller's ARN, as this program sends it; AWS's own record of who
invoked the function is CloudTrail's.
"""

import argparse
import json
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.config import Config

from cli.operator_commands import make_event, run_operator_command
from deploy.account import Account
from deploy.deploy import read_settings
from deploy.parts import APPLICATION, DeployError, read_pairs

MAX_RUN_S = 130  # the function ends after 120 s


class Operator:
    """Runs commands in one environment, as the caller of the shell's AWS settings."""

    def __init__(self, environment: str) -> None:
        account = Account(read_settings(environment).region)
        stack = account.describe(APPLICATION, environment)
        self._function = read_pairs(stack, "Output").get("OperateFunction", "")
        if not self._function:
            raise DeployError(f"there is no environment {environment} with the function Operate")
        self._lambda: Any = boto3.client(
            "lambda",
            region_name=account.region,
            config=Config(read_timeout=MAX_RUN_S, retries={"total_max_attempts": 1}),
        )
        self.caller = str(
            boto3.client("sts", region_name=account.region).get_caller_identity()["Arn"]
        )

    def invoke(self, event: Mapping[str, Any]) -> Any:
        """Invoke the function; return its result. Raises DeployError with its error."""
        reply = self._lambda.invoke(FunctionName=self._function, Payload=json.dumps(event).encode())
        result = json.loads(reply["Payload"].read())
        if "FunctionError" in reply:
            raise DeployError(f"{event['command']}: {result.get('errorMessage', result)}")
        return result

    def run(self, command: str, **arguments: str) -> Any:
        """Run a command once; return its result. Raises DeployError."""
        return self.invoke(make_event(command, arguments, self.caller))


def main(args: argparse.Namespace) -> int:
    """Run the command of the command. Raises DeployError."""
    operator = Operator(args.environment)
    return run_operator_command(operator.invoke, operator.caller, args)
