"""Verification of webhooks, by Standard Webhooks (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from plaza_client.errors import PlazaError, WebhookVerificationError

TOLERANCE_S = 300
MIN_SECRET_BYTES = 24
MAX_SECRET_BYTES = 64


class Webhook:
    """Verifies the webhooks of an endpoint.

    ``secrets``: one, or while it is replaced two: a webhook that either of them signed is
    genuine. Raises PlazaError for a secret that is none.
    """

    def __init__(self, *secrets: str) -> None:
        if not secrets:
            raise PlazaError("A webhook is verified with at least one secret.")
        self._keys = [_decode_secret(secret) for secret in secrets]

    def verify(self, body: bytes | str, headers: Mapping[str, str]) -> Any:
        """Return the decoded JSON of a webhook. ``body``: as it was received, byte for byte.

        A webhook may arrive twice: its header ``webhook-id`` identifies it. Raises
        WebhookVerificationError for a missing or wrong signature, and for a time that is more
        than five minutes from now.
        """
        given = {name.lower(): value for name, value in headers.items()}
        try:
            message_id = given["webhook-id"]
            timestamp = given["webhook-timestamp"]
            signatures = given["webhook-signature"]
        except KeyError as error:
            raise WebhookVerificationError(f"The header {error.args[0]} is missing.") from None
        content = body.encode() if isinstance(body, str) else body
        expected = [_sign(key, message_id, timestamp, content) for key in self._keys]
        # All are compared, so the time tells nothing about which one is right.
        matches = [
            hmac.compare_digest(signature.encode(errors="replace"), own.encode())
            for signature in signatures.split(" ")
            for own in expected
        ]
        if not any(matches):
            raise WebhookVerificationError("No signature of this webhook is of a known secret.")
        _check_time(timestamp)
        try:
            return json.loads(content)
        except ValueError as error:
            raise WebhookVerificationError("The body of this webhook is not JSON.") from error

    def sign(
        self, body: bytes | str, message_id: str, timestamp_s: int | None = None
    ) -> dict[str, str]:
        """Return the headers of a webhook, signed with each secret: for tests of an endpoint."""
        timestamp = str(int(time.time()) if timestamp_s is None else timestamp_s)
        content = body.encode() if isinstance(body, str) else body
        signatures = [_sign(key, message_id, timestamp, content) for key in self._keys]
        return {
            "webhook-id": message_id,
            "webhook-timestamp": timestamp,
            "webhook-signature": " ".join(signatures),
        }


def _decode_secret(secret: str) -> bytes:
    """Return the key of a secret: ``whsec_`` and 24 to 64 bytes in Base64."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        raise PlazaError("The secret of a webhook is whsec_ and 24 to 64 bytes in Base64.")
    return key


def _sign(key: bytes, message_id: str, timestamp: str, content: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode(errors="replace") + content
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def _check_time(timestamp: str) -> None:
    if not (timestamp.isascii() and timestamp.isdigit()):
        raise WebhookVerificationError("The header webhook-timestamp is no number of seconds.")
    age_s = time.time() - int(timestamp)
    if abs(age_s) > TOLERANCE_S:
        which = "old" if age_s > 0 else "new"
        raise WebhookVerificationError(f"This webhook is too {which}.")
