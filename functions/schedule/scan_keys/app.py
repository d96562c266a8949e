"""Scan Redis for large and hot keys, every five minutes."""

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.operate.keyspace.key_scan import scan_keys


@scheduled("scan_keys")
def handler(event: object, context: object) -> dict[str, int]:
    """Continue the scan of all keys for half a minute."""
    return scan_keys()
