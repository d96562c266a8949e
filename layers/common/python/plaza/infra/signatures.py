"""Signatures of texts that clients send back: HMAC-SHA256 with the secret of the deployment."""

from __future__ import annotations

import base64
import hmac

from plaza.infra import secrets
from plaza.infra.settings import BadSettings, settings

_BYTES = 16  # of a signature: short enough for a URL


def sign(purpose: str, text: str) -> str:
    """Return the signature of ``text``, 22 characters, valid for one ``purpose`` only.
    Raises SecretsDown, BadSettings."""
    secret_id = settings().auth_secret_id
    if secret_id is None:
        raise BadSettings("PLAZA_AUTH_SECRET_ID is not set")
    digest = hmac.digest(secrets.read(secret_id).encode(), f"{purpose} {text}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest[:_BYTES]).decode().rstrip("=")


def is_signed(purpose: str, text: str, signature: str) -> bool:
    """Return whether ``signature`` is that of ``text``. Raises as ``sign``."""
    return hmac.compare_digest(sign(purpose, text), signature)
