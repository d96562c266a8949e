"""Gauges of reactions: the outboxes in Redis, and the log in MySQL."""

from __future__ import annotations

from plaza.infra import outbox
from plaza.reactions.model import Target
from plaza.reactions.mysql_reactions import read_log_head
from plaza.reactions.redis_keys import keys_of, outboxes_key


def read_outboxes() -> dict[str, float]:
    """Return the number of outboxes and the age of an oldest entry. Two round trips. Raises
    RedisDown."""
    depth = outbox.measure(outboxes_key, _outbox_key, _read_time_us)
    return {"outboxes": depth.outboxes, "outbox_age_s": depth.age_s}


def read_saved() -> dict[str, float]:
    """Return the number of events that were ever added to the log, those that it refused as
    duplicates included. One statement. Raises MysqlDown."""
    return {"reactions_saved_total": read_log_head()}


def _outbox_key(member: str) -> str:
    kind, target_type, target_id = member.split(":")
    return keys_of(kind, Target(target_type, int(target_id))).outbox


def _read_time_us(_: str, entry: str) -> int:
    return int(entry.split(":", 2)[1])
