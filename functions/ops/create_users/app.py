"""Create the users of MySQL that the other functions log in as. A deploy invokes it."""

from typing import Any

from plaza.infra import custom_resource
from plaza.infra.database_users import create_users, keep_binlog
from plaza.infra.observability import record


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Create the users that are missing, and set all passwords and privileges."""
    return custom_resource.serve(event, _create)


def _create() -> dict[str, Any]:
    users, is_aurora = create_users(), keep_binlog()
    record("database_users_created", users=users, is_aurora=is_aurora)
    return {"users": ",".join(users)}
