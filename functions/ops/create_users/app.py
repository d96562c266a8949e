"""Create the users of MySQL that the other functions log in as. A deploy invokes it."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.aws import custom_resource
from plaza.infra.mysql.database_users import create_users, keep_binlog
from plaza.infra.runtime.observability import logger, metrics, record


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Create the users that are missing, and set all passwords and privileges."""
    return custom_resource.serve(event, _create)


def _create() -> dict[str, Any]:
    users, is_aurora = create_users(), keep_binlog()
    record("database_users_created", users=users, is_aurora=is_aurora)
    return {"users": ",".join(users)}
