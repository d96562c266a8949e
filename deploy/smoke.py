"""Checks a deployed environment as a client does: preflight, headers, like, feed, order, audit.

  python -m deploy smoke staging
  PLAZA_SMOKE_TOKEN=... python -m deploy smoke --url http://127.0.0.1:8000

It needs an admin, who offers a voucher and starts a reconciliation, which is the audit: the command
open-smoke-session of the environment creates one, or PLAZA_SMOKE_TOKEN is the token of one. What
the check creates, it deletes. Exits 1 at the first answer that is wrong.
"""

import argparse
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from cli.paths import CommandError
from deploy.account import Account, explain_aws_errors
from deploy.deploy import read_settings
from deploy.operate import Operator
from deploy.parts import APPLICATION, BALANCER, EDGE, DeployError, read_pairs

T = TypeVar("T")

TIMEOUT_S = 10
ORDER_S, AUDIT_S = 60, 600  # deadlines; both take seconds with an idle queue
ORIGIN = "https://smoke.example"


class SmokeError(CommandError):
    """The environment answered wrongly; the text says what."""


class Client:
    """A client of one environment with one session."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._token = token

    def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Return status, decoded body and headers. Raises SmokeError without an answer."""
        request = Request(  # noqa: S310 - the address is the operator's
            self._url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers=headers
            or {"authorization": f"Bearer {self._token}", "content-type": "application/json"},
        )
        try:
            with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
                return response.status, _decode(response.read()), dict(response.headers)
        except HTTPError as error:
            return error.code, _decode(error.read()), dict(error.headers)
        except (URLError, TimeoutError) as error:
            raise SmokeError(f"{method} {path}: no answer: {error}") from None

    def expect(self, method: str, path: str, statuses: set[int], body: object = None) -> Any:
        """Return the body of an answer. Raises SmokeError for another status."""
        status, reached, _ = self.call(method, path, body)
        if status not in statuses:
            raise SmokeError(f"{method} {path}: {status} {reached}")
        return reached


def check(client: Client, report: Callable[[str], None] = print) -> None:
    """Run all checks, and delete what they created. Raises SmokeError at the first failure."""
    with ExitStack() as created:
        for step in STEPS:
            step(client, created)
            report(step.__doc__ or "")
    _check_audit(client)
    report(_check_audit.__doc__ or "")


def _check_preflight(client: Client, _: ExitStack) -> None:
    """preflight: a browser may call the API"""
    asked = {"origin": ORIGIN, "access-control-request-method": "PUT"}
    status, _body, headers = client.call("OPTIONS", "/posts/1/likes/me", headers=asked)
    _require(status == 204, f"a preflight is answered {status}")
    names = {name.lower() for name in headers}
    _require("access-control-allow-methods" in names, "AllowedOrigins allows no other origin")


def _check_session(client: Client, _: ExitStack) -> None:
    """session: requests without a session are refused, those with one are not"""
    status, *_rest = client.call("GET", "/users/me", headers={"accept": "application/json"})
    _require(status == 401, f"a request without a session is answered {status}")
    client.expect("GET", "/users/me", {200})
    _require(client.expect("GET", "/health", {200})["status"] == "up", "health is not up")


def _check_headers(client: Client, _: ExitStack) -> None:
    """headers: browsers keep to TLS, and take responses for what they are"""
    for path in ("/health", "/nowhere"):
        _status, _body, headers = client.call("GET", path, headers={"accept": "application/json"})
        names = {name.lower() for name in headers}
        missing = {"strict-transport-security", "x-content-type-options"} - names
        _require(not missing, f"GET {path} lacks {', '.join(sorted(missing))}")


def _check_likes(client: Client, created: ExitStack) -> None:
    """like: two likes of one user count once, and one unlike takes the like back"""
    text = {"title": "Smoke test", "body": "Deleted in a moment.", "images": [], "kind": "note"}
    post = "/posts/" + client.expect("POST", "/posts", {201}, text)["id"]
    created.callback(client.call, "DELETE", post)
    for method, likes in (("PUT", 1), ("PUT", 1), ("DELETE", 0)):
        body = client.expect(method, f"{post}/likes/me", {200})
        _require(body["likes"] == likes, f"{method} {post}/likes/me: {body}, not {likes} likes")
    body = client.expect("GET", post, {200})
    _require(body["likes"] == 0 and body["exact"], f"{post} is {body}")


def _check_feed(client: Client, _: ExitStack) -> None:
    """read: the feed and the ranking are served"""
    client.expect("GET", "/feed", {200})
    client.expect("GET", "/posts/ranking", {200})


def _check_orders(client: Client, created: ExitStack) -> None:
    """order: a voucher with one unit is sold once"""
    text = {"name": f"Smoke test {secrets.token_hex(4)}", "icon": f"{ORIGIN}/icon.png", "sort": 0}
    kind = client.expect("POST", "/shop-types", {201}, text)
    created.callback(client.call, "DELETE", f"/shop-types/{kind['id']}")
    body = {"name": "Smoke test", "type_id": kind["id"], "place": {"x": 0, "y": 0}, "images": []}
    shop = client.expect("POST", "/shops", {201}, body)
    created.callback(client.call, "DELETE", f"/shops/{shop['id']}")
    now = datetime.now(UTC)
    voucher = client.expect(
        "POST",
        "/vouchers",
        {201},
        {
            "shop_id": shop["id"],
            "title": "Smoke test",
            "price_cents": 1,
            "stock": 1,
            "opens_at": (now - timedelta(minutes=1)).isoformat(),
            "closes_at": (now + timedelta(minutes=10)).isoformat(),
        },
    )
    orders = f"/vouchers/{voucher['id']}/orders"
    order_id = client.expect("POST", orders, {200, 202})["order_id"]
    again = client.expect("POST", orders, {200, 202})["order_id"]
    _require(again == order_id, f"a repeated order is {again}, not {order_id}")

    def decided() -> bool:
        return bool(client.expect("GET", f"/orders/{order_id}", {200})["status"] != "pending")

    _wait(decided, ORDER_S, f"order {order_id} is pending")
    order = client.expect("GET", f"/orders/{order_id}", {200})
    _require(order["status"] == "success", f"order {order_id} is {order}")


STEPS = (
    _check_preflight, _check_session, _check_headers, _check_likes, _check_feed, _check_orders,
)  # fmt: skip


def _check_audit(client: Client) -> None:
    """audit: a reconciliation of all stores finds no difference"""
    run_id = client.expect("POST", "/ops/reconciliations", {202})["id"]

    def find() -> Any:
        runs = client.expect("GET", "/ops/reconciliations", {200})["items"]
        return next((run for run in runs if run["id"] == run_id and run["ended_at"]), None)

    run = _wait(find, AUDIT_S, f"reconciliation {run_id} has not ended")
    _require(run["differences"] == 0, f"reconciliation {run_id} found {run['reasons']}")


def _wait(read: Callable[[], T], seconds: float, text: str) -> T:
    """Return the first true result of ``read``. Raises SmokeError at the deadline."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        if result := read():
            return result
        time.sleep(0.5)
    raise SmokeError(f"{text} after {seconds} s")


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise SmokeError(text)


def _decode(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body.decode(errors="replace")[:200]


def url_of(environment: str) -> str:
    """Return the address for clients: the edge's, without one the API's. Raises DeployError."""
    account = Account(read_settings(environment).region)
    for part, output in ((EDGE, "EdgeUrl"), (BALANCER, "ApiUrl"), (APPLICATION, "ApiUrl")):
        if url := read_pairs(account.describe(part, environment), "Output").get(output):
            return url
    raise DeployError(f"there is no environment {environment}")


@explain_aws_errors()
def main(args: argparse.Namespace) -> None:
    """Check an environment. Raises SmokeError, DeployError."""
    url = args.url or url_of(args.environment)
    if token := os.environ.get("PLAZA_SMOKE_TOKEN", ""):
        check(Client(url, token))
    elif args.url:
        raise SmokeError("set PLAZA_SMOKE_TOKEN to the token of an admin (docs/operations.md)")
    else:
        check_as_new_admin(url, Operator(args.environment))


def check_as_new_admin(url: str, operator: Operator) -> None:
    """Check an environment as an admin who exists for the check only. Raises SmokeError."""
    client = Client(url, operator.run("open-smoke-session")["token"])
    try:
        check(client)
    finally:
        client.expect("DELETE", "/users/me", {202})
