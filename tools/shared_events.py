"""Puts the sample events as shareable test events of an environment's functions.

  PLAZA_SMOKE_TOKEN=... PLAZA_USER_TOKEN=... python -m tools shared-events staging ["reactions.*"]

The Lambda console and ``sam remote invoke --test-event-name`` then have them, by their case. The
first token belongs to an admin, the second one to a user; what the samples are about is
created with them. All who may read the account's schemas can read the tokens. The pattern
limits what is put. With ``--clean`` and no token, the dead letters of invoked samples are deleted.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3

from cli.paths import ROOT, TOOLS, CommandError
from deploy.deploy import read_settings
from deploy.parts import APPLICATION, DeployError
from deploy.smoke import url_of
from local.load.crowd import send_once
from local.load.requests import Call
from tools import samples

_MAY_PUSH_NOTHING = "an environment without PushPublicKey pushes nothing"
_ENDS_SESSION = "it would end the session of the other events"
_NEEDS_DEVICE = "a device signs it"
_FRESH = "it needs a sign-in of the last five minutes"
_SENDS_CODE = "it needs a code that is sent to a phone"


class RemoteCallers(samples.Callers):
    """An admin and a user of an environment, by their tokens."""

    unavailable: Mapping[str, str] = {
        "auth.send_code": _SENDS_CODE,
        "auth.create_session": _SENDS_CODE,
        "auth.create_session_with_token": "its issuer signs the token",
        "auth.link_phone": _SENDS_CODE,
        "auth.create_passkey": _NEEDS_DEVICE,
        "auth.create_passkey_challenge": "the environment may have no ConsoleOrigin",
        "auth.create_session_with_passkey": _NEEDS_DEVICE,
        "auth.delete_passkey": _FRESH,
        "auth.delete_phone": _FRESH,
        "users.delete_user": _FRESH,
        "accounts.get_user_export": _FRESH,
        "auth.delete_current_session": _ENDS_SESSION,
        "auth.delete_sessions": _ENDS_SESSION,
        "renew_canary.create": "it would begin a rotation",
        "rotate_secret.create": "it would begin a rotation",
        "smoke_version.deployment": "a deployment of CodeDeploy has its id",
        "notifications.create_push_subscription": _MAY_PUSH_NOTHING,
        "users.delete_my_account": _ENDS_SESSION,
        "notifications.delete_push_subscription": _MAY_PUSH_NOTHING,
        "users.delete_user_sessions": _ENDS_SESSION,
    }

    def __init__(self, base_url: str, admin_token: str, user_token: str) -> None:
        self.base_url = base_url.rstrip("/")
        self._admin = self._read_user(admin_token)
        self._user = self._read_user(user_token)

    def find_user(self, sample_id: int) -> tuple[int, str]:
        """Return the user for the samples' caller, the admin for all others."""
        return self._user if sample_id == samples.USER else self._admin

    def _read_user(self, token: str) -> tuple[int, str]:
        answer = send_once(self.base_url, token, Call("GET", "/users/me"))
        if answer.status != 200:
            raise CommandError(f"GET /users/me answers {answer}")
        return int(answer.body["id"]), token


def put(name: str, file: Path, environment: str, region: str) -> None:
    """Put one event, in place of an earlier one of the same name. Raises DeployError."""
    command: list[str | Path] = [
        TOOLS / "sam", "remote", "test-event", "put", samples.function_of(name),
        "--stack-name", APPLICATION.stack_name(environment, region), "--region", region,
        "--name", name.partition(".")[2], "--file", file, "--force",
    ]  # fmt: skip
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise DeployError(f"{name} was not put")


def find_dead_letter_queues(stack_name: str, region: str) -> list[str]:
    """Return the URLs of all DLQs of an application."""
    formation: Any = boto3.client("cloudformation", region_name=region)
    pages = formation.get_paginator("list_stack_resources").paginate(StackName=stack_name)
    return [
        resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
        if resource["ResourceType"] == "AWS::SQS::Queue"
        and resource["LogicalResourceId"].endswith("Dlq")
    ]


def clean(stack_name: str, region: str) -> int:
    """Delete the dead letters of samples; return their number."""
    sqs = boto3.client("sqs", region_name=region)
    return samples.delete_dead_letters(sqs, find_dead_letter_queues(stack_name, region))


def main(args: argparse.Namespace) -> int:
    """Put the events, or delete dead letters. Raises CommandError."""
    tokens = [os.environ.get(name, "") for name in ("PLAZA_SMOKE_TOKEN", "PLAZA_USER_TOKEN")]
    if not (args.clean or all(tokens)):
        raise CommandError("set PLAZA_SMOKE_TOKEN and PLAZA_USER_TOKEN (events/README.md)")
    region = read_settings(args.environment).region
    if args.clean:
        deleted = clean(APPLICATION.stack_name(args.environment, region), region)
        print(f"{deleted} dead letters deleted")
        return 0
    callers = RemoteCallers(url_of(args.environment), *tokens)
    with tempfile.TemporaryDirectory() as directory:
        samples.write(Path(directory), callers, args.pattern)
        for file in sorted(Path(directory).glob("*.json")):
            put(file.stem, file, args.environment, region)
    return 0
