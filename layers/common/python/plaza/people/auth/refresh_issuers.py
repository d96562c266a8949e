"""Read the keys of all issuers into the secret from which the function of sign-in verifies tokens.

That function has no way to the internet, so this runs outside of the VPC. An issuer that does not
answer keeps the keys that it had.
"""

from __future__ import annotations

from typing import Any

from plaza.infra.aws import secrets
from plaza.infra.http.web_client import ServerFailed, get_json
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.settings import settings
from plaza.people.auth.issuers import (
    ISSUER_KEYS,
    Issuer,
    IssuerKeys,
    PublicKey,
    parse_server_url,
    select_keys,
)
from plaza.people.auth.settings import identity_settings

MAX_SECRET_BYTES = 65_536


def refresh_issuers() -> dict[str, int]:
    """Read the keys of each issuer, and store them if they changed; return how many ``issuers`` and
    ``keys`` there are, and how many issuers are ``unreachable``. Two requests an issuer. Raises
    SecretsDown; ValueError if the keys exceed a secret."""
    config = identity_settings()
    if not config.issuers:
        return {"issuers": 0, "keys": 0, "unreachable": 0}
    secret_id = config.require_keys_secret_id()
    text = secrets.read_recent(secret_id, 0)
    before = ISSUER_KEYS.read(text) or IssuerKeys()
    issuers: dict[str, list[PublicKey]] = {}
    unreachable = 0
    for issuer in config.issuers:
        try:
            issuers[issuer.url] = _read_keys(issuer)
        except ServerFailed as error:
            unreachable += 1
            record("issuer_unreachable", issuer=issuer.url, error=str(error))
            issuers[issuer.url] = before.issuers.get(issuer.url, [])
    after = ISSUER_KEYS.encode(IssuerKeys(issuers))
    if len(after) > MAX_SECRET_BYTES:
        raise ValueError(f"the keys of all issuers are {len(after)} bytes")
    if after != text:
        secrets.replace(secret_id, after)
        record("issuer_keys_changed", issuers=len(issuers))
    numbers = {"issuers": len(issuers), "keys": sum(map(len, issuers.values()))}
    record("issuers_refreshed", {"issuers_unreachable": unreachable}, **numbers)
    return {**numbers, "unreachable": unreachable}


def _read_keys(issuer: Issuer) -> list[PublicKey]:
    """Return the keys of an issuer. Two requests. Raises ServerFailed."""
    document = _get_json(issuer.url.rstrip("/") + "/.well-known/openid-configuration")
    if not isinstance(document, dict) or document.get("issuer") != issuer.url:
        raise ServerFailed("its configuration is of another issuer")
    try:
        keys = select_keys(_get_json(document.get("jwks_uri")))
    except ValueError as error:
        raise ServerFailed(str(error)) from None
    if not keys:
        raise ServerFailed("none of its keys can be used")
    return keys


def _get_json(text: object) -> Any:
    """Return the JSON at a URL that an operator or an issuer named. Raises ServerFailed."""
    is_local = settings().environment == "local"
    try:
        url = parse_server_url(text, is_local=is_local)
    except ValueError as error:
        raise ServerFailed(f"its URL {error}") from None
    return get_json(url, allows_loopback=is_local)
