"""A new version is tried before it gets traffic, with CodeDeploy and Lambda as stubs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.stack.functions import CONTEXT, load_function
from plaza.infra.aws.deployment_hook import hook_settings, make_request, smoke_version
from plaza.infra.http.callers import Caller
from plaza.infra.runtime.process import reset_process
from tools.template.routes import choose_requests, read_operations

EVENT = {"DeploymentId": "d-1A2B3C4D5", "LifecycleEventHookExecutionId": "hook-1"}
NAME = "plaza-staging-FeedApi-1A2B3C4D5E6F"


class CodeDeploy:
    """One deployment, of version 7 of a function. ``reported``: the status of the hook."""

    def __init__(self, name: str = NAME) -> None:
        self.reported: dict[str, str] = {}
        self._name = name

    def list_deployment_targets(self, **_: str) -> dict[str, Any]:
        return {"targetIds": [f"{self._name}:live"]}

    def batch_get_deployment_targets(self, **_: object) -> dict[str, Any]:
        info = {"functionName": self._name, "currentVersion": "6", "targetVersion": "7"}
        return {"deploymentTargets": [{"lambdaTarget": {"lambdaFunctionInfo": info}}]}

    def put_lifecycle_event_hook_execution_status(self, **reported: str) -> None:
        self.reported = reported


class Lambda:
    """Invocations of versions, each answered alike."""

    def __init__(self, answer: object, error: str = "") -> None:
        self.invoked: list[tuple[str, str, str]] = []
        self._answer = answer
        self._error = error

    def invoke(self, **arguments: str) -> dict[str, Any]:
        request = json.loads(arguments["Payload"])["routeKey"]
        self.invoked.append((arguments["FunctionName"], arguments["Qualifier"], request))
        reply: dict[str, Any] = {"Payload": io.BytesIO(json.dumps(self._answer).encode())}
        return reply | ({"FunctionError": self._error} if self._error else {})


@pytest.fixture(autouse=True)
def _requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PLAZA_SMOKE_REQUESTS", "FeedApi=GET /feed,AuthApi=DELETE /auth/sessions")
    hook_settings.cache_clear()
    yield
    hook_settings.cache_clear()


@pytest.mark.parametrize("status", [200, 401, 404])
def test_a_version_that_answers_gets_traffic(status: int) -> None:
    codedeploy, lambdas = CodeDeploy(), Lambda({"statusCode": status})
    assert smoke_version(EVENT, codedeploy, lambdas) == "Succeeded"
    assert lambdas.invoked == [(NAME, "7", "GET /feed")], "the new version, not the alias"
    assert codedeploy.reported == {
        "deploymentId": "d-1A2B3C4D5",
        "lifecycleEventHookExecutionId": "hook-1",
        "status": "Succeeded",
    }


@pytest.mark.parametrize(
    ("answer", "error", "name"),
    [
        ({"statusCode": 500}, "", NAME),
        ({"statusCode": 503}, "", NAME),
        ({"errorMessage": "No module named 'plaza.social.feed'"}, "Unhandled", NAME),
        ({"statusCode": 200}, "", "plaza-staging-OtherApi-1A2B3C4D5E6F"),
    ],
)
def test_a_version_that_fails_gets_none(
    answer: object, error: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    codedeploy = CodeDeploy(name)
    assert smoke_version(EVENT, codedeploy, Lambda(answer, error)) == "Failed"
    assert codedeploy.reported["status"] == "Failed"
    line = json.loads(capsys.readouterr().out)
    assert (line["event"], line["name"], line["version"]) == ("version_refused", name, "7")


def test_an_id_of_the_path_is_1() -> None:
    event = make_request("PUT /posts/{post_id}/likes/me")
    assert (event["routeKey"], event["rawPath"]) == (
        "PUT /posts/{post_id}/likes/me",
        "/posts/1/likes/me",
    )
    assert event["pathParameters"] == {"post_id": "1"}


@pytest.fixture
def anonymous(configured: None) -> Iterator[Callable[[str], Any]]:
    """``anonymous(folder)``: the handler of an API function whose callers have no session."""

    def load(folder: str) -> Any:
        module = load_function(f"api/{folder}")
        module.app.identify = lambda *_: Caller()
        return module.handler

    yield load
    reset_process()


def test_each_function_has_a_request_that_changes_nothing() -> None:
    requests = choose_requests(read_operations())
    for operation in read_operations():
        if requests[operation.function] == f"{operation.method} {operation.path}":
            needs_session = bool(operation.security) and {} not in operation.security
            assert (
                operation.method == "GET" or needs_session or operation.path == "/reactions/query"
            )


def test_the_request_of_a_function_reaches_its_route(anonymous: Callable[[str], Any]) -> None:
    answer = anonymous("feed")(make_request("GET /feed"), CONTEXT)
    assert answer["statusCode"] == 401
    answer = anonymous("reactions")(make_request("POST /reactions/query"), CONTEXT)
    assert answer["statusCode"] in (400, 415)
