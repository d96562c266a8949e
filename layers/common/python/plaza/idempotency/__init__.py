"""Idempotency keys: what is sent twice under one Idempotency-Key is made once.

A key is of a user, stands for one thing, whatever it is, and is kept for a day. Other contexts ask
``find`` first and let a key stand for what they make by ``claim``, in the same transaction.
"""

from plaza.idempotency.model import IdempotentRequest, KeyReused
from plaza.idempotency.mysql_store import claim, delete_expired, find

__all__ = ["IdempotentRequest", "KeyReused", "claim", "delete_expired", "find"]
