"""Verification of webhooks in the Python client, by Standard Webhooks."""

from __future__ import annotations

import base64
import time

import pytest

from plaza_client import PlazaError, Webhook, WebhookVerificationError

# The example of the specification.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
TIME_S = 1_614_265_330
HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(TIME_S),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
OTHER = "whsec_" + base64.b64encode(b"o" * 32).decode()


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given the time of the example."""
    monkeypatch.setattr(time, "time", lambda: float(TIME_S))


def test_the_example_of_the_specification_is_genuine() -> None:
    assert Webhook(SECRET).verify(BODY, HEADERS) == {"test": 2432232314}
    assert Webhook(SECRET).verify(BODY.decode(), HEADERS) == {"test": 2432232314}
    assert Webhook(SECRET).sign(BODY, HEADERS["webhook-id"]) == HEADERS


def test_names_of_headers_have_no_case() -> None:
    assert Webhook(SECRET).verify(BODY, {name.title(): HEADERS[name] for name in HEADERS})


def test_while_a_secret_is_replaced_either_one_is_enough() -> None:
    for sender in (Webhook(SECRET), Webhook(OTHER), Webhook(OTHER, SECRET)):
        signed = sender.sign(BODY, "msg_1")
        assert Webhook(SECRET, OTHER).verify(BODY, signed)
    assert Webhook(SECRET).verify(BODY, Webhook(OTHER, SECRET).sign(BODY, "msg_1"))
    with pytest.raises(WebhookVerificationError, match="known secret"):
        Webhook(SECRET).verify(BODY, Webhook(OTHER).sign(BODY, "msg_1"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("webhook-id", "msg_other"),
        ("webhook-id", "ü\ud800"),
        ("webhook-timestamp", str(TIME_S + 1)),
        ("webhook-timestamp", f"{TIME_S}.0"),
        ("webhook-timestamp", ""),
        ("webhook-signature", ""),
        ("webhook-signature", "v1,"),
        ("webhook-signature", HEADERS["webhook-signature"].removeprefix("v1,")),
        ("webhook-signature", HEADERS["webhook-signature"].replace("v1,", "v1a,")),
        ("webhook-signature", HEADERS["webhook-signature"][:-1]),
        ("webhook-signature", "v1,ü\ud800"),
    ],
)
def test_a_changed_header_is_refused(name: str, value: str) -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET, OTHER).verify(BODY, HEADERS | {name: value})


@pytest.mark.parametrize("name", HEADERS)
def test_a_missing_header_is_refused(name: str) -> None:
    rest = {other: value for other, value in HEADERS.items() if other != name}
    with pytest.raises(WebhookVerificationError, match=name):
        Webhook(SECRET).verify(BODY, rest)


def test_a_changed_body_is_refused() -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(BODY + b" ", HEADERS)


@pytest.mark.parametrize(
    ("age_s", "is_genuine"), [(300, True), (301, False), (-300, True), (-301, False)]
)
def test_a_webhook_of_another_time_is_refused(age_s: int, is_genuine: bool) -> None:
    webhook = Webhook(SECRET)
    signed = webhook.sign(BODY, "msg_1", TIME_S - age_s)
    if is_genuine:
        assert webhook.verify(BODY, signed)
        return
    with pytest.raises(WebhookVerificationError, match=r"too (old|new)"):
        webhook.verify(BODY, signed)


def test_a_signed_body_that_is_not_json_and_a_signed_time_that_is_none_are_refused() -> None:
    webhook = Webhook(SECRET)
    with pytest.raises(WebhookVerificationError, match="JSON"):
        webhook.verify(b"{", webhook.sign(b"{", "msg_1"))
    signed = webhook.sign(BODY, "msg_1", -1)
    with pytest.raises(WebhookVerificationError, match="number of seconds"):
        webhook.verify(BODY, signed)


def test_a_signature_of_another_version_beside_is_ignored() -> None:
    both = "v1a,AAAA " + HEADERS["webhook-signature"]
    assert Webhook(SECRET).verify(BODY, HEADERS | {"webhook-signature": both})


@pytest.mark.parametrize(
    "secrets", [(), ("",), ("whsec_",), ("whsec_AAAA",), ("whsec_ü",), (SECRET, "x")]
)
def test_a_secret_that_is_none_is_refused(secrets: tuple[str, ...]) -> None:
    with pytest.raises(PlazaError):
        Webhook(*secrets)
