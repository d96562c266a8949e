"""Rotate a secret. Secrets Manager invokes it, once for each of four steps."""

from typing import Any

from plaza.infra.secret_rotation import rotate


def handler(event: dict[str, Any], context: object) -> None:
    """Take one step of the rotation of one secret."""
    rotate(event)
