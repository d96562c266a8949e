"""Likes, reads and unlikes a post of its own through the public name, as a browser does.

EventBridge Scheduler invokes it each minute. It is outside of the VPC and has no layer. Its secret
is ``{"token", "post_id"}``; when the API refuses the session or lacks the post, it asks Secrets
Manager for others, and the next run uses them. Of an application without posts the id is empty; it
reads its profile there.
"""

import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from botocore.exceptions import ClientError

TIMEOUT_S = 5
ORIGIN = "https://canary.example"
RENEWABLE = {401, 404, 410}
"""Statuses that say that the session or the post is gone."""

Report = Callable[[Mapping[str, Any], Mapping[str, float]], None]


class CanaryError(Exception):
    """A step was answered wrongly or not at all; the text says how. ``status``: of the answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def handler(event: object, context: object) -> None:  # noqa: ARG001 - Lambda passes them
    """Run once. Raises CanaryError."""
    import boto3  # of the runtime

    run(os.environ["PUBLIC_URL"], boto3.client("secretsmanager"), os.environ["SECRET_ID"])


def run(url: str, store: Any, secret_id: str, report: Report | None = None) -> None:
    """Check ``url`` with the session in a secret, and report the metrics. Raises CanaryError."""
    report = report or _write_line
    credentials = json.loads(store.get_secret_value(SecretId=secret_id)["SecretString"])
    began_s = time.monotonic()
    try:
        if not credentials.get("token"):
            raise CanaryError("the secret has no session yet", 401)
        check(url, credentials["token"], credentials["post_id"])
    except CanaryError as error:
        report({"event": "canary_failed", "error": str(error)}, {"canary_failed": 1})
        if error.status in RENEWABLE:
            _renew(store, secret_id)
        raise
    duration_ms = round((time.monotonic() - began_s) * 1000)
    metrics: dict[str, float] = {"canary_succeeded": 1, "canary_ms": duration_ms}
    if (days := read_certificate_days(url)) is not None:
        metrics["certificate_days"] = days
    report({"event": "canary_succeeded"}, metrics)


def check(url: str, token: str, post_id: str) -> None:
    """Send a preflight, like a post, read the like, and take it back; without a post read the
    profile. Raises CanaryError."""
    post = f"/posts/{post_id}"
    path = f"{post}/likes/me" if post_id else "/users/me"
    preflight = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "authorization",
    }
    _call(url, "OPTIONS", path, preflight, {200, 204})
    session = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    if not post_id:
        _call(url, "GET", path, session, {200})
        return
    body = _call(url, "PUT", path, session, {200, 202})
    _require(body.get("liked") is True, f"a like is answered {body}")
    body = _call(url, "GET", post, session, {200})
    mine = body.get("mine") or {}
    _require(mine.get("liked") is True, f"a like is not read: {mine}")
    body = _call(url, "DELETE", path, session, {200, 202})
    _require(body.get("liked") is False, f"an unlike is answered {body}")


def read_certificate_days(url: str) -> float | None:
    """Return for how many days the certificate of ``url`` is valid; None without TLS. Raises
    CanaryError."""
    parts = urlsplit(url)
    if parts.scheme != "https":
        return None
    name = str(parts.hostname)
    try:
        with (
            socket.create_connection((name, parts.port or 443), TIMEOUT_S) as connection,
            ssl.create_default_context().wrap_socket(connection, server_hostname=name) as secured,
        ):
            certificate: Any = secured.getpeercert()
    except OSError as error:
        raise CanaryError(f"{name} has no valid certificate: {error}") from None
    return round((ssl.cert_time_to_seconds(certificate["notAfter"]) - time.time()) / 86400, 2)


def _call(
    url: str, method: str, path: str, headers: Mapping[str, str], statuses: set[int]
) -> dict[str, Any]:
    """Return the body of an answer. Raises CanaryError."""
    request = Request(  # noqa: S310 - the address is the deployment's
        url.rstrip("/") + path,
        method=method,
        headers={"User-Agent": "plaza-canary", **headers},
    )
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            status, text = response.status, response.read()
    except HTTPError as error:
        raise CanaryError(f"{method} {path}: {error.code}", error.code) from None
    except OSError as error:
        raise CanaryError(f"{method} {path}: no answer: {error}") from None
    _require(status in statuses, f"{method} {path}: {status}", status)
    try:
        body: dict[str, Any] = json.loads(text) if text else {}
    except ValueError:
        raise CanaryError(f"{method} {path}: no JSON") from None
    return body


def _require(holds: bool, text: str, status: int = 0) -> None:
    if not holds:
        raise CanaryError(text, status)


def _renew(store: Any, secret_id: str) -> None:
    """Ask for another session. A refusal is written: while one is being made it is right, for lack
    of a permission the alarm's runbook leads to the line."""
    try:
        store.rotate_secret(SecretId=secret_id)
    except ClientError as error:
        _write_line({"event": "renewal_refused", "error": str(error)}, {})


def _write_line(fields: Mapping[str, Any], metrics: Mapping[str, float]) -> None:
    """Write a line of the log; its metrics are CloudWatch's (Embedded Metric Format)."""
    function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "canary")
    line: dict[str, Any] = {"level": "INFO", "function": function, **fields, **metrics}
    if metrics:
        directive = {
            "Namespace": "Plaza",
            "Dimensions": [["function"]],
            "Metrics": [{"Name": name} for name in metrics],
        }
        line["_aws"] = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
    print(json.dumps(line))
