"""Changes of the breakers of this process, sent along with ordinary commands. They cost no round
trip and go to the shard of the command.

{<shard>}:breakers  zset  <dependency>:<function>:<process>:<state> -> time in ms
"""

from __future__ import annotations

import secrets

from plaza.infra.redis.commands import Command, key_of_command
from plaza.infra.redis.shards import tag_of
from plaza.infra.runtime.dependencies import unreported
from plaza.infra.runtime.observability import FUNCTION
from plaza.infra.runtime.process import Lazy

MAX_BREAKER_REPORTS = 100  # of one shard
BREAKER_REPORT_TTL_S = 3_600

_process = Lazy(lambda: secrets.token_hex(4))  # a name of this process


def breakers_key(tag: str) -> str:
    """Return the key of the changes that were sent along with keys of ``tag`` (``{7}``)."""
    return f"{tag}:breakers"


def take_reports(command: Command) -> list[Command]:
    """Return what to send along with ``command`` about the changes that were not reported yet."""
    key = key_of_command(command)
    if not key:
        return []
    reports_key = breakers_key(tag_of(key) + "}")
    members = (
        (change.at_ms, f"{change.dependency}:{FUNCTION}:{_process.get()}:{change.state}")
        for change in unreported
    )
    reports: list[Command] = [
        ("ZADD", reports_key, *(part for member in members for part in member)),
        ("ZREMRANGEBYRANK", reports_key, 0, -MAX_BREAKER_REPORTS - 1),
        ("EXPIRE", reports_key, BREAKER_REPORT_TTL_S),
    ]
    unreported.clear()
    return reports
