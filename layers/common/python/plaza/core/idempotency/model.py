"""Requests with an Idempotency-Key. No I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from plaza.infra.runtime.errors import Conflict


class KeyReused(Conflict):
    """The Idempotency-Key belongs to another request."""

    slug = "idempotency-key-reused"
    title = "Idempotency key reused"
    example = "This Idempotency-Key belongs to another request; send a new key."


class IdempotentRequest(NamedTuple):
    """Digests of an Idempotency-Key and of the request that it was sent with."""

    key_sha256: bytes
    request_sha256: bytes

    @classmethod
    def of(cls, key: str, request: Mapping[str, Any]) -> IdempotentRequest:
        """Return the digests. ``request`` can be encoded as JSON and names the route."""
        text = json.dumps(request, sort_keys=True, separators=(",", ":"))
        return cls(hashlib.sha256(key.encode()).digest(), hashlib.sha256(text.encode()).digest())
