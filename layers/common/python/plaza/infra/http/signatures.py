"""Signatures of texts that clients send back: HMAC-SHA256 with the secret of the deployment."""

from __future__ import annotations

import base64
import hmac

from plaza.infra.aws import secrets
from plaza.infra.runtime.settings import settings

MIN_REFRESH_S = 60  # any client can send forged signatures, and each refresh is a call
_BYTES = 16  # of a signature: short enough for a URL


def sign(purpose: str, text: str) -> str:
    """Return the signature of ``text``, 22 characters, valid for one ``purpose`` only.
    Raises SecretsDown, BadSettings."""
    return _sign(secrets.read_keys(settings().require_auth_secret_id())[0], purpose, text)


def is_signed(purpose: str, text: str, signature: str) -> bool:
    """Return whether ``signature`` signs ``text``, with the secret or the one before.
    Raises as ``sign``."""

    def has_signed(key: str) -> bool:
        return hmac.compare_digest(_sign(key, purpose, text), signature)

    secret_id = settings().require_auth_secret_id()
    return secrets.find_key(secret_id, has_signed, MIN_REFRESH_S) is not None


def _sign(key: str, purpose: str, text: str) -> str:
    digest = hmac.digest(key.encode(), f"{purpose} {text}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest[:_BYTES]).decode().rstrip("=")
