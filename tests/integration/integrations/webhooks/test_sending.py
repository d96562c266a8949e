"""What is sent to webhooks: signatures by Standard Webhooks, and nothing to a private address."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.paths import ROOT
from plaza.infra.aws import tls
from plaza.infra.http import web_client
from plaza.infra.http.urls import parse_url
from plaza.infra.http.web_client import ServerFailed, resolve_public
from plaza.infra.runtime.settings import BadSettings
from plaza.integrations.webhooks.model import RETRIES_S, check_kinds, check_url, find_pause_s
from plaza.integrations.webhooks.settings import webhook_settings
from plaza.integrations.webhooks.signature import derive_secret, sign
from tests.support.certificates import make_certificates
from tests.support.http_servers import dripping
from tests.support.plaza import forget
from tests.support.receiver import receiving


def send(url: str, *, allows_loopback: bool = False) -> int:
    """Send an empty event to a URL; return the status of the answer."""
    headers = {"webhook-id": "a"}
    return web_client.post(parse_url(url), b"{}", headers, allows_loopback=allows_loopback).status


# ---------------------------------------------------------------- signatures


def test_a_signature_is_that_of_the_specification() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = '{"test": 2432232314}'
    headers = sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body, [secret])
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_each_webhook_and_each_rotation_has_a_secret_of_its_own() -> None:
    made = {
        derive_secret(key, webhook, serial)
        for key in ("a", "b")
        for webhook in (1, 11)
        for serial in (1, 11)
    }
    assert len(made) == 8
    for secret in made:
        assert secret.startswith("whsec_")
        assert len(base64.b64decode(secret[6:])) == 32


def test_pauses_are_from_five_seconds_to_a_day() -> None:
    assert (find_pause_s(1), find_pause_s(len(RETRIES_S)), find_pause_s(1_000)) == (
        5,
        86_400,
        86_400,
    )


# ---------------------------------------------------------------- URLs


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.com/", "ftp://example.com/", "https://", "https:///x", "//example.com"),
        *("https://user@example.com/", "https://user:secret@example.com/", "https://a.b/#part"),
        *("https://example.com:8443/", "https://example.com:99999/", "https://example.com:22/"),
        *("https://exam ple.com/", "https://ex\u00e4mple.com/", "https://a.b\\@10.0.0.1/"),
        *("https://a.b/\r\nhost: c", "http://127.0.0.1:8080/", "http://localhost/"),
        "https://a.b/" + "x" * 500,
    ],
)
def test_a_url_that_is_not_https_of_a_host_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has) "):
        check_url(url, allows_loopback=False)


def test_a_local_stack_may_send_to_itself_and_to_nothing_else_without_tls() -> None:
    assert check_url("http://127.0.0.1:8080/hook", allows_loopback=True)
    for url in ("http://10.0.0.1/", "http://example.com/", "http://127.0.0.1.example.com/"):
        with pytest.raises(ValueError, match="is https"):
            check_url(url, allows_loopback=True)
    assert check_url("https://example.com/a?b=c", allows_loopback=False)


@pytest.mark.parametrize("kinds", [["like"], ["like.*"], ["LIKE.added"], ["a.b"] * 21, [""]])
def test_types_have_the_form_of_types(kinds: list[str]) -> None:
    with pytest.raises(ValueError, match="are up to 20 types"):
        check_kinds(kinds)


def test_only_a_local_environment_allows_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAZA_WEBHOOK_LOOPBACK", "1")
    for environment in ("staging", "prod", ""):
        monkeypatch.setenv("PLAZA_ENVIRONMENT", environment)
        forget()
        with pytest.raises(BadSettings):
            webhook_settings()
    monkeypatch.setenv("PLAZA_ENVIRONMENT", "local")
    forget()
    assert webhook_settings().allows_loopback
    monkeypatch.undo()
    forget()


def test_no_template_allows_loopback() -> None:
    files = [ROOT / "template.yaml", ROOT / "functions.yaml", ROOT / "samconfig.toml"]
    for file in [*files, *(ROOT / "deploy").glob("*.yaml")]:
        assert "WEBHOOK_LOOPBACK" not in file.read_text()


# ---------------------------------------------------------------- addresses


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let the resolver return these addresses, the last ones from then on; return what it was
    asked for."""
    asked: list[str] = []
    left = list(answers)

    def resolve(host: str, *_: object) -> list[Any]:
        asked.append(host)
        addresses = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, 0)) for text in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


PRIVATE = [
    *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "127.0.0.1", "127.9.9.9"),
    *("169.254.169.254", "169.254.170.2", "100.64.0.1", "0.0.0.0", "255.255.255.255"),
    *("224.0.0.1", "240.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
    "192.0.0.8",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    connected: list[object] = []
    monkeypatch.setattr(socket, "create_connection", lambda *args: connected.append(args))
    for answers in ([address], ["93.184.216.34", address], [address, "93.184.216.34"]):
        resolve_to(monkeypatch, answers)
        with pytest.raises(ServerFailed, match="not public"):
            send("https://example.com/")
    assert connected == []


def test_a_public_address_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, ["93.184.216.34", "93.184.216.35"])
    assert resolve_public("example.com") == "93.184.216.34"


@pytest.mark.parametrize(
    "host", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "[::1]", "::1"]
)
def test_other_forms_of_loopback_are_refused(host: str) -> None:
    with pytest.raises(ServerFailed):
        resolve_public(host)


def test_a_name_that_changes_its_address_is_resolved_once_and_pinned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = resolve_to(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    connected: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], *_: object) -> socket.socket:
        connected.append(address)
        raise OSError("no route, simulated by a test")

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(ServerFailed):
        send("https://example.com/")
    assert (asked, connected) == (["example.com"], [("93.184.216.34", 443)])


def test_loopback_is_for_http_of_a_local_stack_only() -> None:
    with receiving() as receiver:
        with pytest.raises(ServerFailed):
            send(receiver.url)
        send(receiver.url, allows_loopback=True)
        with pytest.raises(ServerFailed):
            send(receiver.url.replace("http", "https"), allows_loopback=True)
    assert receiver.ids == ["a"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with receiving() as receiver:
        receiver.statuses = [status]
        assert send(receiver.url, allows_loopback=True) == status
        assert len(receiver.requests) == 1


# ---------------------------------------------------------------- TLS and time


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A server of TLS for 127.0.0.1, and the file of its CA."""
    made = make_certificates(tmp_path / "ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.cert, made.key)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                    with context.wrap_socket(connection, server_side=True) as secure:
                        request = b""
                        while not request.endswith(b"{}"):
                            request += secure.recv(65_536)
                        secure.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield made.ca, listener.getsockname()[1]


def test_the_certificate_is_verified_for_the_host_and_not_for_the_address(
    monkeypatch: pytest.MonkeyPatch, tls_server: tuple[Path, int]
) -> None:
    ca, port = tls_server
    trusting = ssl.create_default_context(cafile=str(ca))
    monkeypatch.setattr(web_client, "resolve_public", lambda *_, **__: "127.0.0.1")
    with pytest.raises(ServerFailed, match="SSLCertVerificationError"):
        send(f"https://127.0.0.1:{port}/")
    monkeypatch.setattr(tls, "verifying_context", lambda _: trusting)
    send(f"https://127.0.0.1:{port}/")
    with pytest.raises(ServerFailed, match="SSLCertVerificationError"):
        send(f"https://example.com:{port}/")


def test_a_receiver_that_answers_byte_by_byte_is_left_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_client, "MAX_REQUEST_S", 0.3)
    with dripping() as url:
        began_s = time.monotonic()
        with pytest.raises(ServerFailed):
            send(url, allows_loopback=True)
        assert time.monotonic() - began_s < 4


def test_a_resolver_that_does_not_answer_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_client, "TIMEOUT_S", 0.2)
    ended = threading.Event()

    def resolve(*_: object) -> list[Any]:
        ended.wait(30)
        raise OSError("no answer, simulated by a test")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(ServerFailed, match="no address in time"):
        send("https://example.com/")
    ended.set()
