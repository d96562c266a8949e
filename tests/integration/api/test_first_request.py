"""What the first request of a fresh process imports, with logins for both stores."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.first_request import import_path, run_first_request, with_logins
from cli.paths import LAYER, ROOT
from local.stack.bed import FAKE_AWS, serve_module
from local.stack.deployment import list_queues
from local.stack.functions import make_api_event
from local.stack.ports import free_port
from plaza.core.reactions import Target
from plaza.people.auth import new_session
from tests.support.plaza import World

# Powertools imports the bare package botocore, 0.3 ms, to name itself in user agents.
WATCHED = ("boto3", "botocore.", "pydantic", "pymysql.connections", "redis.client")


def test_a_like_that_reads_its_logins_imports_neither_botocore_nor_pydantic(
    plaza: World, redis_url: str, mysql_url: str, tmp_path: Path
) -> None:
    plaza.add(Target("post", 11))
    [token] = new_session.open_sessions([7])
    event = make_api_event("PUT /posts/{post_id}/likes/me", 7, post_id=11)
    event["headers"]["authorization"] = f"Bearer {token}"
    function = ROOT / "functions" / "api" / "reactions"
    port = free_port()
    with serve_module(tmp_path, port, FAKE_AWS, str(port)):
        url = f"http://127.0.0.1:{port}"
        env = with_logins(os.environ, redis_url, mysql_url, url) | {
            "AWS_ENDPOINT_URL_SQS": url,
            **list_queues({"reactions": f"{url}/000000000000/reactions"}),
            **import_path(LAYER, function),
        }
        first = run_first_request(Path(sys.executable), env, event, WATCHED)
    assert first.answer["statusCode"] == 200, first.answer
    assert first.loaded == ["pymysql.connections", "redis.client"]
