"""Verify ID tokens of OpenID Connect. Only the function of sign-in has the packages of this module.

A token is believed if a key that RefreshIssuers stored for its issuer has signed it, with the
algorithm of that key, and if its claims fit: ``iss``, ``aud``, ``exp``, ``iat`` and ``nonce``.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, NamedTuple

import jwt

from plaza.infra.aws import secrets
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import values_of
from plaza.people.auth.issuers import ALGORITHMS, ISSUER_KEYS, IdTokenRefused, Issuer, PublicKey
from plaza.people.auth.settings import identity_settings
from plaza.people.users.identities import check_identity

MAX_KEYS_AGE_S = 300
"""How long a process uses keys before it reads them again: a key that its issuer withdrew signs
no longer after this and an interval of RefreshIssuers."""

MIN_KEYS_AGE_S = 60
"""How often a process reads the keys again because of a key id that it does not know."""

MAX_SKEW_S = 60
"""How far the clock of an issuer may differ."""

MAX_TOKEN_S = 86_400
"""How far ahead the end of a token may be; how long a used token is remembered."""

_REQUIRED = ["iss", "sub", "aud", "exp", "iat"]


class IdToken(NamedTuple):
    """A verified token: whose it is, a name that all of its copies share, and for how long it
    could be used again."""

    issuer: str
    subject: str
    name: str
    expires_in_s: int


def verify(token: str, nonce: str | None) -> IdToken:
    """Return what a token says. ``nonce`` is the one of the sign-in that it belongs to, or the
    text whose SHA-256 (hex) that is. Raises IdTokenRefused, SecretsDown."""
    try:
        header = jwt.get_unverified_header(token)
        claimed = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, RecursionError):
        raise IdTokenRefused("This is not an ID token.") from None
    issuers = {issuer.url: issuer for issuer in identity_settings().issuers}
    issuer = issuers.get(str(claimed.get("iss")))
    if issuer is None:
        raise IdTokenRefused("The ID token is of an issuer that is not accepted here.")
    claims = _verify_signature(token, header, issuer)
    try:
        identity = check_identity(issuer.url, claims["sub"])
    except ValueError:
        raise IdTokenRefused("The ID token has a subject that is not accepted here.") from None
    if issuer.requires_nonce and claims.get("nonce") is None:
        raise IdTokenRefused("The ID token has no nonce, which is required of its issuer.")
    _check_nonce(claims.get("nonce"), nonce)
    expires_in_s = int(claims["exp"]) - int(clock.now_s()) + MAX_SKEW_S
    if expires_in_s > MAX_TOKEN_S + 2 * MAX_SKEW_S:
        raise IdTokenRefused("The ID token is valid for longer than a day.")
    return IdToken(*identity, _name(token, claims), max(1, expires_in_s))


def _verify_signature(token: str, header: Mapping[str, Any], issuer: Issuer) -> dict[str, Any]:
    """Return the claims of a token that its issuer has signed for this deployment."""
    key = _find_key(header, issuer)
    algorithm = ALGORITHMS[key.kty]
    document = {name: value for name, value in _fields(key).items() if value}
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(document, algorithm),
            algorithms=[algorithm],
            audience=issuer.audiences,
            issuer=issuer.url,
            leeway=MAX_SKEW_S,
            options={"require": _REQUIRED},
        )
    except jwt.ExpiredSignatureError:
        raise IdTokenRefused("The ID token is expired; get a new one from its issuer.") from None
    except jwt.InvalidAudienceError:
        raise IdTokenRefused("The ID token is meant for another audience.") from None
    except jwt.PyJWTError:
        raise IdTokenRefused("The ID token has a wrong signature or an invalid claim.") from None
    is_for_several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if is_for_several and claims.get("azp") not in issuer.audiences:
        raise IdTokenRefused("The ID token was requested by another audience.")
    return claims


def _find_key(header: Mapping[str, Any], issuer: Issuer) -> PublicKey:
    """Return the key that a header names, of the kind of its algorithm. Raises IdTokenRefused."""
    kid, algorithm = header.get("kid"), header.get("alg")
    if "crit" in header or algorithm not in ALGORITHMS.values() or not isinstance(kid, str):
        raise IdTokenRefused("The ID token is not signed by RS256 or ES256 with a key id.")
    secret_id = identity_settings().require_keys_secret_id()
    for max_age_s in (MAX_KEYS_AGE_S, MIN_KEYS_AGE_S):
        stored = ISSUER_KEYS.read(secrets.read_recent(secret_id, max_age_s))
        for key in stored.issuers.get(issuer.url, ()) if stored else ():
            if key.kid == kid and ALGORITHMS.get(key.kty) == algorithm:
                return key
    raise IdTokenRefused(
        "The ID token is signed by a key that is not known. A new key is known within minutes."
    )


def _fields(key: PublicKey) -> dict[str, str]:
    return dict(zip(key.__struct_fields__, values_of(key), strict=True))


def _check_nonce(stated: Any, nonce: str | None) -> None:
    """Raise IdTokenRefused unless both nonces are missing, or belong together."""
    if stated is None and nonce is None:
        return
    if isinstance(stated, str) and nonce is not None:
        hashed = hashlib.sha256(_encode(nonce)).hexdigest()
        if any(hmac.compare_digest(_encode(stated), _encode(n)) for n in (nonce, hashed)):
            return
    raise IdTokenRefused("The nonce is not the one of the ID token.")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # JSON may have a lone surrogate


def _name(token: str, claims: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) by which a token is remembered: of issuer, subject and nonce, so
    that no nonce is used twice, or of what is signed. The signature has no part in it: one of
    ES256 can be changed into another valid one."""
    if claims.get("nonce") is not None:
        text = "\0".join((claims["iss"], claims["sub"], claims["nonce"]))
    else:
        text = token.rpartition(".")[0]
    return hashlib.sha256(_encode(text)).hexdigest()
