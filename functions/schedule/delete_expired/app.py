"""What has expired is deleted, every hour."""

from plaza.infra.expiry import delete_expired


def handler(event: object, context: object) -> dict[str, int]:
    """Delete what expired, for less than a minute; what is left is there in an hour still."""
    return delete_expired()
