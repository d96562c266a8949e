"""Codes, challenges, keyed hashes of phones and networks, and limits. No I/O."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass

from plaza.infra.http.limits import Window
from plaza.infra.http.networks import network_of, site_of
from plaza.infra.runtime.errors import TooManyRequests, Unauthenticated, Unavailable

CODE_TTL_S = 300
MAX_WRONG_TRIES = 5
CODE_PATTERN = r"^[0-9]{6}$"
_PREFIX_LENGTH = 4
CHALLENGE_PATTERN = r"^[A-Za-z0-9_-]{43}$"

SENDS_PER_PHONE = (Window(3600, 10), Window(86_400, 20))
SENDS_PER_PHONE_AND_NETWORK = (Window(60, 1), Window(3600, 5))


class CodeRefused(Unauthenticated):
    """The code is wrong, used, expired, burnt or was never sent; the reason is not disclosed."""

    slug = "code-refused"
    title = "Sign-in code refused"
    example = "This code is wrong, used or expired: request a new one."


class TooSoon(TooManyRequests):
    """Too many codes were requested for a phone or from a network."""


class CodeBudgetExhausted(Unavailable):
    """This deployment has sent its limit of codes for this hour."""


@dataclass(frozen=True, slots=True)
class KeyedHasher:
    """Hashes and encrypts personal data with the deployment's secret, to 64 hex digits."""

    secret: str

    def hash_phone(self, phone: str) -> str:
        return self._mac("phone", phone).hex()

    def hash_code(self, challenge: str, code: str) -> str:
        return self._mac("code", f"{challenge} {code}").hex()

    def hash_network(self, address: str) -> str:
        """Return the keyed hash of a request's site, which many users may share."""
        return self._mac("network", site_of(address)).hex()

    def hash_phone_and_network(self, phone: str, address: str) -> str:
        return self._mac("phone at network", f"{phone} {network_of(address)}").hex()

    def encrypt_phone(self, challenge: str, phone: str) -> str:
        """Encrypt with a one-time pad: a challenge is random and encrypts one phone."""
        padded = phone.encode().ljust(32)
        return _xor(padded, self._mac("pad", challenge)).hex()

    def decrypt_phone(self, challenge: str, encrypted: str) -> str:
        return _xor(bytes.fromhex(encrypted), self._mac("pad", challenge)).decode().rstrip()

    def make_challenge(self) -> str:
        """Return 234 random bits as text, after a prefix by which ``made`` finds the secret.

        It is sent to the client that requested a code, and never stored.
        """
        return self._prefix() + secrets.token_urlsafe(32)[_PREFIX_LENGTH:]

    def made(self, challenge: str) -> bool:
        """Return whether a challenge has the prefix of this secret."""
        return challenge.startswith(self._prefix())

    def _prefix(self) -> str:
        return base64.urlsafe_b64encode(self._mac("prefix", ""))[:_PREFIX_LENGTH].decode()

    def _mac(self, purpose: str, text: str) -> bytes:
        return hmac.digest(self.secret.encode(), f"{purpose} {text}".encode(), "sha256")


def make_code() -> str:
    return f"{secrets.randbelow(1_000_000):06}"


def hash_challenge(challenge: str) -> str:
    """Return the SHA-256 of a challenge, hex, for storage. 234 random bits need no salt."""
    return hashlib.sha256(challenge.encode()).hexdigest()


def _xor(left: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, other, strict=True))
