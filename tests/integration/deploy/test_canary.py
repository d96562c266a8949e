"""The canary: what it checks, reports and renews, with an API and a Secrets Manager as stubs."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar

import pytest
from botocore.exceptions import ClientError

from cli.paths import CONTRACT, ROOT
from tests.support.http_servers import Quiet, serving

CANARY = runpy.run_path(str(ROOT / "deploy" / "canary" / "app.py"))
run, CanaryError = CANARY["run"], CANARY["CanaryError"]
CONTRACTED = json.loads(CONTRACT.read_text())
Answers = dict[str, tuple[int, object]]


def example_of(path: str, method: str) -> dict[str, Any]:
    """Return the example of an answer in the contract."""
    answer = CONTRACTED["paths"][path][method]["responses"]["200"]["content"]["application/json"]
    return dict(answer["example"])


class Store:
    """Secrets Manager with one secret. ``rotated``: how often another one was asked for."""

    def __init__(self, text: str, *, busy: bool = False) -> None:
        self.rotated = 0
        self._text = text
        self._busy = busy

    def get_secret_value(self, **arguments: str) -> dict[str, str]:
        assert arguments == {"SecretId": "arn:secret"}
        return {"SecretString": self._text}

    def rotate_secret(self, **arguments: str) -> None:
        assert arguments == {"SecretId": "arn:secret"}
        if self._busy:
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "RotateSecret")
        self.rotated += 1


class Api(Quiet, BaseHTTPRequestHandler):
    """Answers as an API with one post does, unless ``answers`` has the method."""

    answers: ClassVar[Answers] = {}
    requests: ClassVar[list[str]] = []
    liked: ClassVar[bool] = False

    def do_OPTIONS(self) -> None:
        self._answer(204, None)

    def do_GET(self) -> None:
        self._answer(200, example_of("/posts/{post_id}", "get") | {"mine": {"liked": Api.liked}})

    def do_PUT(self) -> None:
        Api.liked = True
        self._answer(200, example_of("/posts/{post_id}/likes/me", "put"))

    def do_DELETE(self) -> None:
        Api.liked = False
        self._answer(200, example_of("/posts/{post_id}/likes/me", "delete"))

    def _answer(self, status: int, body: object) -> None:
        Api.requests.append(f"{self.command} {self.path} {self.headers.get('authorization', '-')}")
        status, body = Api.answers.get(self.command, (status, body))
        self.send_response(status)
        self.end_headers()
        if body is not None:
            self.wfile.write(json.dumps(body).encode())


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server on this machine."""
    with serving(Api) as url:
        yield url


Reported = list[Mapping[str, Any]]


@pytest.fixture
def play(url: str) -> Callable[..., Reported]:
    """``play(store, answers)`` runs once; returns fields and metrics that were reported."""

    def once(store: Store, answers: Answers | None = None, fails: str = "") -> Reported:
        Api.answers, Api.liked = answers or {}, False
        Api.requests.clear()
        reported: Reported = []

        def report(fields: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
            reported.append({**fields, **metrics})

        if not fails:
            run(url, store, "arn:secret", report)
            return reported
        with pytest.raises(CanaryError, match=fails):
            run(url, store, "arn:secret", report)
        return reported

    return once


CREDENTIALS = json.dumps({"token": "secret-token", "post_id": "12"})


def test_a_healthy_api_is_a_success(play: Callable[..., Reported]) -> None:
    store = Store(CREDENTIALS)
    [line] = play(store)
    assert (line["event"], line["canary_succeeded"]) == ("canary_succeeded", 1)
    assert line["canary_ms"] >= 0
    assert Api.requests == [
        "OPTIONS /posts/12/likes/me -",
        "PUT /posts/12/likes/me Bearer secret-token",
        "GET /posts/12 Bearer secret-token",
        "DELETE /posts/12/likes/me Bearer secret-token",
    ]
    assert store.rotated == 0


def test_without_a_post_the_profile_is_read(play: Callable[..., Reported]) -> None:
    [line] = play(Store(json.dumps({"token": "secret-token", "post_id": ""})))
    assert line["canary_succeeded"] == 1
    assert Api.requests == ["OPTIONS /users/me -", "GET /users/me Bearer secret-token"]


@pytest.mark.parametrize(
    ("method", "answer", "fails"),
    [
        ("OPTIONS", (403, None), "OPTIONS .*: 403"),
        ("PUT", (503, {}), "PUT .*: 503"),
        ("PUT", (200, {"liked": False}), "a like is answered"),
        ("PUT", (200, {}), "a like is answered"),
        ("GET", (200, {}), "a like is not read"),
        ("GET", (200, {"mine": {"liked": False}}), "a like is not read"),
        ("DELETE", (200, {"liked": True}), "an unlike is answered"),
    ],
)
def test_each_step_can_fail(
    play: Callable[..., Reported], method: str, answer: tuple[int, object], fails: str
) -> None:
    store = Store(CREDENTIALS)
    [line] = play(store, {method: answer}, fails)
    assert line["canary_failed"] == 1
    assert "canary_succeeded" not in line
    assert "secret-token" not in json.dumps(line)
    assert store.rotated == 0


@pytest.mark.parametrize(("method", "status"), [("PUT", 401), ("PUT", 404), ("PUT", 410)])
def test_a_lost_session_or_post_is_renewed(
    play: Callable[..., Reported], method: str, status: int
) -> None:
    store = Store(CREDENTIALS)
    play(store, {method: (status, {})}, str(status))
    assert store.rotated == 1


def test_an_empty_secret_is_renewed(play: Callable[..., Reported]) -> None:
    store = Store("{}")
    play(store, fails="no session yet")
    assert store.rotated == 1
    assert Api.requests == []


def test_a_renewal_that_runs_already_is_awaited(
    play: Callable[..., Reported], capsys: pytest.CaptureFixture[str]
) -> None:
    play(Store(CREDENTIALS, busy=True), {"PUT": (401, {})}, "401")
    assert "renewal_refused" in capsys.readouterr().out


def test_no_answer_fails() -> None:
    with pytest.raises(CanaryError, match="no answer"):
        run("http://127.0.0.1:1", Store(CREDENTIALS), "arn:secret", lambda *_: None)


def test_a_line_is_a_metric_of_cloudwatch(capsys: pytest.CaptureFixture[str], url: str) -> None:
    Api.answers, Api.liked = {}, False
    run(url, Store(CREDENTIALS), "arn:secret")
    line = json.loads(capsys.readouterr().out)
    [directive] = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Plaza", [["function"]])
    assert [metric["Name"] for metric in directive["Metrics"]] == ["canary_succeeded", "canary_ms"]
    assert line["canary_succeeded"] == 1
    at = datetime.fromtimestamp(line["_aws"]["Timestamp"] / 1000, UTC)
    assert abs(at - datetime.now(UTC)) < timedelta(minutes=1)


def test_without_tls_there_is_no_certificate() -> None:
    assert CANARY["read_certificate_days"]("http://127.0.0.1:1") is None
    with pytest.raises(CanaryError, match="no valid certificate"):
        CANARY["read_certificate_days"]("https://127.0.0.1:1")
