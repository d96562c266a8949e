"""The queue of what Redis is to be told of shops."""

from __future__ import annotations

from plaza.infra.queues import Queue
from plaza.shops.model import decode_message, encode_message

SHOPS = Queue("shops", encode_message, decode_message, visibility_s=361)
"""Shops that changed, and steps of jobs on all of them."""
