"""The canary's secret: a session and a hidden post, with Secrets Manager of moto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import boto3
import pytest
from moto import mock_aws

from local.stack.functions import CONTEXT, load_function
from plaza.core.reactions import Target
from plaza.core.targets import TargetHidden
from plaza.infra.aws import secrets
from plaza.infra.mysql import mysql
from plaza.infra.runtime.errors import BadInput
from plaza.operate.accounts import canary
from plaza.operate.accounts.canary import PHONE, make_credentials
from plaza.people.auth.phones import parse_phone
from plaza.people.auth.session_lookup import find_session
from plaza.social.content import commands, queries
from tests.support.plaza import World

STEPS = ("createSecret", "setSecret", "testSecret", "finishSecret")


@pytest.fixture
def secret(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, str]]:
    """Secrets Manager, and the secret as a deploy creates it."""
    with mock_aws():
        store = boto3.client("secretsmanager", region_name="eu-central-1")
        monkeypatch.setattr(secrets, "connect", lambda: store)
        yield store, store.create_secret(Name="canary", SecretString="{}")["ARN"]


def renew(store: Any, arn: str) -> dict[str, str]:
    """Rotate as Secrets Manager does, each step twice; return the new secret."""
    handler, version = load_function("ops/renew_canary").handler, str(uuid4())
    for step in STEPS:
        for _ in range(2):
            handler({"SecretId": arn, "ClientRequestToken": version, "Step": step}, CONTEXT)
    stored = store.get_secret_value(SecretId=arn, VersionStage="AWSCURRENT")["SecretString"]
    credentials: dict[str, str] = json.loads(stored)
    return credentials


def count_sessions() -> int:
    [(number,)] = mysql.fetch_all(
        "SELECT COUNT(*) FROM session JOIN user_phone USING (user_id) WHERE phone = %s", (PHONE,)
    )
    return int(number)


def read_author(post_id: str) -> int:
    [(author_id,)] = mysql.fetch_all(
        "SELECT author_id FROM content WHERE content_type = 'post' AND content_id = %s", (post_id,)
    )
    return int(author_id)


def test_a_new_session_has_the_same_user_and_post(secret: tuple[Any, str]) -> None:
    first, second = renew(*secret), renew(*secret)
    assert first["token"] != second["token"]
    assert first["post_id"] == second["post_id"]
    assert count_sessions() == 2, "the one before ends by itself; a repeated step opens none"


def test_the_post_is_hidden_from_all_but_the_canary(secret: tuple[Any, str]) -> None:
    post = Target("post", int(renew(*secret)["post_id"]))
    with pytest.raises(TargetHidden):
        queries.read(post, reader_id=None)
    assert queries.read(post, reader_id=read_author(str(post.id))).hidden


def test_a_deleted_post_is_replaced(secret: tuple[Any, str]) -> None:
    first = renew(*secret)
    commands.delete(Target("post", int(first["post_id"])), read_author(first["post_id"]))
    assert renew(*secret)["post_id"] != first["post_id"]


def test_a_deployment_without_posts_has_a_session_for_the_canary(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary, "offers", lambda relation: iter(()))
    made = json.loads(make_credentials("{}"))
    assert made["post_id"] == ""
    assert find_session(made["token"]) is not None


def test_no_code_signs_the_canary_in() -> None:
    with pytest.raises(BadInput):
        parse_phone(PHONE)


def test_a_post_of_a_lost_database_is_replaced(plaza: World) -> None:
    made = json.loads(make_credentials(json.dumps({"token": "old", "post_id": "99"})))
    assert made["post_id"] != "99"
