"""A device with passkeys in this process: what a browser returns, as the API takes it."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import struct
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

ORIGIN = "https://console.example.com"
_PRESENT, _VERIFIED, _HAS_KEY = 0x01, 0x04, 0x40
_BACKED_UP = 0x08 | 0x10  # it may be copied, and it is


def encode(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Authenticator:
    """A device with one passkey. ``verifies``: it verifies its user; ``counts``: it has a counter;
    ``is_synced``: other devices of its user have the passkey, too."""

    origin: str = ORIGIN
    verifies: bool = True
    counts: bool = True
    is_synced: bool = False
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    user_handle: bytes = b""
    sign_count: int = 0

    def make(self, challenge: dict[str, Any]) -> dict[str, str]:
        """Return what belongs to a new passkey, for the response of ``/passkey-challenges``."""
        self.user_handle = challenge["user"]["id"].encode()
        point = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32), -3: point.y.to_bytes(32)}
        credential = b"\0" * 16 + struct.pack(">H", len(self.credential_id)) + self.credential_id
        data = self._authenticator_data(challenge["rp_id"], _HAS_KEY)
        attestation = {
            "fmt": "none",
            "attStmt": {},
            "authData": data + credential + cbor2.dumps(cose),
        }
        return {
            "client_data": encode(self._client_data("webauthn.create", challenge["challenge"])),
            "attestation": encode(cbor2.dumps(attestation)),
        }

    def sign(self, challenge: dict[str, Any]) -> dict[str, str]:
        """Return the signature of a challenge, for the field ``passkey`` of a sign-in."""
        if self.counts:
            self.sign_count += 1
        client_data = self._client_data("webauthn.get", challenge["challenge"])
        data = self._authenticator_data(challenge["rp_id"])
        signed = data + hashlib.sha256(client_data).digest()
        return {
            "credential_id": encode(self.credential_id),
            "client_data": encode(client_data),
            "authenticator_data": encode(data),
            "signature": encode(self.key.sign(signed, ec.ECDSA(hashes.SHA256()))),
            "user_handle": encode(self.user_handle),
        }

    def _client_data(self, kind: str, challenge: str) -> bytes:
        data = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(data).encode()

    def _authenticator_data(self, rp_id: str, more: int = 0) -> bytes:
        flags = _PRESENT | more | (_VERIFIED if self.verifies else 0)
        flags |= _BACKED_UP if self.is_synced else 0
        count = struct.pack(">I", self.sign_count)
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + count
