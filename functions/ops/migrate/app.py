"""Apply the migrations that this code expects. Invoked at each deploy."""

from plaza.infra.migrations import apply_migrations
from plaza.infra.observability import record


def handler(event: object, context: object) -> dict[str, list[str]]:
    """Apply the migrations that are missing."""
    applied = apply_migrations()
    record("migrations_applied", applied=applied)
    return {"applied": applied}
