"""Big and hot keys of Redis are looked for, every five minutes."""

from plaza.keyspace.key_scan import scan_keys


def handler(event: object, context: object) -> dict[str, int]:
    """Go on with the walk through all keys for half a minute."""
    return scan_keys()
