"""The address of a client: the connection's, unless the edge proves that it is the edge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plaza.infra.aws import secrets
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.http.client_ip import read_client_ip
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Forbidden
from plaza.infra.runtime.process import reset_process
from tests.support.failures import failing
from tests.unit.infra.test_settings import GOOD, set_only

CLOUDFRONT, VIEWER = "130.176.0.1", "198.51.100.7"
CURRENT, PREVIOUS = "c" * 64, "p" * 64


def request(**headers: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"headers": named, "requestContext": {"http": {"sourceIp": CLOUDFRONT}}}


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """``guard("trust")``: the settings of an API function with or without an edge."""

    def set_up(value: str) -> None:
        set_only(monkeypatch, GOOD)
        monkeypatch.setenv("PLAZA_GUARD_ORIGIN", value)
        monkeypatch.setenv("PLAZA_ORIGIN_SECRET_ID", "" if value == "off" else "plaza/origin")
        reset_process()

    monkeypatch.setattr(
        secrets, "_fetch", lambda _: json.dumps({"current": CURRENT, "previous": PREVIOUS})
    )
    yield set_up
    reset_process()


def test_without_an_edge_no_header_changes_the_address(guard: Callable[[str], None]) -> None:
    guard("off")
    sent = request(x_viewer_ip=VIEWER, x_origin_secret=CURRENT, x_forwarded_for=VIEWER)
    assert read_client_ip(sent) == CLOUDFRONT


@pytest.mark.parametrize("value", ["trust", "require"])
@pytest.mark.parametrize("secret", [CURRENT, PREVIOUS], ids=["current", "previous"])
def test_the_edge_reports_the_address_of_its_viewer(
    guard: Callable[[str], None], value: str, secret: str
) -> None:
    guard(value)
    assert read_client_ip(request(x_viewer_ip=VIEWER, x_origin_secret=secret)) == VIEWER
    assert read_client_ip(request(x_origin_secret=secret)) == CLOUDFRONT


FORGED = [
    request(x_viewer_ip=VIEWER),
    request(x_viewer_ip=VIEWER, x_origin_secret=""),
    request(x_viewer_ip=VIEWER, x_origin_secret="guess"),
    request(x_viewer_ip=VIEWER, x_origin_secret=CURRENT[:-1]),
    request(x_viewer_ip=VIEWER, x_origin_secret="ä"),
    request(x_viewer_ip=VIEWER, x_origin_secret=f"{CURRENT},{CURRENT}"),
]


@pytest.mark.parametrize("sent", FORGED)
def test_a_reported_address_without_the_secret_is_not_believed(
    guard: Callable[[str], None], sent: dict[str, Any]
) -> None:
    guard("trust")
    assert read_client_ip(sent) == CLOUDFRONT


@pytest.mark.parametrize("sent", FORGED)
def test_a_request_past_a_required_edge_is_refused(
    guard: Callable[[str], None], sent: dict[str, Any]
) -> None:
    guard("require")
    with pytest.raises(Forbidden, match="public address"):
        read_client_ip(sent)


def test_an_empty_previous_secret_admits_no_edge(
    guard: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    guard("require")
    monkeypatch.setattr(
        secrets, "_fetch", lambda _: json.dumps({"current": CURRENT, "previous": ""})
    )
    with pytest.raises(Forbidden):
        read_client_ip(request(x_viewer_ip=VIEWER, x_origin_secret=""))


def test_a_rotated_secret_is_read_again_and_guesses_do_not_make_it_be_read_each_time(
    guard: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    guard("trust")
    read: list[str] = []
    now_s = [100.0]

    def fetch(_: str) -> str:
        read.append("")
        return json.dumps(
            {"current": "n" * 64, "previous": CURRENT} if len(read) > 1 else {"current": CURRENT}
        )

    monkeypatch.setattr(secrets, "_fetch", fetch)
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s[0])
    assert read_client_ip(request(x_viewer_ip=VIEWER, x_origin_secret=CURRENT)) == VIEWER
    for _ in range(100):
        read_client_ip(request(x_viewer_ip=VIEWER, x_origin_secret="guess"))
    assert len(read) == 1
    now_s[0] += secrets.MIN_REFRESH_S
    assert read_client_ip(request(x_viewer_ip=VIEWER, x_origin_secret="n" * 64)) == VIEWER
    assert read_client_ip(request(x_viewer_ip=VIEWER, x_origin_secret=CURRENT)) == VIEWER
    assert len(read) == 2


def test_a_secrets_manager_outage_raises_secrets_down(
    guard: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    guard("require")

    monkeypatch.setattr(secrets, "_fetch", failing(SecretsDown("Secrets Manager is unavailable")))
    with pytest.raises(SecretsDown):
        read_client_ip(request(x_viewer_ip=VIEWER, x_origin_secret=CURRENT))
