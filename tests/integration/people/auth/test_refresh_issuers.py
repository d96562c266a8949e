"""RefreshIssuers keeps the keys of issuers that answer, and of those that do not, for a while."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from local.stack.functions import CONTEXT, load_function
from plaza.infra.aws import secrets
from plaza.infra.http import web_client
from plaza.infra.http.urls import parse_url
from plaza.infra.http.web_client import ServerFailed, get_json
from plaza.infra.runtime.process import reset_process
from plaza.people.auth import refresh_issuers
from plaza.people.auth.issuers import ISSUER_KEYS
from plaza.people.auth.refresh_issuers import refresh_issuers as refresh
from tests.support.http_servers import dripping
from tests.support.issuer import AUDIENCE, FakeIssuer, make_ec, serving_issuer
from tests.support.moto_server import serving_aws

CONFIGURATION = "/.well-known/openid-configuration"


@pytest.fixture
def issuer() -> Iterator[FakeIssuer]:
    with serving_issuer() as served:
        yield served


@pytest.fixture
def secret(issuer: FakeIssuer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A Secrets Manager in this process, with an empty secret. Returns a function that reads it."""
    for name, value in {
        "PLAZA_ENVIRONMENT": "local",
        "PLAZA_REDIS_URL": "redis://nowhere",
        "PLAZA_MYSQL_URL": "mysql://nobody@nowhere/plaza",
        "PLAZA_IDENTITY_ISSUERS": f"{issuer.url}|{AUDIENCE}",
        "PLAZA_ISSUER_KEYS_ID": "plaza/keys",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with serving_aws() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", url)
        with mock_aws():  # it replaces the credentials until its end
            reset_process()
            manager = secrets.connect()
            manager.create_secret(Name="plaza/keys", SecretString="{}")

            def read() -> str:
                return str(manager.get_secret_value(SecretId="plaza/keys")["SecretString"])

            yield read
    reset_process()


def key_ids(text: str, url: str) -> list[str]:
    return [key.kid for key in ISSUER_KEYS.decode(text).issuers.get(url, [])]


def test_the_keys_of_an_issuer_are_stored(issuer: FakeIssuer, secret: Any) -> None:
    assert refresh() == {"issuers": 1, "keys": 2, "unreachable": 0}
    assert secret() == issuer.stored()


def test_a_rotation_is_followed(issuer: FakeIssuer, secret: Any) -> None:
    refresh()
    issuer.keys = {"e2": make_ec("e2")}
    issuer.publish()
    refresh()
    assert key_ids(secret(), issuer.url) == ["e2"]


def test_nothing_is_written_without_a_change(secret: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    refresh()
    monkeypatch.setattr(secrets, "replace", lambda *_: pytest.fail("it is unchanged"))
    refresh()


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        (CONFIGURATION, 500, b"{}"),
        (CONFIGURATION, 404, b""),
        (CONFIGURATION, 200, b"<html>"),
        (CONFIGURATION, 200, b"[]"),
        (CONFIGURATION, 200, b"[" * 5_000),
        (CONFIGURATION, 200, b'{"issuer": "https://other.example"}'),
        (CONFIGURATION, 200, b" " * (web_client.MAX_BODY_BYTES + 1)),
        ("/keys", 200, b"{}"),
        ("/keys", 200, b'{"keys": []}'),
        ("/keys", 200, b'{"keys": [{"kty": "oct", "kid": "h", "k": "AAAA"}]}'),
        ("/keys", 503, b""),
    ],
)
def test_an_issuer_that_does_not_answer_well_keeps_its_keys(
    issuer: FakeIssuer, secret: Any, path: str, status: int, body: bytes
) -> None:
    refresh()
    issuer.documents[path] = (status, body)
    assert refresh() == {"issuers": 1, "keys": 2, "unreachable": 1}
    assert secret() == issuer.stored()
    issuer.publish()
    assert refresh()["unreachable"] == 0


def test_a_redirect_is_not_followed(issuer: FakeIssuer, secret: Any) -> None:
    """It could lead to a server that the operator did not name."""
    issuer.headers["location"] = f"{issuer.url}/keys"
    issuer.documents[CONFIGURATION] = (302, b"")
    assert refresh()["unreachable"] == 1
    assert key_ids(secret(), issuer.url) == []


@pytest.mark.parametrize(
    "keys_url",
    [None, 7, "", "keys", "ftp://127.0.0.1/keys", "http://10.0.0.1/keys", "file:///etc/passwd",
     "https://user:pass@id.example.com/keys", "http://id.example.com/keys"],
)  # fmt: skip
def test_keys_are_read_from_https_only(issuer: FakeIssuer, secret: Any, keys_url: Any) -> None:
    document = {"issuer": issuer.url, "jwks_uri": keys_url}
    issuer.documents[CONFIGURATION] = (200, json.dumps(document).encode())
    assert refresh()["unreachable"] == 1


def test_one_issuer_that_is_away_does_not_stop_the_others(
    issuer: FakeIssuer, secret: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = "http://127.0.0.1:1"
    monkeypatch.setenv("PLAZA_IDENTITY_ISSUERS", f"{away}|{AUDIENCE},{issuer.url}|{AUDIENCE}")
    reset_process()
    assert refresh() == {"issuers": 2, "keys": 2, "unreachable": 1}
    assert key_ids(secret(), issuer.url) == ["r1", "e1"]


def test_an_issuer_that_is_no_longer_named_loses_its_keys(
    issuer: FakeIssuer, secret: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refresh()
    with serving_issuer() as other:
        monkeypatch.setenv("PLAZA_IDENTITY_ISSUERS", f"{other.url}|{AUDIENCE}")
        reset_process()
        refresh()
        assert secret() == other.stored()


def test_without_issuers_nothing_is_read(secret: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAZA_IDENTITY_ISSUERS", "")
    monkeypatch.delenv("PLAZA_ISSUER_KEYS_ID")
    reset_process()
    assert refresh() == {"issuers": 0, "keys": 0, "unreachable": 0}


def test_keys_that_do_not_fit_into_a_secret_fail_the_run(
    issuer: FakeIssuer, secret: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh_issuers, "MAX_SECRET_BYTES", 100)
    with pytest.raises(ValueError, match="bytes"):
        refresh()
    assert secret() == "{}"


def test_the_function_needs_no_store(
    issuer: FakeIssuer, secret: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given stores that it cannot reach: it is outside of the VPC."""
    capsys.readouterr()
    run = load_function("schedule/refresh_issuers").handler
    assert run({}, CONTEXT) == {"issuers": 1, "keys": 2, "unreachable": 0}
    lines = capsys.readouterr().out
    assert '"schedule":"refresh_issuers"' in lines
    assert '"issuers_unreachable":0' in lines
    assert "RedisDown" not in lines


def test_an_issuer_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_client, "MAX_REQUEST_S", 0.3)
    with dripping() as url, pytest.raises(ServerFailed):
        get_json(parse_url(url), allows_loopback=True)


def test_keys_at_a_private_address_are_not_read(
    issuer: FakeIssuer,
    secret: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Given an issuer whose configuration names a host of the network of the function."""
    names = {"keys.example": "169.254.169.254"}
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *args: resolve(names.get(host, host), *args)
    )
    document = {"issuer": issuer.url, "jwks_uri": "https://keys.example/keys"}
    issuer.documents[CONFIGURATION] = (200, json.dumps(document).encode())
    capsys.readouterr()
    assert refresh()["unreachable"] == 1
    assert "its address is not public" in capsys.readouterr().out
