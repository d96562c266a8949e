"""Idempotency keys: requests of one user with the same Idempotency-Key create one resource.

A key maps to one resource of any type for 24 hours. Other contexts call ``find`` before they create
a resource, and ``claim`` in the transaction that creates it. Owns the table ``idempotency_key``.
"""

from plaza.core.idempotency.model import IdempotentRequest, KeyReused
from plaza.core.idempotency.mysql_store import claim, find

__all__ = [
    "IdempotentRequest",
    "KeyReused",
    "claim",
    "find",
]
