"""The keyed hashes of phones and networks, with the deployment's secret.

Log lines of refused codes and passkeys have the first 16 digits of them: they tell attacks on one
phone or from one network apart until the secret rotates, and lead to no phone and no address.
"""

from __future__ import annotations

from plaza.infra.aws import secrets
from plaza.infra.runtime.settings import settings
from plaza.people.auth.codes import KeyedHasher

_LOGGED_DIGITS = 16


def current_hasher() -> KeyedHasher:
    """Return the hasher with the current secret. Raises SecretsDown."""
    return KeyedHasher(secrets.read_keys(settings().require_auth_secret_id())[0])


def all_hashers() -> list[KeyedHasher]:
    """Return the hashers with the current secret and with the one before. Raises SecretsDown."""
    return [KeyedHasher(key) for key in secrets.read_keys(settings().require_auth_secret_id())]


def find_hasher(challenge: str) -> KeyedHasher:
    """Return the hasher that made a challenge, the current one if none did. Raises SecretsDown."""
    key = secrets.find_key(
        settings().require_auth_secret_id(), lambda key: KeyedHasher(key).made(challenge)
    )
    return KeyedHasher(key) if key else current_hasher()


def describe_source(address: str, phone: str | None = None) -> dict[str, str]:
    """Return the fields of a log line about a request from ``address`` for ``phone``. Raises
    SecretsDown."""
    hasher = current_hasher()
    fields = {"network_hash": hasher.hash_network(address)[:_LOGGED_DIGITS]}
    if phone is not None:
        fields["phone_hash"] = hasher.hash_phone(phone)[:_LOGGED_DIGITS]
    return fields
