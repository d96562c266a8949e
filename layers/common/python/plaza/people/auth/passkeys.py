"""Passkeys: what is stored of them, their challenges and their codes. No I/O.

A passkey is a key pair of a device that verifies its user (PIN, finger, face). It belongs to the
host of the console, so that no other page can ask for it. Its sign-in is a signature of a
challenge.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from datetime import datetime
from typing import NamedTuple

from plaza.infra.runtime.errors import Conflict, NotFound, Unauthenticated

CHALLENGE_TTL_S = 300
CODE_TTL_S = 3_600
MAX_PASSKEYS = 10
MAX_NAME_CHARS = 60
CODE_PATTERN = r"^[A-Za-z0-9_-]{32}$"
PASSKEY_ID_PATTERN = r"^[0-9a-f]{32}$"
_CHALLENGE_BYTES = 32


class PasskeysAreOff(NotFound):
    """This deployment has no origin of a console, for which passkeys would be."""


class TooManyPasskeys(Conflict):
    """The user has as many passkeys as are allowed."""

    slug = "too-many-passkeys"
    title = "Too many passkeys"
    example = "You have 10 passkeys. End one."


class PasskeyRefused(Unauthenticated):
    """A code or a passkey is wrong, used, expired or unknown; the reason is not disclosed."""

    slug = "passkey-refused"
    title = "Passkey refused"
    example = "This passkey or code is wrong, used or expired: try again."


class Passkey(NamedTuple):
    """A stored passkey. Times are in UTC. ``may_be_synced``: whether its device may copy it to
    other devices of the user."""

    credential_id: bytes
    user_id: int
    public_key: bytes
    sign_count: int
    name: str
    created_at: datetime
    used_at: datetime | None
    may_be_synced: bool

    @property
    def sha256(self) -> bytes:
        return hash_credential(self.credential_id)

    @property
    def passkey_id(self) -> str:
        """The id in the API."""
        return self.sha256.hex()[:32]


class NewPasskey(NamedTuple):
    """What a device made, for a challenge that it signed."""

    client_data: str
    attestation: str


class Assertion(NamedTuple):
    """The signature of a sign-in; all texts are base64url."""

    credential_id: str
    client_data: str
    authenticator_data: str
    signature: str
    user_handle: str | None


def make_challenge() -> str:
    """Return 256 random bits, base64url."""
    return encode(secrets.token_bytes(_CHALLENGE_BYTES))


def make_code() -> str:
    """Return a code of 192 random bits: shown once, never stored."""
    return secrets.token_urlsafe(24)


def hash_code(code: str) -> bytes:
    """Return the SHA-256 of a code, for storage. 192 random bits need no salt."""
    return hashlib.sha256(code.encode()).digest()


def hash_credential(credential_id: bytes) -> bytes:
    return hashlib.sha256(credential_id).digest()


def make_user_handle(user_id: int) -> bytes:
    """Return the name of a user for devices."""
    return str(user_id).encode()


def encode(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Return the bytes of base64url. Raises PasskeyRefused."""
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        raise PasskeyRefused from None


def read_challenge(client_data: str) -> str:
    """Return the challenge that a device signed. Raises PasskeyRefused."""
    try:
        challenge = json.loads(decode(client_data))["challenge"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise PasskeyRefused from None
    if not isinstance(challenge, str) or len(decode(challenge)) != _CHALLENGE_BYTES:
        raise PasskeyRefused
    return challenge
