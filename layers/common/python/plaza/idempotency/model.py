"""What a request to create something under an Idempotency-Key is. No I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from plaza.infra.errors import Conflict


class KeyReused(Conflict):
    """The Idempotency-Key was used before, for something else."""

    slug = "idempotency-key-reused"
    title = "Idempotency key reused"


class IdempotentRequest(NamedTuple):
    """One try to create something under an Idempotency-Key: digests of the key and of what is
    asked for."""

    key_sha256: bytes
    request_sha256: bytes

    @classmethod
    def of(cls, key: str, request: Mapping[str, Any]) -> IdempotentRequest:
        """A request to create ``request``, which is JSON and tells the route too."""
        text = json.dumps(request, sort_keys=True, separators=(",", ":"))
        return cls(hashlib.sha256(key.encode()).digest(), hashlib.sha256(text.encode()).digest())
