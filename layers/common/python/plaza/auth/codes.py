"""Codes that show whose phone it is, and what stands for phones and addresses. No I/O."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

from plaza.infra.errors import TooMany, Unauthenticated
from plaza.infra.limits import Window
from plaza.infra.networks import network_of

CODE_TTL_S = 300
MOST_WRONG = 5
FORM = r"^[0-9]{6}$"

ASKING = (Window(60, 1), Window(3600, 5))  # of one phone, and of one network
TRYING_BY_PHONE = (Window(600, 10),)
TRYING_BY_NETWORK = (Window(600, 60),)


class CodeRefused(Unauthenticated):
    """Wrong, used, expired, burnt, or never sent: which of them is not told."""

    slug = "code-refused"
    title = "This code doesn't work"


class TooSoon(TooMany):
    """Somebody asks for codes, or tries them, too often."""


@dataclass(frozen=True, slots=True)
class Seal:
    """Makes of what must not be read something that stands for it, and that only we can make."""

    secret: str

    def of_phone(self, phone: str) -> str:
        """Stands for a phone number; 64 hex digits."""
        return self._stamp("phone", phone)

    def of_code(self, phone: str, code: str) -> str:
        """Stands for a code that was sent to a phone."""
        return self._stamp("code", f"{phone} {code}")

    def of_network(self, address: str) -> str:
        """Stands for where a request came from."""
        return self._stamp("network", network_of(address))

    def _stamp(self, what: str, text: str) -> str:
        return hmac.new(self.secret.encode(), f"{what} {text}".encode(), "sha256").hexdigest()


def make_code() -> str:
    """Six digits that nobody can foresee."""
    return f"{secrets.randbelow(1_000_000):06}"
