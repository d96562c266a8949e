"""The queue of refreshes of shops, and of steps of jobs on all shops."""

from __future__ import annotations

from plaza.infra.queues import Queue
from plaza.shops.model import decode_message, encode_message

SHOPS = Queue("shops", encode_message, decode_message, visibility_s=361)
