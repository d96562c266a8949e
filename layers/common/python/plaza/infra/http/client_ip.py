"""The address of a client: of the connection, or as the edge reports it.

Behind CloudFront the connection comes from CloudFront. The edge (deploy/edge.yaml) sends the
client's address, and a secret that proves that it is the edge: every client can send the header.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from plaza.infra.aws import secrets
from plaza.infra.runtime.errors import Forbidden
from plaza.infra.runtime.settings import settings

ADDRESS_HEADER = "x-viewer-ip"
SECRET_HEADER = "x-origin-secret"  # noqa: S105 - the name of a header


def read_client_ip(event: Mapping[str, Any]) -> str:
    """Return the IP address of the client of a request, which no header of a client can change.

    Without an edge it is the connection's. Raises Forbidden if all clients must come through
    the edge, and this request did not; SecretsDown.
    """
    address = str(event["requestContext"]["http"]["sourceIp"])
    secret_id = settings().origin_secret_id
    if secret_id is None:
        return address
    headers = event.get("headers", {})
    if _is_of_edge(headers.get(SECRET_HEADER, ""), secret_id):
        return str(headers.get(ADDRESS_HEADER) or address)
    if settings().requires_edge:
        raise Forbidden("Send requests to the public address of this API.")
    return address


def _is_of_edge(sent: str, secret_id: str) -> bool:
    """Return whether ``sent`` is the secret or the one before, which the edge sends until it is
    updated."""

    def is_sent(key: str) -> bool:
        return hmac.compare_digest(sent.encode(), key.encode())

    return bool(sent) and secrets.find_key(secret_id, is_sent) is not None
