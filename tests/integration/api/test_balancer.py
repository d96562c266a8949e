"""The same requests by API Gateway and by a load balancer, to the same functions and stores."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cli.paths import ROOT
from local.stack.gateway import Request
from plaza.core.reactions import Target
from plaza.infra.runtime.process import reset_process
from tests.support.balancer import make_balancer_event
from tests.support.functions import handler
from tests.support.plaza import World
from tests.support.stores import POST
from tests.unit.policy import template
from tests.unit.policy.template import FUNCTION, resources

FOLDERS = {
    template.folder_of(name).name
    for name, function in resources(FUNCTION).items()
    if "AutoPublishAlias" in function
}
SAMPLES = sorted(
    file.stem for file in (ROOT / "events").glob("*.json") if file.name.partition(".")[0] in FOLDERS
)
CHANGING = {"x-request-id", "etag", "content-length"}


@pytest.fixture
def content(plaza: World, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("PLAZA_ALLOWED_ORIGINS", "https://app.example")
    reset_process()
    plaza.add(POST, Target("comment", 21))
    return plaza


def ask(sample: str, event: dict[str, Any]) -> tuple[int, str, dict[str, str]]:
    """The answer, without what differs from one to the next: numbers, cursors, secrets."""
    response = handler(f"api/{sample.partition('.')[0]}")(event, None)
    several = response.get("multiValueHeaders")
    headers = {n: v for n, [v] in several.items()} if several else response["headers"]
    secretless = re.sub(r'"[\w.-]{30,}"|(?<="next":)"[^"]+"', '"secret"', response["body"])
    body = re.sub(r"\d+", "#", secretless)
    kept = {name: re.sub(r"\d+", "#", value) for name, value in headers.items()}
    return response["statusCode"], body, {n: v for n, v in kept.items() if n not in CHANGING}


def of_balancer(event: dict[str, Any]) -> dict[str, Any]:
    http = event["requestContext"]["http"]
    headers = {k: v for k, v in event["headers"].items() if not k.startswith("x-forwarded")}
    target = "?".join(filter(None, (event["rawPath"], event["rawQueryString"])))
    body = (event.get("body") or "").encode()
    request = Request(http["method"], target, headers, (), body, http["sourceIp"])
    return make_balancer_event(request)


def test_each_sample_request_gets_the_same_answer(content: World) -> None:
    """Sent twice by API Gateway first, so that the third answer differs by its form only."""
    differing = {}
    statuses = set()
    for sample in SAMPLES:
        event = json.loads((ROOT / "events" / f"{sample}.json").read_text())
        ask(sample, event)
        expected, result = ask(sample, event), ask(sample, of_balancer(event))
        statuses.add(result[0])
        if result != expected:
            differing[sample] = (expected, result)
    assert differing == {}
    assert len(SAMPLES) > 60
    assert {200, 201, 202, 204, 400, 401, 403, 404, 405} <= statuses
