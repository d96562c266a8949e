"""Codes, challenges, what stands for phones and networks, and limits. No I/O."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from plaza.infra.errors import TooManyRequests, Unauthenticated, Unavailable
from plaza.infra.limits import Window
from plaza.infra.networks import network_of, site_of

CODE_TTL_S = 300
MAX_WRONG_TRIES = 5
CODE_PATTERN = r"^[0-9]{6}$"
CHALLENGE_PATTERN = r"^[A-Za-z0-9_-]{43}$"

SENDS_PER_PHONE = (Window(3600, 10), Window(86_400, 20))
SENDS_PER_PHONE_AND_NETWORK = (Window(60, 1), Window(3600, 5))


class CodeRefused(Unauthenticated):
    """Wrong, used, expired, burnt, or never sent: which of them is not told."""

    slug = "code-refused"
    title = "Sign-in code refused"


class TooSoon(TooManyRequests):
    """Codes are asked for too often: for a phone, or from a network."""


class CodeBudgetExhausted(Unavailable):
    """This deployment has sent as many codes as it may within the hour."""


@dataclass(frozen=True, slots=True)
class KeyedHasher:
    """Makes of what must not be read something that stands for it, and that only we can make."""

    secret: str

    def hash_phone(self, phone: str) -> str:
        """Stands for a phone number; 64 hex digits."""
        return self._mac("phone", phone).hex()

    def hash_code(self, challenge: str, code: str) -> str:
        """Stands for the code of a challenge."""
        return self._mac("code", f"{challenge} {code}").hex()

    def hash_network(self, address: str) -> str:
        """Stands for the site that a request came from, which many users may share."""
        return self._mac("network", site_of(address)).hex()

    def hash_phone_and_network(self, phone: str, address: str) -> str:
        """Stands for a phone number and the network that a request came from."""
        return self._mac("phone at network", f"{phone} {network_of(address)}").hex()

    def encrypt_phone(self, challenge: str, phone: str) -> str:
        """The phone, readable with the challenge and the secret together; 64 hex digits.

        A one-time pad: a challenge is random and hides one phone.
        """
        padded = phone.encode().ljust(32)
        return _xor(padded, self._mac("pad", challenge)).hex()

    def decrypt_phone(self, challenge: str, encrypted: str) -> str:
        """The phone that ``encrypt_phone`` hid with this challenge."""
        return _xor(bytes.fromhex(encrypted), self._mac("pad", challenge)).decode().rstrip()

    def _mac(self, what: str, text: str) -> bytes:
        return hmac.digest(self.secret.encode(), f"{what} {text}".encode(), "sha256")


def make_code() -> str:
    """Six digits that nobody can foresee."""
    return f"{secrets.randbelow(1_000_000):06}"


def make_challenge() -> str:
    """256 random bits: given to the client that asked for a code, stored nowhere."""
    return secrets.token_urlsafe(32)


def hash_challenge(challenge: str) -> str:
    """The SHA-256 of a challenge, hex: what is stored of it. 256 random bits need no salt."""
    return hashlib.sha256(challenge.encode()).hexdigest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
