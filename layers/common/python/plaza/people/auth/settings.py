"""The settings of sessions, of the rate limits of users, and of text messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from plaza.infra.runtime.settings import BadSettings, declare, read_names, require
from plaza.people.auth.issuers import Issuer, parse_issuers

SMS_NUMBER_TYPES = (
    "mobile",
    "fixed_line_or_mobile",
    "fixed_line",
    "voip",
    "personal_number",
)
"""Types of phone numbers that may get text messages; by default the first two.

Types whose owner earns money with each message (premium rate, shared cost) are never allowed.
"""

_COUNTRY = re.compile(r"[A-Z]{2}")


class AuthSettings(NamedTuple):
    """``sms_countries`` are ISO 3166 codes (``*``: all), ``sms_number_types`` types of the library
    phonenumbers in lower case. Only the sign-in function has an ``sms_sender``."""

    sms_sender: str | None
    sms_countries: frozenset[str]
    sms_number_types: frozenset[str]
    max_codes_per_hour: int = 1_000
    max_codes_per_network_per_hour: int = 200
    session_ttl_s: int = 30 * 86_400
    session_max_age_s: int = 180 * 86_400
    reads_per_s: float = 20.0
    reads_burst: int = 100
    writes_per_s: float = 5.0
    writes_burst: int = 50


def _sms_sender(env: Mapping[str, str]) -> str | None:
    """Return ``sns``, or ``echo``, which puts codes into Redis and is for local use only."""
    if not env.get("PLAZA_SMS_SENDER"):
        return None
    sender = require(env, "PLAZA_SMS_SENDER", choices=("sns", "echo"))
    if sender == "echo" and env.get("PLAZA_ENVIRONMENT") != "local":
        raise BadSettings("PLAZA_SMS_SENDER is 'echo', which requires PLAZA_ENVIRONMENT=local")
    return sender


def _sms_countries(env: Mapping[str, str]) -> frozenset[str]:
    """Return the countries in ``US,DE`` or ``*``; by default none, and no message is sent."""
    countries = read_names(env, "PLAZA_SMS_COUNTRIES")
    for country in countries - {"*"}:
        if not _COUNTRY.fullmatch(country):
            raise BadSettings(f"PLAZA_SMS_COUNTRIES has {country!r}, not an ISO 3166 code")
    return countries


def _sms_number_types(env: Mapping[str, str]) -> frozenset[str]:
    types = read_names(env, "PLAZA_SMS_NUMBER_TYPES") or SMS_NUMBER_TYPES[:2]
    if unknown := sorted(set(types) - set(SMS_NUMBER_TYPES)):
        allowed = ", ".join(SMS_NUMBER_TYPES)
        raise BadSettings(f"PLAZA_SMS_NUMBER_TYPES has {unknown[0]!r}, not one of {allowed}")
    return frozenset(types)


class IdentitySettings(NamedTuple):
    """The issuers whose ID tokens sign in, and the secret with their keys, which only the functions
    of sign-in and of RefreshIssuers have."""

    issuers: tuple[Issuer, ...]
    keys_secret_id: str | None

    def require_keys_secret_id(self) -> str:
        """Return ``keys_secret_id``. Raises BadSettings without one."""
        if self.keys_secret_id is None:
            raise BadSettings("PLAZA_ISSUER_KEYS_ID is not set")
        return self.keys_secret_id


def _issuers(env: Mapping[str, str]) -> tuple[Issuer, ...]:
    try:
        return parse_issuers(
            env.get("PLAZA_IDENTITY_ISSUERS", ""),
            is_local=env.get("PLAZA_ENVIRONMENT") == "local",
        )
    except ValueError as error:
        raise BadSettings(f"PLAZA_IDENTITY_ISSUERS: {error}") from None


class PasskeySettings(NamedTuple):
    """The origin of the console, to whose host passkeys belong; only the function of sign-in has
    it. None: there are no passkeys."""

    origin: str | None

    @property
    def is_on(self) -> bool:
        return self.origin is not None

    @property
    def rp_id(self) -> str:
        """The host that passkeys belong to."""
        return urlsplit(self.require_origin()).hostname or ""

    def require_origin(self) -> str:
        """Return ``origin``. Raises BadSettings without one."""
        if self.origin is None:
            raise BadSettings("PLAZA_CONSOLE_ORIGIN is not set")
        return self.origin


_ORIGIN = re.compile(r"https://[a-z0-9.-]+(:\d+)?|http://localhost(:\d+)?")


def _console_origin(env: Mapping[str, str]) -> str | None:
    """Return the origin, such as ``https://console.example.com``."""
    origin = env.get("PLAZA_CONSOLE_ORIGIN") or None
    if origin is not None and not _ORIGIN.fullmatch(origin):
        raise BadSettings(f"PLAZA_CONSOLE_ORIGIN is {origin!r}, not an origin of https")
    return origin


passkey_settings = declare(PasskeySettings, origin=_console_origin)
identity_settings = declare(
    IdentitySettings,
    issuers=_issuers,
    keys_secret_id=lambda env: env.get("PLAZA_ISSUER_KEYS_ID") or None,
)
auth_settings = declare(
    AuthSettings,
    sms_sender=_sms_sender,
    sms_countries=_sms_countries,
    sms_number_types=_sms_number_types,
)
