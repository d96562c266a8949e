"""Refuse the Redis of a version before 0.4.0, whose keys and values this version cannot read."""

from __future__ import annotations

from cli.paths import CommandError
from local.stack import servers

_KEYS_BEFORE = [f"{{{shard}}}:log_heads" for shard in range(128)]
"""Keys that only those versions wrote, within a minute after their start."""


def require_new_redis(url: str, *, cluster: bool) -> None:
    """Raise CommandError if a version before 0.4.0 filled Redis. One command for each key."""
    with servers.connect_redis(url, cluster=cluster) as client:
        if any(client.exists(key) for key in _KEYS_BEFORE):
            raise CommandError(
                "this Redis was filled by a version before 0.4.0, whose keys cannot be read:"
                " run `make fresh`, or begin with an empty Redis (docs/upgrading.md)"
            )
