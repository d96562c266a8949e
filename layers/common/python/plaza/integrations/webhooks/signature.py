"""Secrets of webhooks, and signatures by Standard Webhooks. No I/O.

A secret is derived from a key that is in Secrets Manager: nothing that signs is stored anywhere
else, and a rotation changes a number.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable

PREFIX = "whsec_"


def derive_secret(key: str, webhook_id: int, serial: int) -> str:
    """Return a secret as its receiver stores it: ``whsec_`` and 32 bytes in base64."""
    derived = hmac.new(key.encode(), f"webhook:{webhook_id}:{serial}".encode(), hashlib.sha256)
    return PREFIX + base64.b64encode(derived.digest()).decode()


def sign(event_id: str, sent_s: int, body: str, secrets: Iterable[str]) -> dict[str, str]:
    """Return the headers of an event that is sent at ``sent_s``, with a signature a secret."""
    text = f"{event_id}.{sent_s}.{body}".encode()
    signatures = [
        base64.b64encode(
            hmac.new(base64.b64decode(secret[len(PREFIX) :]), text, hashlib.sha256).digest()
        ).decode()
        for secret in secrets
    ]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(sent_s),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
