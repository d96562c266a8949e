"""Rotates the password of Plaza's user at ElastiCache. Secrets Manager invokes it, step by step.

A user has two passwords: a new one is added beside the current one before it becomes current, so
functions that read the secret earlier go on. The function has no layer and needs no network.
"""

import json
import os
import secrets
import time
from typing import Any

import boto3

ACTIVE_S = 240  # deadline; ElastiCache takes seconds to change a user


def handler(event: dict[str, Any], context: object) -> None:  # noqa: ARG001 - Lambda passes it
    """Take one step of the rotation. Each may be repeated."""
    rotate(event, boto3.client("secretsmanager"), boto3.client("elasticache"))


def rotate(event: dict[str, Any], store: Any, elasticache: Any) -> None:
    secret_id, version, step = event["SecretId"], event["ClientRequestToken"], event["Step"]
    stages = store.describe_secret(SecretId=secret_id)["VersionIdsToStages"]
    [current] = [id_ for id_, names in stages.items() if "AWSCURRENT" in names]
    if current == version:
        return

    def read(id_: str) -> Any:
        return json.loads(store.get_secret_value(SecretId=secret_id, VersionId=id_)["SecretString"])

    if step == "createSecret":
        try:
            read(version)
        except store.exceptions.ResourceNotFoundException:
            store.put_secret_value(
                SecretId=secret_id,
                ClientRequestToken=version,
                SecretString=json.dumps(read(current) | {"password": secrets.token_hex(32)}),
                VersionStages=["AWSPENDING"],
            )
    elif step == "setSecret":
        passwords = [read(id_)["password"] for id_ in (version, current)]
        _wait_until_active(elasticache)
        elasticache.modify_user(UserId=os.environ["USER_ID"], Passwords=passwords)
    elif step == "testSecret":
        _wait_until_active(elasticache)
    elif step == "finishSecret":
        store.update_secret_version_stage(
            SecretId=secret_id,
            VersionStage="AWSCURRENT",
            MoveToVersionId=version,
            RemoveFromVersionId=current,
        )


def _wait_until_active(elasticache: Any) -> None:
    """Wait for the last change of the user. Raises TimeoutError."""
    end_s = time.monotonic() + ACTIVE_S
    while time.monotonic() < end_s:
        [user] = elasticache.describe_users(UserId=os.environ["USER_ID"])["Users"]
        if user["Status"] == "active":
            return
        time.sleep(2)
    raise TimeoutError(f"the user is {user['Status']}")
