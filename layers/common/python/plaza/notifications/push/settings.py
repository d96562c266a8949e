"""Settings of push messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from plaza.infra.runtime.settings import BadSettings, declare, read_names

DEFAULT_HOSTS = (
    "fcm.googleapis.com",
    "jmt17.google.com",
    "*.push.services.mozilla.com",
    "*.push.apple.com",
    "*.notify.windows.com",
)
"""Push services of Chrome, of Chromium without Google's keys, of Firefox, Safari and Edge."""

_HOST = re.compile(r"(\*\.)?([a-z0-9-]+\.)+[a-z0-9-]+")
_PUBLIC_KEY = re.compile(r"[A-Za-z0-9_-]{87}")  # 65 bytes: an uncompressed point of P-256


class PushSettings(NamedTuple):
    """The public key that browsers subscribe with; None: nothing is pushed. ``hosts``: of push
    services; ``*.`` stands for all names below. Only the function that sends has
    ``key_secret_id``, the secret with the private key as PEM, and the ``contact``, a mailto: or
    https URL that push services may write to."""

    public_key: str | None
    key_secret_id: str | None
    contact: str | None
    hosts: frozenset[str]

    @property
    def is_on(self) -> bool:
        return self.public_key is not None


def _public_key(env: Mapping[str, str]) -> str | None:
    key = env.get("PLAZA_PUSH_PUBLIC_KEY") or None
    if key and not _PUBLIC_KEY.fullmatch(key):
        raise BadSettings("PLAZA_PUSH_PUBLIC_KEY is not 65 bytes in base64url")
    return key


def _hosts(env: Mapping[str, str]) -> frozenset[str]:
    hosts = read_names(env, "PLAZA_PUSH_HOSTS") or frozenset(DEFAULT_HOSTS)
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise BadSettings(f"PLAZA_PUSH_HOSTS has {host!r}, not the name of a host")
    return hosts


push_settings = declare(
    PushSettings,
    public_key=_public_key,
    key_secret_id=lambda env: env.get("PLAZA_PUSH_KEY_ID") or None,
    contact=lambda env: env.get("PLAZA_PUSH_CONTACT") or None,
    hosts=_hosts,
)
