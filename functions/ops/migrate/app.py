"""Apply the migrations that this code expects. A deploy invokes it first."""

from typing import Any

from plaza.infra import custom_resource
from plaza.infra.migrations import apply_migrations
from plaza.infra.observability import record


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Apply the migrations that are missing."""
    return custom_resource.serve(event, _migrate)


def _migrate() -> dict[str, Any]:
    applied = apply_migrations()
    record("migrations_applied", applied=applied)
    return {"applied": applied}
