"""The queue of what Redis is to be told of shops."""

from __future__ import annotations

from plaza.infra.queues import Queue
from plaza.shops.shops import read_message, write_message

SHOPS = Queue("shops", write_message, read_message, visibility_s=361)
"""Shops that changed, and steps of walks through all of them."""
