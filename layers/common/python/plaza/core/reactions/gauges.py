"""Gauges of reactions: the outboxes in Redis, and the log in MySQL."""

from __future__ import annotations

from plaza.core.reactions.mysql_log import read_log_head
from plaza.core.reactions.redis_keys import outboxes_key
from plaza.infra.derived import outbox


def read_outboxes() -> dict[str, float]:
    """Return the number of outboxes and the age of the oldest entry. One round trip. Raises
    RedisDown."""
    depth = outbox.measure(outboxes_key)
    return {"outboxes": depth.outboxes, "outbox_age_s": depth.age_s}


def read_saved() -> dict[str, float]:
    """Return the number of events that were ever added to the log, those that it refused as
    duplicates included. One statement. Raises MysqlDown."""
    return {"reactions_saved_total": read_log_head()}
