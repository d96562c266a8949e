"""TLS contexts. No other module creates one: connections share them."""

from __future__ import annotations

import ssl
from functools import lru_cache

from plaza.infra.runtime.settings import BadSettings


@lru_cache(maxsize=2)
def verifying_context(ca_file: str | None) -> ssl.SSLContext:
    """Return the context that trusts the CAs in ``ca_file``, by default the system's.

    Shared by all connections of the process: to load the system's certificates takes 30 ms of CPU.
    Raises BadSettings if the file is missing or has no certificate.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise BadSettings(f"{ca_file} is no file of CA certificates: {error}") from None


@lru_cache(maxsize=1)
def unverified_context() -> ssl.SSLContext:
    """Return the context that accepts any certificate. Shared by all connections."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def describe_failure(error: BaseException) -> str:
    """Return why a handshake failed, ``""`` if ``error`` was not caused by one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f", {cause.verify_message}"
    return f", {cause.reason}" if cause is not None else ""
